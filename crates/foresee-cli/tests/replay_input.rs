//! Schedules and programs that do not fit together: a clear message, the right exit status, and nothing left running.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Bench, root, said};
use crate::replay::{RING, confirmed, label};

fn replay(bench: &Bench, words: &str) -> (i32, String, String) {
    let mut command = bench.foresee();
    let words = words.split_whitespace();
    said(&command.arg("replay").args(words).stdin(Stdio::null()).output().unwrap())
}

/// The processes whose program lies in the folder; those that were just killed get a moment to disappear.
fn left_running(bench: &Bench) -> Vec<String> {
    let folder = bench.dir.path().canonicalize().unwrap();
    let since = Instant::now();
    loop {
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            if let Ok(program) = fs::read_link(entry.path().join("exe"))
                && program.starts_with(&folder)
            {
                left.push(format!("{} {}", entry.path().display(), program.display()));
            }
        }
        if left.is_empty() || since.elapsed() > Duration::from_secs(10) {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two threads that race; the argument says what the program does before or after that.
const UNRULY: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    static int x; static char line[64];\n\
    static void *work(void *p) { x++; return p; }\n\
    static void *stays(void *p) { x++; for (;;) pause(); return p; }\n\
    int main(int n, char **v) { pthread_t s, t; const char *how = n > 1 ? v[1] : \"\";\n\
      if (!strcmp(how, \"execs\")) execl(v[0], v[0], (char *)0);\n\
      if (!strcmp(how, \"daemon\") && daemon(1, 0)) return 9;\n\
      if (!strcmp(how, \"forks\")) { pid_t c = fork(); if (c) { waitpid(c, 0, 0); return 0; } }\n\
      if (n > 2) { FILE *f = fopen(v[2], \"r\"); if (f && fgets(line, sizeof line, f)) x = line[0]; }\n\
      if (!strcmp(how, \"ignores\")) { pthread_create(&s, 0, stays, 0); pthread_create(&t, 0, stays, 0);\n\
        pthread_detach(s); pthread_detach(t); return 0; }\n\
      pthread_create(&s, 0, work, 0); pthread_create(&t, 0, work, 0);\n\
      pthread_join(s, 0); pthread_join(t, 0);\n\
      if (!strcmp(how, \"daemon\")) for (;;) pause();\n\
      return 0; }\n";

#[test]
fn programs_that_fork_exec_or_run_on_are_named() {
    let bench = Bench::new();
    bench.write("unruly.c", UNRULY);
    bench.built("cc -g -o unruly unruly.c");
    let (status, out, err) = bench.run("--schedules schedules -- ./unruly");
    assert_eq!(status, 1, "{out}{err}");
    // What the schedule was made for, and then the same program that goes away before it comes to the threads.
    assert_eq!(replay(&bench, "schedules/1.schedule -- ./unruly").0, 1);
    for (how, reason) in [
        ("execs", "became another program"),
        ("forks", "forked a process"),
        ("daemon", "forked a process"),
    ] {
        let words = format!("schedules/1.schedule --timeout 1 -- ./unruly {how}");
        let (status, out, err) = replay(&bench, &words);
        assert_eq!(status, 3, "{how}: {out}{err}");
        assert!(out.starts_with("not forced: ") && out.contains(reason), "{how}: {out}{err}");
        assert!(out.contains("refutes nothing"), "{how}: {out}");
        assert!(err.contains("the arguments differ"), "{how}: {err}");
        assert_eq!(left_running(&bench), [""; 0], "{how}");
    }
    // A finding in such a process is not forced either, and the label says why.
    for how in ["execs", "forks"] {
        let found = confirmed(&bench, &format!("-- ./unruly {how}"));
        assert!(!found.is_empty(), "{how}");
        for finding in &found {
            let label = label(finding);
            assert!(label.contains("not-forced") && label.contains("process"), "{how}: {label}");
        }
    }
    // A program that leaves its threads behind is controlled as long as it lives.
    for finding in confirmed(&bench, "-- ./unruly ignores") {
        assert_eq!(finding["confirmation"], "confirmed", "{}", label(&finding));
    }
    assert_eq!(left_running(&bench), [""; 0]);
}

#[test]
fn schedules_of_other_programs_and_inputs_are_named() {
    let bench = Bench::new();
    bench.write("unruly.c", UNRULY);
    bench.write("input.txt", "a\n");
    bench.write("ring.c", RING);
    bench.built("cc -g -o unruly unruly.c");
    bench.built("cc -g -o ring ring.c");
    let (status, out, err) = bench.run("--schedules schedules -- ./unruly x input.txt");
    assert_eq!(status, 1, "{out}{err}");
    // Of another program.
    let (status, out, err) = replay(&bench, "schedules/1.schedule -- ./ring");
    assert_eq!(status, 3, "{out}{err}");
    assert!(err.contains("another build") && err.contains("the arguments differ"), "{err}");
    assert!(out.starts_with("diverged: ") && out.contains("has no such step"), "{out}");
    // With another input: said, and the values differ.
    bench.write("input.txt", "b\n");
    let (status, out, err) = replay(&bench, "schedules/1.schedule -- ./unruly x input.txt");
    assert!(err.contains("the input differs: input.txt"), "{err}");
    assert!(matches!(status, 1 | 3), "{status} {out}{err}");
    fs::remove_file(bench.path("input.txt")).unwrap();
    let (_, _, err) = replay(&bench, "schedules/1.schedule -- ./unruly x input.txt");
    assert!(err.contains("the input differs: input.txt"), "{err}");
    // Cut off anywhere, or with any line lost: never a panic, never a green.
    let schedule = fs::read_to_string(bench.path("schedules/1.schedule")).unwrap();
    let lines: Vec<&str> = schedule.lines().collect();
    for cut in [1, 3, lines.len() / 2, lines.len() - 1] {
        bench.write("cut.schedule", &lines[..cut].join("\n"));
        let (status, _, err) = replay(&bench, "cut.schedule -- ./unruly x input.txt");
        assert!(status == 2 && err.contains("line ") && err.contains("cut off"), "{cut}: {err}");
    }
    let first = lines.iter().position(|line| line.starts_with("step ")).unwrap();
    for (from, to, problem) in [
        (lines[first], String::new(), "there are"),
        (lines[first], lines[first].replace("step 0 ", "step 0.9 "), "no thread"),
        (lines[first], lines[first].replace(" program+", " program-"), "not a place"),
        ("foresee-schedule 1", "foresee-schedule 2".to_owned(), "version 1"),
    ] {
        bench.write("edited.schedule", &schedule.replacen(from, &to, 1));
        let (status, _, err) = replay(&bench, "edited.schedule -- ./unruly x input.txt");
        assert!(status == 2 && err.contains(problem), "{problem}: {status} {err}");
    }
    // No file, a folder, bytes that are no text.
    fs::write(bench.path("binary.schedule"), [0xff, 0xfe, 0]).unwrap();
    for name in ["missing.schedule", ".", "binary.schedule"] {
        let (status, _, err) = replay(&bench, &format!("{name} -- ./unruly"));
        assert!(status == 2 && err.contains(name), "{name}: {status} {err}");
    }
    assert_eq!(left_running(&bench), [""; 0]);
}

/// A thread that polls for what another one does, which the schedule holds: it never sleeps, and never comes to its step.
const POLLS: &str = "#include <pthread.h>\n#include <stdatomic.h>\n#include <unistd.h>\n\
    static int x, polls; static atomic_int done;\n\
    static void *one(void *p) { while (polls && !done) usleep(100); x = 1; return p; }\n\
    static void *two(void *p) { x = 2; done = 1; return p; }\n\
    int main(int n, char **v) { pthread_t s, t; (void)v; polls = n > 1;\n\
      pthread_create(&s, 0, one, 0); pthread_create(&t, 0, two, 0);\n\
      pthread_join(s, 0); pthread_join(t, 0); return 0; }\n";

#[test]
fn a_thread_that_never_comes_to_its_step_is_given_up() {
    let bench = Bench::new();
    bench.write("polls.c", POLLS);
    bench.built("cc -g -o polls polls.c");
    assert_eq!(bench.run("--schedules schedules -- ./polls").0, 1);
    assert_eq!(replay(&bench, "schedules/1.schedule -- ./polls").0, 1);
    let (status, out, err) = replay(&bench, "schedules/1.schedule --timeout 600 -- ./polls x");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.starts_with("diverged: at step ") && out.contains("goes on and on"), "{out}{err}");
    assert_eq!(left_running(&bench), [""; 0]);
}

/// Programs that read their input, or do not want to end.
const STUBBORN: &str = "#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    static int x;\n\
    static void *work(void *p) { x++; return p; }\n\
    int main(int n, char **v) { pthread_t s, t; (void)v;\n\
      if (n > 1) { signal(SIGTERM, SIG_IGN); puts(\"ready\"); fflush(stdout); }\n\
      int c = getchar(); if (c != EOF) x = c;\n\
      pthread_create(&s, 0, work, 0); pthread_create(&t, 0, work, 0);\n\
      pthread_join(s, 0); pthread_join(t, 0);\n\
      if (n > 1) for (;;) sleep(1);\n\
      return 0; }\n";

#[test]
fn a_program_that_reads_or_ignores_signals_is_ended() {
    let bench = Bench::new();
    bench.write("stubborn.c", STUBBORN);
    bench.write("input.txt", "a");
    bench.built("cc -g -o stubborn stubborn.c");
    let input = || fs::File::open(bench.path("input.txt")).unwrap();
    let mut run = bench.foresee();
    run.args(["run", "--schedules", "schedules", "--", "./stubborn"]).stdin(input());
    let (status, out, err) = said(&run.output().unwrap());
    assert_eq!(status, 1, "{out}{err}");
    // Each attempt reads a file from its beginning.
    for _ in 0..2 {
        let mut again = bench.foresee();
        again.args(["replay", "schedules/1.schedule", "--", "./stubborn"]).stdin(input());
        let (status, out, err) = said(&again.output().unwrap());
        assert_eq!(status, 1, "{out}{err}");
    }
    // Told to end, foresee ends the program, which does not listen.
    let mut replay = bench.foresee();
    replay.args(["replay", "schedules/1.schedule", "--timeout", "600", "--", "./stubborn", "x"]);
    let mut replay =
        replay.stdin(input()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(replay.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let kill = Command::new("kill").arg(replay.id().to_string()).status().unwrap();
    assert!(kill.success());
    let status = replay.wait().unwrap();
    assert!(matches!(status.code(), Some(1 | 3)), "{status}");
    assert_eq!(left_running(&bench), [""; 0]);
}

/// No schedule can be made up that convicts a right program: orders of a wrong one, followed by the repaired one, and the
/// observed order with any step called a violation.
#[test]
fn right_programs_are_never_convicted() {
    let bench = Bench::new();
    for name in ["guarded-wait/job.c", "guarded-locks/transfer.c", "hand-over/message.c"] {
        let source = root().join("examples").join(name);
        bench.built(&format!("cc -g -o right {}", source.display()));
        let (status, out, err) = bench.run("--schedules right.schedules -- ./right");
        assert_eq!(status, 0, "{out}{err}");
        let observed = fs::read_to_string(bench.path("right.schedules/observed.schedule")).unwrap();
        let steps = observed.lines().filter(|line| line.starts_with("step ")).count();
        for (rule, at) in [("race/race", steps / 2), ("deadlock/stall", steps - 1)] {
            let (head, body) = observed.split_once("thread 0 ").unwrap();
            let claim = format!("rule {rule}\nfingerprint F-0\nmessage made up\n");
            let mut count = 0;
            let mut forged = format!("{head}{claim}");
            for line in format!("thread 0 {body}").lines() {
                let line = match line.split_once(" #") {
                    Some((step, comment)) if step.starts_with("step ") && count == at => {
                        format!("{step} violation #{comment}")
                    }
                    _ => line.to_owned(),
                };
                count += usize::from(line.starts_with("step "));
                forged += &line;
                forged.push('\n');
            }
            bench.write("forged.schedule", &forged);
            let (status, out, err) = replay(&bench, "forged.schedule --quiet -- ./right");
            assert!(matches!(status, 0 | 3), "{name} {rule}: {status} {out}{err}");
            assert!(!out.contains("confirmed:"), "{name} {rule}: {out}");
        }
    }
}
