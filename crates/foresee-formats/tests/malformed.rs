//! Invalid inputs and their error messages.

use crate::common::*;
use foresee_formats::{FORMATS, MAX_LINE, by_name, open, open_reader};
use foresee_trace::{Batch, ErrorKind, Position, Trace};

/// Format, text, line of the error, part of the message.
const WRONG: &[(&str, &str, u64, &str)] = &[
    ("std", "T1|w(x)|1\nT1 w(x) 2\n", 2, "expected thread|operation|location, found \"T1 w(x) 2\""),
    ("std", "T1|w(x)|1\n\n# c\nT1|foo(x)|1\n", 4, "expected an operation, found \"foo(x)\""),
    ("std", "|w(x)|1\n", 1, "the thread is missing"),
    ("std", "T1|w|1\n", 1, "\"w\" needs an operand, as in w(name)"),
    ("std", "T1|w()|1\n", 1, "\"w\" needs an operand"),
    ("std", "T1|w(x|1\n", 1, "the closing bracket \")\" is missing"),
    ("std", "T1|w(x)|1|2\n", 1, "one bar too many"),
    ("std", "T1|w(x)=|1\n", 1, "a value is missing"),
    ("std", "T1|w(x)=5 6|1\n", 1, "\" 6\" after the operation"),
    ("std", "T1|w(x)=1->2|1\n", 1, "too many values: \"w\" has at most 1"),
    ("std", "T1|rmw(x)=1->2->3|1\n", 1, "too many values: \"rmw\" has at most 2"),
    ("std", "T1|acq(l)=1|1\n", 1, "too many values: \"acq\" has at most 0"),
    ("std", "T1|w(x)=18446744073709551616|1\n", 1, "\"18446744073709551616\" is out of range"),
    ("std", "T1|w(x)=-9223372036854775809|1\n", 1, "is out of range"),
    ("std", "T1|w(x)=1e999|1\n", 1, "\"1e999\" is out of range"),
    ("std", "T1|w(x)=12abc|1\n", 1, "\"12abc\" is not a value"),
    ("std", "T1|w(x)=0x1f|1\n", 1, "\"0x1f\" is not a value"),
    ("std", "T1|w(x)=nan(0)|1\n", 1, "is not the bits of a NaN"),
    ("std", "T1|w(x)=nan(7ff|1\n", 1, "is not a value"),
    ("std", "T1|w(x)=?|1\n", 1, "\"?\" is not a value"),
    ("std", "T1|w(\"x)|1\n", 1, "the closing quote is missing"),
    ("std", "T1|w(\"a\\q\")|1\n", 1, "unknown escape \"\\\\q\\\")\""),
    ("std", "T1|w(\"a\\u{110000}\")|1\n", 1, "unknown escape"),
    ("std", "T1|w(\"a\"b)|1\n", 1, "expected \",\" or \")\" before \"b)\""),
    ("std", "\"T1\"x|w(a)|1\n", 1, "\"x\" after a quoted name"),
    ("std", "T1|thread_begin(x)|1\n", 1, "\"thread_begin\" has no operand"),
    ("std", "T1|enter(f,1|1\n", 1, "the closing bracket"),
    ("std", "T1|enter()|1\n", 1, "\"enter\" needs an operand"),
    ("std", "T1|w(x)|1\n# foresee: order=sideways\n", 2, "there is no order \"sideways\""),
    ("std", "T1|w(x)|1\n# foresee: hello\n", 2, "expected key=value, found \"hello\""),
    ("rr", "@ Acquire(2,@03)\n@   Snooze(1,2)\n", 2, "unknown event \"Snooze\""),
    ("rr", "@ Acquire(2)\n", 1, "\"acq\" needs an operand"),
    ("rr", "@ Acquire(,x)\n", 1, "the thread is missing"),
    ("rr", "@ Acquire(2,x\n", 1, "the closing bracket"),
    ("rr", "@ Wr(2,x)=5?  Final  A.java:1\n", 1, "\"5?\" is not a value"),
    ("csv", "w(x),\n,,\n", 2, "no column of the line has an event"),
    ("csv", "w(x),r(x)\n", 1, "two columns have an event: \"w(x)\" and \"r(x)\""),
    ("csv", "\"w(x),\n", 1, "the closing quote of a cell is missing"),
    ("csv", "\"w(x)\"y,\n", 1, "\"y,\" after a quoted cell"),
    ("csv", "w(x)y,\n", 1, "the operation"),
    ("csv", ",foo(x)\n", 1, "expected an operation, found \"foo(x)\""),
    ("jsonl", "{\"thread\":\"T1\",\"op\":\"w\"}\n", 1, "the field \"target\" is missing"),
    ("jsonl", "{\"op\":\"w\",\"target\":\"x\"}\n", 1, "the field \"thread\" is missing"),
    ("jsonl", "{\"thread\":\"T1\"}\n", 1, "the field \"op\" is missing"),
    ("jsonl", "{\"thread\":\"T1\",\"op\":\"fly\"}\n", 1, "expected an operation, found \"fly\""),
    (
        "jsonl",
        "{\"thread\":\"T1\",\"op\":\"w\",\"target\":\"x\",\"old\":1}\n",
        1,
        "\"w\" has no field \"old\"",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"rmw\",\"target\":\"x\",\"old\":1}\n",
        1,
        "the field \"value\" is missing",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"acq\",\"target\":\"l\",\"value\":1}\n",
        1,
        "\"acq\" has no field \"value\"",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"w\",\"target\":\"x\",\"args\":[]}\n",
        1,
        "no field \"args\"",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"w\",\"target\":\"x\",\"lock\":\"l\"}\n",
        1,
        "no field \"lock\"",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"thread_end\",\"target\":\"x\"}\n",
        1,
        "no field \"target\"",
    ),
    (
        "jsonl",
        "{\"thread\":1,\"op\":\"w\"}\n",
        1,
        "column 11: invalid type: integer `1`, expected a string",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"w\",\"target\":\"x\",\"value\":18446744073709551616}\n",
        1,
        "out of range",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"w\",\"target\":\"x\",\"value\":[1]}\n",
        1,
        "\"[1]\" is not a value",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"w\",\"target\":\"x\",\"value\":{\"float\":\"5\"}}\n",
        1,
        "\"5\" is not a float",
    ),
    (
        "jsonl",
        "{\"thread\":\"T\",\"op\":\"event\",\"target\":\"x\",\"args\":[null]}\n",
        1,
        "\"null\" is not a value",
    ),
    ("jsonl", "{\"thread\":\"T\",\n", 1, "column"),
    ("jsonl", "{\"foresee\":2}\n", 1, "only version 1 is supported"),
    ("jsonl", "{\"foresee\":1,\"order\":\"x\"}\n", 1, "there is no \"order\" \"x\""),
];

#[test]
fn messages_say_where_and_what() {
    for &(format, text, line, message) in WRONG {
        let error = loaded(text.as_bytes(), Some(by_name(format).unwrap())).unwrap_err();
        assert_eq!(error.at(), Position::Line(line), "{text:?}: {error}");
        assert_eq!(error.kind(), ErrorKind::Syntax, "{text:?}");
        assert!(error.to_string().contains(message), "{text:?}: {error}");
    }
}

#[test]
fn events_before_the_error_come_first() {
    let text = b"T1|w(x)|1\n\n# c\nT1|r(x)|2\nT1|nonsense|3\nT1|r(x)|4\n";
    let mut source = open_reader(Box::new(&text[..]), None).unwrap().source;
    let mut batch = Batch::default();
    assert!(source.next_batch(&mut batch).unwrap());
    assert_eq!(batch.events.len(), 2);
    assert_eq!(source.position(0), Position::Line(1));
    assert_eq!(source.position(1), Position::Line(4));
    assert_eq!(source.next_batch(&mut batch).unwrap_err().at(), Position::Line(5));
    assert!(!source.next_batch(&mut batch).unwrap());
}

#[test]
fn lines_are_told_in_every_batch() {
    let mut random = Random(9);
    let (mut text, mut lines) = (String::new(), Vec::new());
    for line in 1..50_000u64 {
        match random.below(5) {
            0 => text.push_str("# comment\n"),
            1 => text.push('\n'),
            _ => {
                text.push_str("T1|w(x)|7\r\n");
                lines.push(Position::Line(line));
            }
        }
    }
    let mut source = open_reader(Box::new(text.as_bytes()), None).unwrap().source;
    let (mut batch, mut at) = (Batch::default(), 0);
    while source.next_batch(&mut batch).unwrap() {
        for i in (0..batch.events.len()).step_by(97) {
            assert_eq!(source.position(i), lines[at + i]);
        }
        at += batch.events.len();
    }
    assert_eq!(at, lines.len());
}

#[test]
fn files_that_are_no_traces_are_described() {
    let error = |bytes: &[u8]| loaded(bytes, None).unwrap_err();
    assert_eq!(error(b"").to_string(), "the file is empty");
    assert_eq!(
        error(b"hello world\nsecond line").to_string(),
        "this is not a trace in a known format (native, std, rr, csv, jsonl); it begins with the \
         text \"hello world\""
    );
    let binary = error(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\xff\xfe\xfd");
    assert!(binary.to_string().ends_with("bytes 7f 45 4c 46 02 01 01 00 00 00 00 00 00 00 00 00"));
    assert!(error(b"a|b|c|d|e\n").to_string().contains("text \"a|b|c|d|e\""));
    let long = error(&[b'z'; 100_000]).to_string();
    assert!(long.len() < 250 && long.contains("zzz"), "{long}");
    for bytes in [&b""[..], b"hello", b"\x89FSE", b"{}\n", b"\n\n", b"\x1f\x8b"] {
        let error = error(bytes);
        assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Io), "{bytes:?} {error}");
    }
    let text_mode = error(b"\x89FSE\n\x1a\n\x01\0\0\0\0\0\0\0\0").to_string();
    assert!(text_mode.contains("transfer in text mode"), "{text_mode}");
    let missing = open("no/such/file".as_ref(), None).map(|_| ()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot open no/such/file:"), "{missing}");
    let folder = open(".".as_ref(), None).map(|_| ()).unwrap_err();
    assert!(folder.to_string().contains("is a directory"), "{folder}");
}

#[test]
fn text_that_is_not_utf8_has_a_line() {
    for format in FORMATS.iter().filter(|f| f.name() != "native") {
        let error = loaded(b"# one\n# two \xc3\x28\n", Some(*format)).unwrap_err();
        assert_eq!(error.to_string(), "line 2: byte 7 of the line, 0xc3, is not UTF-8");
    }
}

/// Yields a text piece by piece, and panics when more is requested.
struct Live(Vec<&'static str>);

impl std::io::Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        assert!(!self.0.is_empty(), "the reader waits for what it does not need");
        let piece = self.0.remove(0).as_bytes();
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn a_live_trace_is_recognised_by_its_first_lines() {
    for (format, pieces) in [
        ("std", vec!["# hello\n", "T1|", "w(x)|1\n"]),
        ("csv", vec!["# threads: a,b\n", ",w(x)\n"]),
        ("rr", vec!["[main: loaded]\n", "@  main[tid = 0] started .\n@  Acquire(0,@1)\n"]),
        ("jsonl", vec!["{\"thread\":\"T1\",", "\"op\":\"begin\"}\n"]),
    ] {
        let opened = open_reader(Box::new(Live(pieces)), None).unwrap();
        assert_eq!(opened.format.name(), format);
    }
}

/// Yields the same byte forever and counts the requests.
struct Endless(usize);

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 += buffer.len();
        assert!(self.0 < 8 << 20, "the reader does not give up");
        buffer.fill(b'a');
        Ok(buffer.len())
    }
}

#[test]
fn an_endless_line_is_refused_early() {
    for format in FORMATS {
        let result = open_reader(Box::new(Endless(0)), Some(*format))
            .and_then(|mut opened| Trace::load(&mut opened.source));
        let error = result.unwrap_err();
        let expected = if format.name() == "native" { ErrorKind::Format } else { ErrorKind::Limit };
        assert_eq!(error.kind(), expected, "{}: {error}", format.name());
    }
}

#[test]
fn the_longest_line_is_read_and_no_longer_one_is_written() {
    let name = "n".repeat(MAX_LINE - "T|w()|".len());
    let text = format!("T|w({name})|\n");
    let mut trace = loaded(text.as_bytes(), None).unwrap();
    assert_eq!(written(&trace, by_name("std").unwrap()), text.as_bytes());
    push(&mut trace, "T", foresee_trace::Op::Write, &format!("{name}n"), &[], "");
    let bytes = Bytes::default();
    let mut sink = by_name("std").unwrap().write(Box::new(bytes.clone()));
    let batch = Batch { events: trace.events, pool: trace.pool, ..Batch::default() };
    let error = sink.write_batch(&batch, &trace.names).unwrap_err();
    assert!(error.to_string().contains("an event needs a line of more than"), "{error}");
}

#[test]
fn names_of_others_are_taken_as_they_are() {
    for (text, name) in [
        ("T1|w(a b)|1", "a b"),
        ("T1|w(a(b)|1", "a(b"),
        ("T1|w(a)b)|1", "a)b"),
        ("T1|w(f(x,y).z)|1", "f(x,y).z"),
        ("T1|w(x,y)|1", "x,y"),
        ("T1|w(a\"b)|1", "a\"b"),
        (" T1 | w(x) | 1 ", "x"),
    ] {
        let trace = loaded(text.as_bytes(), None).unwrap();
        assert_eq!(trace.events[0].target_name(&trace.names), Some(name), "{text}");
        assert_eq!(trace.names.threads.get(trace.events[0].thread()), "T1");
        assert_eq!(trace.names.locs.get(trace.events[0].loc()), "1");
    }
}
