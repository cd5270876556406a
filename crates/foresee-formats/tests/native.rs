//! Native files: complete, cut off, damaged, continued, and read from the middle.
#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::path::Path;

use crate::common::*;
use foresee_formats::native::{Indexed, append};
use foresee_formats::{Format, Native};
use foresee_trace::{
    Batch, EventSource, FileOrder, LocId, Op, Position, StackId, TargetKind, Trace, Value,
};

fn small_trace() -> Trace {
    let mut trace = Trace::default();
    // Few of the names, because the tests visit every bit of the file.
    let mut values = nasty_values(&mut Trace::default().names);
    values.truncate(26);
    for name in ["", "a|b", "é"] {
        values.push(Value::Str(trace.names.syms.intern(name).unwrap()));
    }
    values.extend_from_within(..25);
    for (i, &op) in Op::ALL.iter().enumerate() {
        let most = match op.target_kind() {
            _ if op.requests() => 0,
            TargetKind::Var if !op.weakens() => 1,
            TargetKind::Sym => 3,
            _ => 0,
        };
        push(&mut trace, "main", op, "x", &values[i..i + most], "a.c:1");
        push(&mut trace, "other", op, "y", &[], "");
    }
    trace.remarks.cut_short = Some("asked to".into());
    let outer = trace.names.stacks.call(StackId::EMPTY, LocId(1));
    let inner = trace.names.stacks.call(outer, LocId(1));
    let all = [StackId::NONE, inner, inner, outer, StackId::EMPTY];
    trace.stacks = (0..trace.events.len()).map(|i| all[i / 3 % all.len()]).collect();
    trace
}

/// The places of the calls that led to each event; nothing where they are not known.
fn calls(trace: &Trace) -> Vec<Option<Vec<&str>>> {
    let of = |stack: StackId| {
        let places = trace.names.stacks.calls(stack).map(|at| trace.names.locs.get(at));
        (stack != StackId::NONE).then(|| places.collect())
    };
    let stacks = trace.stacks.iter().copied().chain(std::iter::repeat(StackId::NONE));
    stacks.take(trace.events.len()).map(of).collect()
}

#[test]
fn call_stacks_are_read_as_they_were_written() {
    let mut trace = Trace::default();
    let mut seed = 5u64;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut now = [StackId::EMPTY; 4];
    // More than fit into two frames.
    for _ in 0..150_000 {
        let thread = draw(now.len());
        now[thread] = match draw(6) {
            0 => StackId::NONE,
            1 => StackId::EMPTY,
            2 if now[thread] != StackId::NONE && trace.names.locs.len() > 1 => {
                let at = LocId(draw(trace.names.locs.len()) as u32);
                trace.names.stacks.call(now[thread], at)
            }
            _ => now[thread],
        };
        let place = format!("a.c:{}", 1 + draw(5));
        push(&mut trace, &format!("T{thread}"), Op::Write, "x", &[], &place);
        trace.stacks.push(now[thread]);
    }
    let bytes = written(&trace, &Native);
    let (got, whole) = read_prefix(&bytes);
    assert!(whole);
    assert!(calls(&got) == calls(&trace));
    assert!(trace.names.stacks.len() > 500, "{}", trace.names.stacks.len());
    // A trace that is cut off has the stacks of the events that it has.
    let (cut, _) = read_prefix(&bytes[..bytes.len() / 2]);
    assert!(cut.events.len() > 65_536 && calls(&cut) == calls(&trace)[..cut.events.len()]);
    // What is continued after that has its own, and the others stay.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let mut continued = append(&path).unwrap();
    let mut rest = Trace { names: continued.names, ..Trace::default() };
    let stack = rest.names.stacks.call(StackId::EMPTY, LocId(3));
    push(&mut rest, "T1", Op::Write, "x", &[], "");
    rest.stacks.push(stack);
    copy(&mut rest.source(), &mut *continued.sink);
    let after = loaded(&std::fs::read(&path).unwrap(), None).unwrap();
    let whole_frames = 65_536;
    assert!(calls(&after)[..whole_frames] == calls(&trace)[..whole_frames]);
    assert_eq!(calls(&after).last(), calls(&rest).last());
}

/// Reads what can be read; also returns whether that was everything.
fn read_prefix(bytes: &[u8]) -> (Trace, bool) {
    let mut trace = Trace::default();
    let Ok(mut source) = Native.read(Box::new(bytes)) else { return (trace, false) };
    let mut batch = Batch::default();
    let whole = loop {
        match source.next_batch(&mut batch) {
            Ok(true) => trace.push_batch(&mut batch),
            Ok(false) => break source.remarks().cut_short.is_none(),
            Err(error) => {
                assert!(matches!(error.at(), Position::Byte(at) if at <= bytes.len() as u64));
                assert!(!source.next_batch(&mut batch).unwrap());
                break false;
            }
        }
    };
    trace.names = source.names().clone();
    trace.remarks = source.remarks().clone();
    (trace, whole)
}

#[test]
fn a_file_cut_off_anywhere_gives_its_first_events() {
    let mut trace = small_trace();
    trace.remarks.cut_short = None;
    let bytes = written(&trace, &Native);
    let events = meaning(&trace, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut");
    let mut longest = 0;
    for length in 0..bytes.len() {
        let (got, whole) = read_prefix(&bytes[..length]);
        assert!(!whole, "{length}");
        let got = meaning(&got, false);
        assert_eq!(got, events[..got.len()], "{length}");
        assert!(got.len() >= longest, "{length}");
        longest = got.len();
        // The same events from the file, and when it is continued.
        std::fs::write(&path, &bytes[..length]).unwrap();
        let Ok(indexed) = Indexed::open(&path) else {
            assert!(length < 16, "{length}");
            continue;
        };
        assert!(indexed.remarks().cut_short.is_some());
        assert_eq!(meaning(&indexed.load_parallel(2).unwrap(), false), got, "{length}");
        let mut continued = append(&path).unwrap();
        assert_eq!(continued.events, got.len() as u64);
        let mut names = continued.names;
        names.vars.intern("later").unwrap();
        let mut rest = Trace { names, ..Trace::default() };
        push(&mut rest, "main", Op::Write, "later", &[Value::Bool(true)], "");
        copy(&mut rest.source(), &mut *continued.sink);
        let after = meaning(&loaded(&std::fs::read(&path).unwrap(), None).unwrap(), false);
        assert_eq!((&after[..got.len()], after.len()), (&got[..], got.len() + 1), "{length}");
        let again = Indexed::open(&path).unwrap().load_parallel(3).unwrap();
        assert_eq!(meaning(&again, false), after);
        assert_eq!(again.remarks.cut_short, None);
    }
    assert_eq!(longest, events.len());
}

#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    let mut trace = small_trace();
    trace.remarks.cut_short = None;
    let bytes = written(&trace, &Native);
    let events = meaning(&trace, false);
    assert!(read_prefix(&bytes).1);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (got, whole) = read_prefix(&flipped);
        assert!(!whole, "bit {bit} went unnoticed");
        let got = meaning(&got, false);
        assert_eq!(got, events[..got.len()], "bit {bit}");
    }
}

#[test]
fn garbage_is_refused_without_panic() {
    let mut random = Random(5);
    let bytes = written(&small_trace(), &Native);
    for _ in 0..20_000 {
        // Frames with correct checksums but invalid contents.
        let mut garbage = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(garbage.len());
            garbage[at] = random.next() as u8;
        }
        mend(&mut garbage);
        let (trace, _) = read_prefix(&garbage);
        // Whatever was accepted can be displayed and written.
        meaning(&trace, false);
        written(&trace, &Native);
        written(&trace, &foresee_formats::Jsonl);
    }
}

/// Corrects all checksums, as far as the lengths still lead from frame to frame.
fn mend(bytes: &mut [u8]) {
    let crc = crc32(&bytes[..12]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    let mut at = 16;
    while at + 16 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let Some(payload) = bytes.get(at + 16..at + 16 + length) else { return };
        let crc = crc32(payload).to_le_bytes();
        bytes[at + 12..at + 16].copy_from_slice(&crc);
        bytes[at + 1..at + 4].fill(0);
        let check = crc32(&bytes[at..at + 16]).to_le_bytes();
        bytes[at + 2..at + 4].copy_from_slice(&check[..2]);
        at += 16 + length;
    }
}

/// CRC-32 as documented, bit by bit; also a check of the library.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut crc, &byte| {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
        crc
    })
}

#[test]
fn a_mended_file_is_still_the_same() {
    let bytes = written(&small_trace(), &Native);
    let mut mended = bytes.clone();
    mend(&mut mended);
    assert_eq!(bytes, mended);
}

fn write_file(trace: &Trace, path: &Path) {
    let mut output = foresee_formats::create(path, &Native).unwrap();
    copy(&mut trace.source(), &mut output);
}

#[test]
fn a_file_is_read_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut trace = random_trace(&mut Random(11), 200_000);
    (trace.remarks.order, trace.remarks.cut_short) = (FileOrder::Notes, None);
    write_file(&trace, &path);
    let events = meaning(&trace, false);
    let indexed = Indexed::open(&path).unwrap();
    assert_eq!(indexed.events(), 200_000);
    assert!(indexed.blocks().len() > 3);
    assert_eq!(indexed.remarks().order, FileOrder::Notes);
    for threads in [1, 2, 3, 100] {
        let loaded = indexed.load_parallel(threads).unwrap();
        assert!(meaning(&loaded, false) == events, "{threads}");
    }
    for start in [0, 1, 65_535, 65_536, 131_071, 199_999, 200_000, 300_000] {
        let mut source = indexed.seek(start as u64).unwrap();
        let rest = Trace::load(&mut source).unwrap();
        assert!(meaning(&rest, false) == events[start.min(events.len())..], "{start}");
        assert_eq!(rest.remarks.cut_short, None);
    }
    let (mut batch, block) = (Batch::default(), indexed.blocks()[2]);
    indexed.read_block(2, &mut batch).unwrap();
    let part = Trace {
        events: batch.events,
        pool: batch.pool,
        names: indexed.names().clone(),
        ..Trace::default()
    };
    let first = block.first as usize;
    assert!(meaning(&part, false) == events[first..first + block.count as usize]);
}

#[test]
fn positions_are_those_of_the_records() {
    let trace = small_trace();
    let bytes = written(&trace, &Native);
    let mut source = Native.read(Box::new(&bytes[..])).unwrap();
    let mut batch = Batch::default();
    assert!(source.next_batch(&mut batch).unwrap());
    let mut last = 0;
    for (i, event) in batch.events.iter().enumerate() {
        let Position::Byte(at) = source.position(i) else { panic!() };
        assert!(at > last);
        last = at;
        assert_eq!(bytes[at as usize] & 0x7f, event.op() as u8);
    }
}

#[test]
fn a_sink_that_is_dropped_leaves_a_trace_cut_short() {
    let bytes = Bytes::default();
    let trace = random_trace(&mut Random(2), 100_000);
    let mut sink = Native.write(Box::new(bytes.clone()));
    let (mut source, mut batch) = (trace.source(), Batch::default());
    while source.next_batch(&mut batch).unwrap() {
        sink.write_batch(&batch, source.names()).unwrap();
    }
    drop(sink);
    let got = loaded(&bytes.0.take(), None).unwrap();
    assert_eq!(got.events.len(), 65_536);
    assert!(got.remarks.cut_short.unwrap().contains("end mark is missing"));
}

#[test]
fn the_example_of_the_document_is_a_trace() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/native.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, example) = document.split_once("## A whole file").unwrap();
    let block = example.split("```").nth(1).unwrap();
    let bytes: Vec<u8> = block
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert!(example.contains(&format!("in {} bytes", bytes.len())));
    let trace = loaded(&bytes, None).unwrap();
    assert_eq!(meaning(&trace, false), ["\"T\" Write Some(\"x\") [\"Int(20)\"] None \"\""]);
    assert_eq!(trace.remarks.cut_short, None);
}
