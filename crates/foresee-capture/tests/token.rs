//! The token goes from thread to thread, whatever they do and however many there are.

use std::path::{Path, PathBuf};

use crate::native::{Workshop, by_thread, only_trace, trace};
use crate::survival::reads;
use foresee_capture::log;

const GCC: [&str; 2] = ["gcc", "g++"];

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

#[test]
fn a_thread_that_computes_without_hooks_does_not_stop_the_others() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &program("spinner.c"), &["-O0"]);
    for filter in ["none", "shared"] {
        let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", filter)]);
        assert!(out.status.success(), "{out:?}");
        let (log, trace, stats) = trace(&log::find(&logs).unwrap()[0], &program);
        // What it had stored is known, in its place, with its value.
        assert_eq!((stats.external_writes, stats.inexact), (0, 0), "{filter}");
        assert_eq!(log.header.takes, 0, "it did not sleep");
        if filter == "none" {
            let events = by_thread(&trace);
            assert!(events["T1"].contains(&"w(stored)=7".to_owned()), "{:?}", events["T1"]);
        }
        assert!(
            trace.remarks.partial.as_deref().is_some_and(|why| why.contains("T1 had not ended"))
        );
    }
}

#[test]
fn races_of_threads_that_compute_in_between_have_no_wrong_value() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &program("computes.c"), &["-O1"]);
    for quantum in ["7", "100000"] {
        let settings = [("FORESEE_FILTER", "none"), ("FORESEE_QUANTUM", quantum)];
        let (out, logs) = workshop.capture(&program, &settings);
        let (_, trace, stats) = only_trace(&out, &logs, &program);
        let (all, foreign, wrong) = reads(&trace);
        assert_eq!((wrong, stats.external_writes), (0, 0), "of {all}");
        assert!(foreign >= 50, "the token was taken rarely: {foreign} of {all}");
        // A thread that the kernel stops just before a store may not have stored yet: that is marked, and rare.
        assert!(stats.inexact <= 3, "{} of {all}", stats.inexact);
    }
}

#[test]
fn thousands_of_threads_at_once_are_recorded() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &program("many.c"), &["-O1"]);
    let (out, logs) = workshop.capture(&program, &[("THREADS", "2500")]);
    let (log, _, stats) = only_trace(&out, &logs, &program);
    assert_eq!(log.threads, 2501);
    assert_eq!((stats.external_writes, stats.inexact), (0, 0));
}
