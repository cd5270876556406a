//! What goes wrong when a program is captured, end to end: each trouble is told, in words that
//! help, with the right exit status.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::Command;

use crate::harness::{Bench, ORDERED, RACE, cache, root, said, text};

#[test]
fn programs_that_were_not_built_for_capture() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    for (flags, says) in [
        ("", "it was not built for capture; build it with `foresee cc`"),
        ("-static", "it is statically linked"),
    ] {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(bench.dir.path()).args(flags.split_whitespace());
        assert!(gcc.args(["race.c", "-o", "plain", "-lpthread"]).status().unwrap().success());
        let (status, _, err) = bench.run("--spec s.spec -- ./plain");
        assert_eq!(status, 3, "{err}");
        assert!(err.contains(says), "{err}");
    }
    let (status, _, err) = bench.run("--spec s.spec -- ./absent");
    assert_eq!((status, err.contains("there is no program `./absent`")), (2, true), "{err}");
    let (status, _, err) = bench.run("-- true");
    assert_eq!((status, err.contains("nothing was captured of true")), (3, true), "{err}");
}

#[test]
fn two_runtimes_are_told_before_the_program_crashes() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    bench.built("cc -c race.c");
    let shown = Command::new("gcc").arg("-print-file-name=libtsan.so").output().unwrap();
    let library = text(&shown.stdout);
    assert!(library.starts_with('/'), "this gcc comes without libtsan: apt-get install g++");
    let folders = std::fs::read_dir(cache()).unwrap().map(|entry| entry.unwrap().path());
    let object = folders.map(|f| f.join("foresee_rt.o")).find(|f| f.exists()).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.current_dir(bench.dir.path()).arg("race.o").arg(object).args(["-o", "two", "-ltsan"]);
    assert!(gcc.status().unwrap().success());
    let (status, _, err) = bench.run("--spec s.spec -- ./two");
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("has the runtimes of both foresee and the thread sanitizer"), "{err}");
    let mut gcc = Command::new("gcc");
    gcc.current_dir(bench.dir.path()).args(["-fsanitize=thread", "race.c", "-o", "sanitized"]);
    assert!(gcc.status().unwrap().success());
    let (status, _, err) = bench.run("--spec s.spec -- ./sanitized");
    assert_eq!(status, 3, "{err}");
    assert!(err.contains("built with the compiler's own thread sanitizer"), "{err}");
}

#[test]
fn the_programs_own_end_is_shown() {
    let bench = Bench::new();
    bench.write("s.spec", ORDERED);
    let main = "int shared, done;\n#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n";
    for (body, flags, is_whole, says) in [
        ("shared = 1; done = 1; return 7;", "", true, "ended with exit status 7"),
        ("shared = 1; done = 1; _exit(4);", "", true, "ended with exit status 4"),
        ("shared = 1; abort();", "", false, "was killed by signal 6"),
        ("shared = 1; kill(getpid(), 9);", "", false, "was killed by signal 9"),
        ("shared = 1; *(volatile int *)0 = 1;", "", false, "was killed by signal 11"),
        ("shared = 1; sleep(60);", "--timeout 3 ", false, "was ended after 3 seconds"),
    ] {
        bench.write("end.c", &format!("{main}int main(void) {{ {body} }}\n"));
        bench.built("cc -w end.c -o program");
        let (status, out, err) = bench.run(&format!("{flags}--spec s.spec -- ./program"));
        assert_eq!(status, 1, "{body}\n{out}{err}");
        assert!(err.contains(says) && out.contains(says), "{body}\n{out}{err}");
        assert!(out.contains("OBSERVED program-failure"), "{body}\n{out}{err}");
        assert_eq!(!is_whole, out.contains("cut short"), "{body}\n{out}{err}");
        let ignore = format!("{flags}--ignore-program-failure --spec s.spec -- ./program");
        let (status, out, err) = bench.run(&ignore);
        assert_eq!(status, if is_whole { 0 } else { 3 }, "{body}\n{out}{err}");
        assert!(err.contains(says) && !out.contains("program-failure"), "{body}\n{out}{err}");
    }
}

#[test]
fn names_that_the_program_does_not_have() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.built("cc race.c -o program");
    bench.write("s.spec", "init shard = 0\nproperty p: done == 1 -> shard == 1\n");
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("did you mean `shared`?") && err.contains("s.spec:2"), "{err}");
    bench.write("s.spec", "pattern p: enter(wrok) .. exit(work)\n");
    let (status, _, err) = bench.run("--spec s.spec -- ./program");
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("the program has no function `wrok`"), "{err}");
}

#[test]
fn without_debugging_information_values_are_still_known() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    bench.built("cc race.c -o program");
    let strip = Command::new("strip").arg("-g").arg(bench.path("program")).status().unwrap();
    assert!(strip.success());
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("program has no debugging information"), "{out}{err}");
}

/// Two threads that write a variable so often that the log is longer than a mebibyte.
const BUSY: &str = "#include <pthread.h>\nvolatile int shared, done;\n\
    static void *work(void *p) { for (int i = 0; i < 300000; i++) shared = i; return p; }\n\
    int main(void) { pthread_t t, u; pthread_create(&t, 0, work, 0); pthread_create(&u, 0, work, 0);\n\
    pthread_join(t, 0); pthread_join(u, 0); shared = 1; done = 1; return 0; }\n";

/// `./program` is busy, and its specification holds.
fn busy() -> Bench {
    let bench = Bench::new();
    bench.write("busy.c", BUSY);
    bench.write("s.spec", ORDERED);
    bench.built("cc -O1 busy.c -o program");
    bench
}

#[test]
fn a_log_that_is_damaged_cut_off_or_of_another_version_is_refused() {
    let bench = busy();
    let log = "$FORESEE_CAPTURE/*.log";
    let tail = "$FORESEE_CAPTURE/*.tail";
    let overwrite = |bytes: &str, file: &str, at: u32| {
        format!("printf '{bytes}' | dd of=$(echo {file}) bs=1 seek={at} conv=notrunc status=none")
    };
    for (damage, says) in [
        (overwrite("\\377\\1\\2\\3", log, 50_000), ".0.log is damaged at byte"),
        (format!("truncate -s 100000 {log}"), ".0.log is damaged at byte"),
        (format!("rm {log}"), ".0.log"),
        // The version is what a program that was built with an older `foresee cc` would write.
        (
            overwrite("\\143\\0\\0\\0", tail, 8),
            "has version 99 of the log, this foresee reads version",
        ),
        (overwrite("what is this", tail, 0), "is not a log of foresee's runtime"),
        (format!("truncate -s 2000 {tail}"), "is not a log of foresee's runtime"),
        (overwrite("\\7", tail, 28), ".0.tail is damaged at byte 28"),
        (overwrite("\\377\\377\\377\\377", tail, 52), ".0.tail is damaged at byte 48"),
    ] {
        let (status, out, err) = bench.run_script("--spec s.spec", &format!("./program; {damage}"));
        assert_eq!((status, out.as_str()), (2, ""), "{damage}\n{err}");
        assert!(err.contains(says) && !err.contains("panicked"), "{damage}\n{err}");
    }
    let (status, out, err) = bench.run_script("--reorder maz --spec s.spec", "./program");
    assert_eq!(status, 0, "{out}{err}");
}

#[test]
fn a_full_disk_is_told_and_does_not_disturb_the_program() {
    let bench = busy();
    // The kernel's device that is always full takes the place of the log.
    let full = "ln -s /dev/full $FORESEE_CAPTURE/$$.0.log; exec ./program";
    // A file may not grow further; where the buffer fits, the log fails later than where it does not.
    let small = "trap '' XFSZ; ulimit -f 2000; exec ./program";
    let too_small = "its files may not become large enough (RLIMIT_FSIZE)";
    for (script, why) in [(full, "the disk is full"), (small, too_small)] {
        let (status, out, err) = bench.run_script("--spec s.spec", script);
        assert_eq!((status, err.as_str()), (3, ""), "{out}{err}");
        let says = format!("cut short: the log could not be written any further: {why}");
        assert!(out.contains(&says), "{out}{err}");
    }
    let nothing = "trap '' XFSZ; ulimit -f 10; exec ./program";
    let (status, out, err) = bench.run_script("--spec s.spec", nothing);
    assert_eq!((status, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("could not be recorded: ") && err.contains(too_small), "{err}");
}

#[test]
fn a_log_ends_at_its_limit() {
    let bench = busy();
    let (status, out, err) = bench.run("--log-limit 1 --spec s.spec -- ./program");
    assert_eq!((status, err.as_str()), (3, ""), "{out}");
    assert!(
        out.contains("cut short: the log reached its limit: allow more with --log-limit"),
        "{out}"
    );
    let whole = "--log-limit 1000 --spec s.spec";
    let (status, out, err) = bench.run(&format!("--reorder maz {whole} -- ./program"));
    assert_eq!(status, 0, "{out}{err}");
    // Beyond the causality so long a trace is searched in part, which is no complete answer.
    let (status, out, err) = bench.run(&format!("{whole} -- ./program"));
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("not all was searched") && !out.contains("; complete"), "{out}");
}

#[test]
fn when_time_is_up_everything_that_was_started_is_ended() {
    let bench = Bench::new();
    bench.write(
        "family.c",
        "#include <unistd.h>\nint shared, done;\n\
         int main(void) { if (!fork()) { setsid(); if (!fork()) { shared = 2; sleep(60); } sleep(60); }\n\
         shared = 1; sleep(60); done = 1; return 0; }\n",
    );
    bench.built("cc family.c -o program");
    bench.write("s.spec", ORDERED);
    let folder = bench.dir.path().display().to_string();
    let mark = format!("TEST_OF_TIMEOUTS={folder}");
    let still_run = || {
        let processes = std::fs::read_dir("/proc").unwrap();
        let environments = processes.map(|p| std::fs::read(p.unwrap().path().join("environ")));
        let has = |e: &Vec<u8>| e.split(|&b| b == 0).any(|variable| variable == mark.as_bytes());
        environments.filter_map(Result::ok).filter(has).count()
    };
    // Alone, behind a shell, and left behind by a shell that is gone.
    for (script, waits) in
        [("exec ./program", false), ("./program & wait", false), ("./program &", true)]
    {
        let mut command = bench.foresee();
        command.env("TEST_OF_TIMEOUTS", &folder);
        command.args(["run", "--timeout", "5", "--spec", "s.spec", "--", "sh", "-c", script]);
        let (status, out, err) = said(&command.output().unwrap());
        // That it had to be ended is a failure of its own.
        assert_eq!(status, 1, "{script}: {out}{err}");
        assert_eq!(out.matches("OBSERVED program-failure").count(), 1, "{script}: {out}{err}");
        assert_eq!(still_run(), 0, "{script}: {out}{err}");
        assert!(err.contains("sh was ended after 5 seconds"), "{script}: {err}");
        assert_eq!(err.contains("sh has ended; waiting for the process"), waits, "{script}: {err}");
        // All three have something to report, and say that it is incomplete.
        assert_eq!(out.matches("cut short: the program did not end by itself").count(), 3, "{out}");
    }
}

#[test]
fn what_the_program_leaves_running_is_waited_for() {
    let bench = Bench::new();
    bench.write(
        "late.c",
        "#include <unistd.h>\nint shared, done;\n\
         int main(void) { if (fork()) return 0; setsid(); usleep(300000); done = 1; return 0; }\n",
    );
    bench.built("cc late.c -o program");
    bench.write("s.spec", ORDERED);
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    // The child breaks it when its parent is long gone.
    assert_eq!((status, out.matches("OBSERVED ordered").count()), (1, 1), "{out}{err}");
    assert!(!out.contains("cut short"), "{out}");
    assert!(err.contains("has ended; waiting for the process"), "{err}");
}

#[test]
fn a_library_without_hooks_makes_the_answer_incomplete_unless_it_is_trusted() {
    let bench = Bench::new();
    bench.write("plain.c", "int half(int x) { return x / 2; }\n");
    bench.write(
        "user.c",
        "int half(int); int shared, done;\nint main(void) { shared = half(3); done = 1; return 0; }\n",
    );
    bench.write("s.spec", ORDERED);
    let mut gcc = Command::new("gcc");
    gcc.current_dir(bench.dir.path()).args(["-shared", "-fPIC", "plain.c", "-o", "libplain.so"]);
    assert!(gcc.status().unwrap().success());
    let folder = bench.dir.path().display();
    bench.built(&format!("cc user.c -o program -L. -lplain -Wl,-rpath,{folder}"));
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("captured 1 of 2 modules"), "{out}");
    assert!(out.contains("not built for capture: libplain.so"), "{out}");
    let (status, out, err) = bench.run("--trust libplain --spec s.spec -- ./program");
    assert_eq!(status, 0, "{out}{err}");
    let (status, out, err) = bench.run("--trust libother --spec s.spec -- ./program");
    assert_eq!(status, 3, "{out}{err}");
}

#[test]
fn threads_that_run_freely_are_watched_but_nothing_is_predicted() {
    let bench = Bench::new();
    let at = root().join("examples/landing");
    bench.built(&format!("cc -o program {}", at.join("landing.c").display()));
    let spec = at.join("landing.spec");
    let (status, out, err) =
        bench.run(&format!("--mode async --keep t.fse --spec {} -- ./program", spec.display()));
    // The report is not about other runs: it says that the notes do not settle what happened.
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.starts_with("landed"), "{out}");
    assert!(!out.contains("PREDICTED") && out.contains("verdict schedule-dependent"), "{out}");
    let info = bench.foresee().args(["trace", "info", "t.fse"]).output().unwrap();
    assert!(
        text(&info.stdout).contains("in the order of their notes only"),
        "{}",
        text(&info.stdout)
    );
    // Where they do settle it, silence is not taken for the answer of all runs.
    bench.write("race.c", RACE);
    bench.built("cc race.c -o race");
    bench.write("s.spec", ORDERED);
    let (status, out, err) = bench.run("--mode async --spec s.spec -- ./race");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("nothing is claimed of other runs"), "{out}");
    // What the run itself does wrong is still reported.
    bench.write("wrong.spec", "property never: radio == 1\n");
    let (status, out, err) = bench.run("--mode async --spec wrong.spec -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("OBSERVED never"), "{out}");
}

#[test]
fn debugging_information_that_is_damaged_or_missing_is_no_reason_to_fail() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    for section in [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_aranges"] {
        bench.built("cc race.c -o program");
        let mut objcopy = Command::new("objcopy");
        objcopy.current_dir(bench.dir.path()).args(["--remove-section", section, "program"]);
        assert!(objcopy.status().unwrap().success());
        let (status, out, err) = bench.run("--spec s.spec -- ./program");
        assert_eq!((status, err.as_str()), (0, ""), "{section}: {out}");
    }
    // Without any symbols there are no variables, and the specification cannot mean any.
    bench.built("cc race.c -o program");
    assert!(Command::new("strip").arg("-s").arg(bench.path("program")).status().unwrap().success());
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("`done` is not a global or static variable of the program"), "{err}");
}
