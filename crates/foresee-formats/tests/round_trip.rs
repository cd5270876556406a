//! What is written can be read back, in every format and through every pair of formats.

use crate::common::*;
use foresee_formats::{FORMATS, Format};
use foresee_trace::generate::{Config, Generator};
use foresee_trace::{Batch, Event, FileOrder, Mode, Names, Op, Remarks, Trace, Validated, Value};

fn assert_same(expected: &Trace, got: &Trace, format: &dyn Format) {
    let outer = format.name() != "native";
    let (expected_events, got_events) = (meaning(expected, outer), meaning(got, outer));
    assert_eq!(expected_events.len(), got_events.len(), "{}", format.name());
    for (e, g) in expected_events.iter().zip(&got_events) {
        assert_eq!(e, g, "{}", format.name());
    }
    assert_eq!(expected.remarks.order, got.remarks.order, "{}", format.name());
    assert_eq!(expected.remarks.cut_short, got.remarks.cut_short, "{}", format.name());
}

/// Traces of the generator, with everything it can generate.
#[test]
fn generated_traces_come_back_in_every_format() {
    for seed in 0..1_000 {
        let config = Config { locations: 3, events: 30, ..Config::small(seed) };
        let trace = Trace::load(&mut Generator::new(config).unwrap()).unwrap();
        for &format in FORMATS {
            let read = loaded(&written(&trace, format), Some(format)).unwrap();
            assert_same(&trace, &read, format);
        }
    }
}

/// A trace of notes must say so before its first event; otherwise it is judged as observed.
#[test]
fn the_order_is_known_before_the_first_event() {
    let notes = Remarks { order: FileOrder::Notes, ..Remarks::default() };
    for format in FORMATS {
        let bytes = Bytes::default();
        let mut sink = format.write(Box::new(bytes.clone()));
        let mut names = Names::default();
        let (t, x) = (names.thread("T1").unwrap(), names.vars.intern("x").unwrap());
        let mut batch = Batch::default();
        for value in [1, 2] {
            let event = Event::new(t, if value == 1 { Op::Write } else { Op::Read });
            let event = event.with_target(x.0).with_values(&[Value::Int(value)], &mut batch.pool);
            batch.events.push(event);
        }
        sink.begin(&notes).unwrap();
        sink.write_batch(&batch, &names).unwrap();
        sink.finish(&names, &notes).unwrap();
        drop(sink);
        let data = bytes.0.borrow().clone();
        let source = format.read(Box::new(&data[..])).unwrap();
        // The read does not see the write: valid only for notes.
        let read = Trace::load(&mut Validated::new(source, Mode::Reject));
        assert_eq!(read.unwrap().remarks.order, FileOrder::Notes, "{}", format.name());
    }
}

#[test]
fn a_rich_trace_survives_every_format() {
    let trace = rich_trace();
    for &format in FORMATS {
        let bytes = written(&trace, format);
        let got = loaded(&bytes, None).unwrap_or_else(|e| panic!("{}: {e}", format.name()));
        assert_same(&trace, &got, format);
        assert!(got.remarks.warnings.is_empty());
    }
}

#[test]
fn random_traces_survive_every_format_and_are_recognised() {
    let mut random = Random(1);
    for round in 0..1500 {
        let trace = random_trace(&mut random, round % 40);
        for &format in FORMATS {
            let bytes = written(&trace, format);
            let got = loaded(&bytes, None).unwrap_or_else(|e| {
                panic!("{}: {e}\n{}", format.name(), String::from_utf8_lossy(&bytes))
            });
            assert_same(&trace, &got, format);
        }
    }
}

#[test]
fn an_empty_trace_is_a_trace() {
    for order in [FileOrder::Observed, FileOrder::Notes] {
        let mut trace = Trace::default();
        trace.remarks.order = order;
        for &format in FORMATS {
            let bytes = written(&trace, format);
            assert!(!bytes.is_empty());
            for other in FORMATS {
                assert_eq!(other.sniff(&bytes), other.name() == format.name());
            }
            assert_same(&trace, &loaded(&bytes, None).unwrap(), format);
        }
    }
}

#[test]
fn threads_that_come_late_get_their_column() {
    let mut random = Random(7);
    let mut trace = Trace::default();
    for i in 0..20_000 {
        // Threads appear over several batches; the first ones have the names of their columns.
        let thread = match random.below(1 + i / 100) {
            t @ 0..50 => format!("T{t}"),
            t => format!("worker,{t}"),
        };
        push(&mut trace, &thread, foresee_trace::Op::Write, "x", &[], "");
    }
    let csv = foresee_formats::Csv;
    // A reader learns names gradually, so the writer does, too.
    let text = written(&trace, &foresee_formats::Std);
    let mut source = foresee_formats::open_reader(Box::new(&text[..]), None).unwrap().source;
    let output = Bytes::default();
    copy(&mut source, &mut *csv.write(Box::new(output.clone())));
    let bytes = output.0.take();
    let comments = String::from_utf8(bytes.clone()).unwrap().matches("# threads:").count();
    assert!(comments >= 2, "{comments}");
    assert_same(&trace, &loaded(&bytes, None).unwrap(), &csv);
}

#[test]
fn compressed_files_are_written_whole_and_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let trace = random_trace(&mut Random(3), 3000);
    for &format in FORMATS {
        for ending in ["", ".gz", ".zst"] {
            let path = folder.path().join(format!("trace.{}{ending}", format.name()));
            let mut output = foresee_formats::create(&path, format).unwrap();
            assert!(!path.exists());
            copy(&mut trace.source(), &mut output);
            let mut opened = foresee_formats::open(&path, None).unwrap();
            assert_eq!(opened.format.name(), format.name());
            assert_same(&trace, &Trace::load(&mut opened.source).unwrap(), format);
            let bytes = std::fs::read(&path).unwrap();
            let magic: &[u8] = match ending {
                ".gz" => &[0x1f, 0x8b],
                ".zst" => &[0x28, 0xb5, 0x2f, 0xfd],
                _ => &[],
            };
            assert!(bytes.starts_with(magic));
            if !magic.is_empty() {
                let error = loaded(&bytes[..bytes.len() - 9], None).unwrap_err();
                assert!(error.to_string().contains("compressed data is cut off"), "{error}");
            }
        }
    }
    // A writer that gives up leaves neither the file nor a temporary one.
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    drop(foresee_formats::create(&folder.path().join("never"), FORMATS[0]).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}

/// The remark that a trace is incomplete must survive conversion: without it, the trace would claim
/// to be complete.
#[test]
fn what_is_missing_is_remembered() {
    let told = Remarks {
        cut_short: Some("the disk \"was\" full".to_owned()),
        partial: Some("libz.so was not built for capture".to_owned()),
        ..Remarks::default()
    };
    for said in [told.clone(), Remarks { cut_short: None, ..told }] {
        for format in FORMATS {
            let bytes = Bytes::default();
            let mut sink = format.write(Box::new(bytes.clone()));
            let mut names = Names::default();
            let (t, x) = (names.thread("T1").unwrap(), names.vars.intern("x").unwrap());
            let mut batch = Batch::default();
            batch.events.push(Event::new(t, Op::Write).with_target(x.0));
            sink.begin(&said).unwrap();
            sink.write_batch(&batch, &names).unwrap();
            sink.finish(&names, &said).unwrap();
            drop(sink);
            let data = bytes.0.borrow().clone();
            let read = Trace::load(&mut format.read(Box::new(&data[..])).unwrap()).unwrap();
            assert_eq!(read.remarks.partial, said.partial, "{}", format.name());
            assert_eq!(read.remarks.cut_short, said.cut_short, "{}", format.name());
        }
    }
}
