//! What was recorded outlives the program, however it ends, and what is read is true.

use std::process::Command;

use crate::native::{Workshop, by_thread, killed, only_trace, programs, trace};
use foresee_capture::log::{self, End, Log, LogError};
use foresee_testkit::tools::compilers;
use foresee_trace::Op;

const GCC: [&str; 2] = ["gcc", "g++"];

fn has(trace: &foresee_trace::Trace, thread: &str, event: &str) -> bool {
    by_thread(trace).get(thread).is_some_and(|events| events.iter().any(|e| e == event))
}

/// Runs `ends` in one of its ways under capture, without a filter.
fn ends(
    workshop: &Workshop,
    how: &str,
) -> (std::process::Output, Vec<std::path::PathBuf>, std::path::PathBuf) {
    let program = workshop.build(GCC, &programs().join("ends.c"), &["-O0"]);
    let (out, logs) = workshop.capture(&program, &[("HOW", how), ("FORESEE_FILTER", "none")]);
    (out, log::find(&logs).expect("the directory is there"), program)
}

#[test]
fn records_outlive_every_end() {
    for (how, dies) in
        [("kill", true), ("abort", true), ("segv", true), ("_exit", false), ("exit", false)]
    {
        let workshop = Workshop::new();
        let (out, tails, program) = ends(&workshop, how);
        assert_eq!(killed(out.status), dies, "{how}: {:?}", out.status);
        let (log, trace, _) = trace(&tails[0], &program);
        assert_eq!(log.header.end, if dies { End::Running } else { End::Ended }, "{how}");
        assert_eq!(trace.remarks.cut_short.is_some(), dies, "{how}");
        // The constructor's write came before anything else, and nothing after it is lost.
        assert!(has(&trace, "main", "w(shared)=1"), "{how}");
        assert!(has(&trace, "T1", "w(shared)=2"), "{how}");
        assert!(has(&trace, "main", "join(T1)"), "{how}");
        let last = ["w(before_the_end)=7", "w(before_the_end)"].map(|e| has(&trace, "main", e));
        assert!(last.contains(&true), "{how}: {:?}", by_thread(&trace));
    }
}

#[test]
fn a_program_that_takes_the_place_of_another_has_a_log_of_its_own() {
    let workshop = Workshop::new();
    let (out, tails, program) = ends(&workshop, "exec");
    assert!(out.status.success(), "{out:?}");
    assert_eq!(tails.len(), 2);
    let (first, _, _) = trace(&tails[0], &program);
    let (second, _, _) = trace(&tails[1], &program);
    assert_eq!((first.header.end, second.header.end), (End::Replaced, End::Ended));
    assert_eq!(first.header.pid, second.header.pid);
}

#[test]
fn a_forked_child_has_a_trace_of_its_own() {
    let workshop = Workshop::new();
    let (out, tails, program) = ends(&workshop, "fork");
    assert!(out.status.success(), "{out:?}");
    assert_eq!(tails.len(), 2);
    let (parent, parents, _) = trace(&tails[0], &program);
    let (child, childs, _) = trace(&tails[1], &program);
    assert_eq!(child.header.forked_from, Some(parent.header.pid));
    assert!(has(&childs, "main", "w(child_only)=5") && !has(&parents, "main", "w(child_only)=5"));
    assert!(has(&childs, "T1", "w(shared)=3"), "{:?}", by_thread(&childs));
    assert!(has(&parents, "main", "w(shared)=3"), "{:?}", by_thread(&parents));
}

#[test]
fn handlers_cleanups_destructors_and_detached_threads_are_recorded() {
    for (how, thread, event) in [
        ("signal", "main", "w(in_handler)=10"),
        ("cancel", "T2", "w(in_cleanup)=1"),
        ("key", "T2", "w(in_destructor)=1"),
        ("detach", "T2", "w(shared)=3"),
    ] {
        for filter in ["none", "shared"] {
            let workshop = Workshop::new();
            let program = workshop.build(GCC, &programs().join("ends.c"), &["-O0"]);
            let (out, logs) =
                workshop.capture(&program, &[("HOW", how), ("FORESEE_FILTER", filter)]);
            // Exit status 2 would mean that errno was touched.
            let (_, trace, _) = only_trace(&out, &logs, &program);
            assert!(
                filter != "none" || has(&trace, thread, event),
                "{how}: {:?}",
                by_thread(&trace)
            );
        }
    }
}

/// How many reads there are, how many of them see another thread's write, and how many something
/// else than the last write; found without any code of foresee's.
pub(crate) fn reads(trace: &foresee_trace::Trace) -> (usize, usize, usize) {
    let mut last = std::collections::HashMap::new();
    let (mut all, mut foreign, mut wrong) = (0, 0, 0);
    for event in trace.events.iter().filter(|e| matches!(e.op(), Op::Read | Op::Write)) {
        let (who, value) = (event.thread(), trace.pool.value(event));
        if event.op() == Op::Write {
            last.insert(event.var(), (who, value));
        } else if let Some((writer, written)) = last.get(&event.var()) {
            all += 1;
            foreign += usize::from(*writer != who);
            wrong += usize::from(*written != value);
        }
    }
    (all, foreign, wrong)
}

#[test]
fn a_race_of_a_million_accesses_has_no_wrong_value() {
    let workshop = Workshop::new();
    for compiler in compilers() {
        let program = workshop.build(compiler, &programs().join("racy.c"), &["-O1"]);
        for filter in ["none", "shared"] {
            // Short turns, so that threads read each other's writes often.
            let settings = [("FORESEE_FILTER", filter), ("FORESEE_QUANTUM", "97")];
            let (out, logs) = workshop.capture(&program, &settings);
            assert_eq!(out.stdout, b"done\n", "the program's output is its own");
            let (log, trace, stats) = only_trace(&out, &logs, &program);
            assert!(log.header.hooks > 1_000_000, "{}", log.header.hooks);
            assert_eq!(log.threads, 5);
            assert_eq!((stats.external_writes, stats.inexact), (0, 0), "{filter}");
            let (all, foreign, wrong) = reads(&trace);
            assert_eq!(wrong, 0, "of {all}");
            if filter == "none" {
                assert!(trace.events.len() > 1_000_000);
                assert!(all > 700_000 && stats.checked_reads >= all as u64, "{all}");
                // Others' writes are what could have been missed.
                assert!(foreign > 100, "{foreign} of {all}");
            }
        }
    }
}

/// Accesses that the filter leaves out because locks order them must not be missing for readers of the trace.
#[test]
fn values_are_right_whatever_orders_the_accesses() {
    let workshop = Workshop::new();
    for (level, quantum) in [("-O0", "61"), ("-O2", "1009"), ("-O1", "20000")] {
        let program = workshop.build(GCC, &programs().join("mixed.c"), &[level]);
        let mut events = Vec::new();
        for filter in ["none", "shared"] {
            let settings = [("FORESEE_FILTER", filter), ("FORESEE_QUANTUM", quantum)];
            let (out, logs) = workshop.capture(&program, &settings);
            let (_, trace, stats) = only_trace(&out, &logs, &program);
            // On a machine that has too much to do, a thread may be kept from going on so long that the token is taken
            // from it; a store that was under way is then marked as inexact, and may look like somebody else's. A try-lock
            // that fails while a waiting thread is about to give up the lock, or has just got it back, is inexact, too.
            assert!(stats.external_writes <= stats.inexact, "{level} {filter}: {stats:?}");
            assert!(stats.inexact * 50 < stats.events, "{level} {filter}: {stats:?}");
            events.push(trace.events.len());
        }
        assert!(events[1] * 3 < events[0] * 2, "{level}: {events:?}");
    }
}

#[test]
fn a_log_that_reaches_its_limit_is_cut_short_and_says_so() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &programs().join("racy.c"), &["-O1"]);
    let settings = [("FORESEE_FILTER", "none"), ("FORESEE_LIMIT", "1000000")];
    let (out, logs) = workshop.capture(&program, &settings);
    let (log, trace, stats) = only_trace(&out, &logs, &program);
    assert_eq!(log.header.end, End::Limit);
    assert!(trace.remarks.cut_short.is_some_and(|why| why.contains("limit")));
    assert_eq!(stats.external_writes, 0);
}

#[test]
fn a_full_disk_is_reported_and_does_not_disturb_the_program() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &programs().join("racy.c"), &["-O1"]);
    let small = workshop.path("small");
    std::fs::create_dir(&small).unwrap();
    // A file system of its own, so small that the log does not fit. Who may not make one has the
    // device that is always full take the place of the log.
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small);
    let is_mounted = mount.output().is_ok_and(|out| out.status.success());
    let script = match is_mounted {
        true => "exec \"$0\"",
        false => "ln -s /dev/full \"$FORESEE_CAPTURE/$$.0.log\" && exec \"$0\"",
    };
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&program);
    command.env("FORESEE_CAPTURE", &small).env("FORESEE_FILTER", "none");
    let out = command.output().unwrap();
    let result = std::panic::catch_unwind(|| {
        let (log, trace, _) = only_trace(&out, &small, &program);
        assert!(matches!(log.header.end, End::Failed(28)), "{:?}", log.header.end);
        assert!(trace.remarks.cut_short.is_some_and(|why| why.contains("no space")));
        assert!(trace.events.len() > 10_000, "what was recorded before is there");
    });
    if is_mounted {
        let _ = Command::new("umount").arg(&small).status();
    }
    result.unwrap();
    assert_eq!(out.stdout, b"done\n");
}

#[test]
fn what_is_no_log_is_refused_with_a_reason() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &programs().join("racy.c"), &["-O1"]);
    let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
    assert!(out.status.success());
    let tail = &log::find(&logs).unwrap()[0];
    let good = std::fs::read(tail).unwrap();
    let file = tail.with_extension("log");
    let chunks = std::fs::read(&file).unwrap();
    assert!(chunks.len() > 100_000);

    let opened = |tail_bytes: &[u8], log_bytes: &[u8]| {
        std::fs::write(tail, tail_bytes).unwrap();
        std::fs::write(&file, log_bytes).unwrap();
        Log::open(tail)
    };
    assert!(opened(&good, &chunks).is_ok());
    let mut bad = chunks.clone();
    bad[50_000] ^= 4;
    assert!(matches!(opened(&good, &bad), Err(LogError::Corrupt(..))));
    assert!(matches!(opened(&good, &chunks[..chunks.len() / 2]), Err(LogError::Corrupt(..))));
    assert!(matches!(opened(b"hello", &chunks), Err(LogError::NotALog(_))));
    assert!(matches!(opened(b"", &chunks), Err(LogError::Empty(_))));
    let mut other = good.clone();
    other[8] = 9;
    let error = opened(&other, &chunks).unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn damage_never_leads_to_more_than_an_error() {
    let workshop = Workshop::new();
    let (_, tails, _) = ends(&workshop, "exit");
    let good = std::fs::read(&tails[0]).unwrap();
    let (mut seed, mut refused) = (7u64, 0);
    for _ in 0..2000 {
        let mut bad = good.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (at, bit) = ((seed >> 20) as usize % 1200, seed >> 60);
            // The header, but for magic and version, and the first records.
            let at = if at < 100 { 12 + at } else { 4000 + at };
            bad[at] ^= 1 << (bit & 7);
        }
        std::fs::write(&tails[0], &bad).unwrap();
        let Ok(log) = Log::open(&tails[0]) else {
            refused += 1;
            continue;
        };
        let mut source = log.source(log::Plain::new(&log.modules)).unwrap();
        let _ = foresee_trace::Trace::load(&mut source);
    }
    assert!((100..2000).contains(&refused), "{refused}");
}

#[test]
fn a_thread_that_sleeps_unseen_does_not_stop_the_others() {
    let workshop = Workshop::new();
    let program = workshop.build(GCC, &programs().join("sleeper.c"), &["-O0"]);
    let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
    let (log, trace, stats) = only_trace(&out, &logs, &program);
    assert!(log.header.takes >= 1);
    assert!(stats.inexact >= 1, "the announced store is marked");
    assert_eq!(stats.external_writes, 0);
    // What main did while the other slept stands before what the other did then.
    let position = |event: &str| {
        let is =
            |e: &foresee_trace::Event| e.describe(&trace.names, &trace.pool).to_string() == event;
        trace.events.iter().position(is)
    };
    assert!(position("w(x)=1") < position("w(y)=5") && position("w(y)=5") < position("w(x)=2"));
    assert!(!trace.remarks.warnings.is_empty(), "and the user is told");
}
