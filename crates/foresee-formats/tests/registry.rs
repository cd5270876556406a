//! Walks the list of formats: what each must provide and how it is detected.
#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::common::*;
use foresee_formats::{FORMATS, Native, open};
use foresee_trace::{FileOrder, Trace};

fn samples(format: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats");
    let files = std::fs::read_dir(folder.join(format)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_format_is_documented_and_has_samples_that_only_it_claims() {
    let mut names = HashSet::new();
    for format in FORMATS {
        assert!(names.insert(format.name()));
        assert!(!format.about().is_empty() && !format.about().contains('\n'));
        let samples = samples(format.name());
        assert!(!samples.is_empty(), "{}", format.name());
        for sample in samples {
            let bytes = std::fs::read(&sample).unwrap();
            for other in FORMATS {
                let claims = other.sniff(&bytes);
                assert_eq!(claims, other.name() == format.name(), "{} {sample:?}", other.name());
            }
            let mut opened = open(&sample, None).unwrap();
            assert_eq!(opened.format.name(), format.name());
            let trace =
                Trace::load(&mut opened.source).unwrap_or_else(|e| panic!("{sample:?} {e}"));
            assert!(!trace.events.is_empty());
            assert_eq!(trace.remarks.cut_short, None);
        }
    }
}

/// The samples contain what the documentation says.
#[test]
fn samples_are_understood() {
    let events = |file: &str| {
        let (format, _) = file.split_once('/').unwrap();
        let path = samples(format).into_iter().find(|path| path.ends_with(file)).unwrap();
        let trace = Trace::load(&mut open(&path, None).unwrap().source).unwrap();
        let describe = |event: &foresee_trace::Event| {
            let thread = trace.names.threads.get(event.thread());
            let loc = trace.names.locs.get(event.loc());
            format!("{thread}: {} @{loc}", event.describe(&trace.names, &trace.pool))
        };
        (trace.events.iter().map(describe).collect::<Vec<_>>(), trace.remarks.clone())
    };
    let (rapid, _) = events("std/rapid.std");
    assert_eq!(rapid[1], "T12: r(V234.23[0]) @345");
    assert_eq!(rapid[8], "T0: w(x) @");
    let (all, remarks) = events("std/every-operation.std");
    assert_eq!((all.len(), remarks.order), (27, FileOrder::Notes));
    assert_eq!(all[23], "T0: notify_all(c) @");
    let (rr, remarks) = events("rr/deadlock.rr");
    assert_eq!(rr[0], "0: enter(test/Deadlock.main([Ljava/lang/String;)V) @");
    assert_eq!(rr[1], "0: fork(1) @");
    assert_eq!(rr[3], "2: acq(@03) @");
    assert_eq!(rr[4], "2: r(null.test/Deadlock.value_I) @Deadlock.java:50:7");
    assert_eq!(rr[5], "2: w(@05[13]) @Functions.java:116:153");
    assert_eq!(rr[6], "2: vr(null.test/Deadlock.done_Z) @Deadlock.java:52:7");
    assert_eq!(
        remarks.warnings,
        ["5 lines are not events and were skipped, first \"[main: RoadRunner Agent Loaded.]\""]
    );
    let (csv, _) = events("csv/example.csv");
    assert_eq!(csv[0], "T0: fork(T1) @");
    assert_eq!(csv[1], "T0: fork(T2) @");
    assert_eq!(csv[6], "T2: rmw(x) @");
    assert_eq!(csv[7], "T2: enter(f,1,\"two words\") @");
    let (named, _) = events("csv/named.csv");
    assert_eq!(named, ["main: w(x)=20 @main.c:14", "pool, 1: r(x)=20 @main.c:31", "late: begin @"]);
    let (json, _) = events("jsonl/example.jsonl");
    assert_eq!(json[2], "T1: w(x)=20 @main.c:14");
    assert_eq!(json[3], "T1: rmw(n)=1->2 @");
    assert_eq!(json[4], "T1: w(f)=2.0 @");
    assert_eq!(json[8], "T1: enter(next,it7,true,18446744073709551615) @");
    assert_eq!(events("native/every-operation.fse").0, all);
}

/// The native sample is the std sample, byte for byte: the format must not change accidentally. Run
/// with `FORESEE_BLESS=1` after a deliberate change of version.
#[test]
fn the_native_sample_is_what_we_write() {
    let text = samples("std").into_iter().find(|p| p.ends_with("std/every-operation.std")).unwrap();
    let trace = Trace::load(&mut open(&text, None).unwrap().source).unwrap();
    let bytes = written(&trace, &Native);
    let sample = text.parent().unwrap().join("../native/every-operation.fse");
    if std::env::var_os("FORESEE_BLESS").is_some() {
        std::fs::write(&sample, &bytes).unwrap();
    }
    assert!(bytes == std::fs::read(&sample).unwrap(), "the native format has changed");
}
