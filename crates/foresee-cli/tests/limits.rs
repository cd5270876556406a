//! Limits of the system are the program's: the runtime keeps out of its way, and what could not be recorded is reported. And
//! foresee can be ended like any program.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Bench, root, said};

/// `./program` is one of those in `testdata/programs`.
fn built(source: &str) -> Bench {
    let bench = Bench::new();
    let source = root().join("testdata/programs").join(source);
    bench.built(&format!("cc -w -O1 -o program {}", source.display()));
    bench
}

/// Programs behave as they do without foresee under any limit, and what is not recorded is reported.
#[test]
fn limits_change_nothing_but_what_is_recorded() {
    let bench = built("limited.c");
    for (limit, count, told) in [
        // A descriptor would be one too many; but none is kept.
        ("ulimit -n 4", 20_000, None),
        // In blocks of 512 or 1024 bytes: too small for any log.
        ("ulimit -f 100", 300, Some("RLIMIT_FSIZE")),
        // Too small for all of it.
        ("ulimit -f 1200", 200_000, Some("RLIMIT_FSIZE")),
        ("ulimit -v 400000", 300, Some("RLIMIT_AS")),
        ("ulimit -d 400000", 300, Some("RLIMIT_DATA")),
    ] {
        let script = format!("{limit}; exec ./program {count}");
        let (status, out, err) = bench.run_script("--all --check race", &script);
        assert!(out.starts_with(&format!("{}\n", 2 * count)), "{limit}\n{out}{err}");
        assert_eq!(status, if told.is_some() { 3 } else { 0 }, "{limit}\n{out}{err}");
        assert!((out + &err).contains(told.unwrap_or_default()), "{limit}\n{err}");
    }
}

/// Descriptors belong to the program, also those that it never opened.
#[test]
fn descriptors_that_the_program_closes_and_reuses_are_its_own() {
    let bench = built("limited.c");
    let (status, out, err) = bench.run_script("--all --check race", "./program 50000 all");
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.starts_with("100000\n"), "{out}{err}");
}

#[test]
fn the_smallest_stacks_suffice() {
    let bench = built("small_stack.c");
    let (_, out, err) = bench.run("--check race -- ./program");
    assert!(out.starts_with("600\n") && !out.contains("program-failure"), "{out}{err}");
}

/// Whether we may change users.
fn is_root() -> bool {
    let out = Command::new("id").arg("-u").output().unwrap();
    out.stdout == b"0\n"
}

/// A process that cannot be recorded makes the answer incomplete.
#[test]
fn a_child_that_cannot_be_recorded_is_told() {
    let bench = built("silent_child.c");
    // Without an argument, the program changes its user, which only root may. Another user's child runs out of descriptors.
    let (words, told) = match is_root() {
        true => ("-- ./program", "because it runs as another user"),
        false => ("-- ./limited", "RLIMIT_NOFILE"),
    };
    bench.write(
        "limited.c",
        "#include <sys/resource.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint x;\n\
         int main(void) { struct rlimit none = {0, 0}; setrlimit(RLIMIT_NOFILE, &none);\n\
         if (fork() == 0) { x++; _exit(0); } wait(0); return 0; }\n",
    );
    bench.built("cc -w -o limited limited.c");
    for (words, told) in [(words, told), ("-- ./limited", "RLIMIT_NOFILE")] {
        let (status, out, err) = bench.run(words);
        assert_eq!(status, 3, "{words}\n{out}{err}");
        assert!(out.contains("could not be recorded") && out.contains(told), "{words}\n{out}{err}");
        assert!(out.contains("the trace does not hold everything: process "), "{words}\n{out}");
    }
}

/// A program that ends only on a signal.
fn endless(flags: &[&str], bench: &Bench) -> Child {
    bench.write(
        "endless.c",
        "#include <pthread.h>\n#include <stdio.h>\nstatic volatile int c;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *f(void *a) { for (;;) { pthread_mutex_lock(&m); c++; pthread_mutex_unlock(&m); } return a; }\n\
         int main(void) { pthread_t t, u; pthread_create(&t, 0, f, 0); pthread_create(&u, 0, f, 0);\n\
         FILE *ready = fopen(\"ready\", \"w\"); fclose(ready); pthread_join(t, 0); return 0; }\n",
    );
    bench.built("cc -w -o endless endless.c");
    std::fs::create_dir(bench.path("tmp")).unwrap();
    let mut command = bench.foresee();
    command.env("TMPDIR", bench.path("tmp")).arg("run").args(flags).args(["--", "./endless"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until(|| bench.path("ready").exists());
    child
}

/// Waits for something that happens soon.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(300), "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(how: &str, process: u32) {
    let out = Command::new("kill").args([how, &process.to_string()]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

/// The processes that record under this folder.
fn recorded_under(folder: &Path) -> Vec<u32> {
    let mark = format!("FORESEE_CAPTURE={}", folder.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let has = |process: &u32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|&b| b == 0).any(|v| v.starts_with(mark.as_bytes()))
    };
    processes.filter(has).collect()
}

#[test]
fn a_signal_ends_the_program_and_what_it_did_is_reported() {
    for signal in ["-TERM", "-HUP"] {
        let bench = Bench::new();
        let child = endless(&["--check", "race"], &bench);
        kill(signal, child.id());
        let (status, out, err) = said(&child.wait_with_output().unwrap());
        assert_eq!(status, 3, "{signal}\n{out}{err}");
        assert!(err.contains("was ended because foresee was asked to stop"), "{signal}\n{err}");
        assert!(out.contains("race: ") && !out.contains("program-failure"), "{signal}\n{out}");
        assert!(recorded_under(&bench.path("tmp")).is_empty());
        assert_eq!(std::fs::read_dir(bench.path("tmp")).unwrap().count(), 0, "{signal}");
    }
}

/// The program has ended, and foresee waits for somebody who reads what it keeps: a signal is for foresee then.
#[test]
fn a_signal_ends_foresee_once_the_program_has_ended() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let bench = Bench::new();
        bench.write(
            "quick.c",
            "#include <stdio.h>\nint main(void) { fclose(fopen(\"ran\", \"w\")); return 0; }\n",
        );
        bench.built("cc -w -o quick quick.c");
        assert!(Command::new("mkfifo").arg(bench.path("kept")).status().unwrap().success());
        let mut command = bench.foresee();
        command.args(["run", "--keep", "kept", "--", "./quick"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until(|| bench.path("ran").exists());
        // An early signal is for the program.
        wait_until(|| {
            kill(signal, child.id());
            std::thread::sleep(Duration::from_millis(100));
            child.try_wait().unwrap().is_some()
        });
        assert_eq!(child.wait().unwrap().code(), None, "{signal}");
    }
}

/// Results of a batch that was killed do not stay for ever.
#[test]
fn the_next_batch_removes_what_a_killed_one_left() {
    let bench = Bench::new();
    let folder = bench.path("tmp");
    std::fs::create_dir(&folder).unwrap();
    assert!(Command::new("mkfifo").arg(bench.path("out")).status().unwrap().success());
    bench.write("t.std", "T1|w(x)=1|\nT2|w(x)=2|\n");
    let batch = |output: &str| {
        let mut command = bench.foresee();
        let words = ["batch", "--no-cache", "t.std", "--check", "race", "--html", output];
        command.env("TMPDIR", &folder).args(words).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let count = || std::fs::read_dir(&folder).unwrap().count();
    // It waits for somebody who reads its page.
    let mut child = batch("out").spawn().unwrap();
    wait_until(|| count() > 0);
    kill("-KILL", child.id());
    child.wait().unwrap();
    for left in std::fs::read_dir(&folder).unwrap().flatten() {
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(left.path()).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(count(), 1);
    assert_eq!(batch("page.html").status().unwrap().code(), Some(1));
    assert_eq!(count(), 0);
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        Ok(kind) => kind.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[test]
fn without_foresee_the_log_stops_growing_and_the_next_run_removes_it() {
    let bench = Bench::new();
    let mut child = endless(&["--all"], &bench);
    let folder = bench.path("tmp");
    kill("-KILL", child.id());
    child.wait().unwrap();
    let program = recorded_under(&folder);
    let mut size = 0;
    // The program goes on; its recording does not.
    wait_until(|| {
        let before = std::mem::replace(&mut size, size_of(&folder));
        std::thread::sleep(Duration::from_millis(200));
        before == size
    });
    assert_eq!(recorded_under(&folder), program);
    assert_eq!(program.len(), 1);
    kill("-KILL", program[0]);
    for left in std::fs::read_dir(&folder).unwrap().flatten() {
        // A folder this young could be one that is just being made.
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(left.path()).unwrap().set_modified(old).unwrap();
    }
    let mut command = bench.foresee();
    command.env("TMPDIR", &folder).args(["run", "--", "true"]);
    command.output().unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

/// A killed program was not seen to its end, also if its trace is only kept.
#[test]
fn a_kept_trace_of_a_killed_program_is_incomplete() {
    let bench = Bench::new();
    bench.write(
        "killed.c",
        "#include <signal.h>\nint x;\nint main(void) { x = 1; raise(SIGKILL); return 0; }\n",
    );
    bench.built("cc -w -o killed killed.c");
    let (status, out, err) =
        bench.run("--keep kept.fse --ignore-program-failure --check race -- ./killed");
    assert_eq!(status, 3, "{out}{err}");
    let kept = bench.foresee().args(["check", "kept.fse", "--check", "race"]).output().unwrap();
    assert_eq!(kept.status.code(), Some(3), "{kept:?}");
    let (status, out, _) = bench.run("--keep kept.fse --check race -- ./killed");
    assert_eq!(status, 1, "the failure is a finding\n{out}");
}

/// No connection could ever be accepted.
#[test]
fn a_token_that_no_sender_can_present_is_refused() {
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.args(["observe", "--listen", "unix:socket", "--check", "race", "--token"]);
    command.arg("x".repeat(257)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut observer = command.spawn().unwrap();
    wait_until(|| observer.try_wait().unwrap().is_some());
    let (status, out, err) = said(&observer.wait_with_output().unwrap());
    assert_eq!(status, 2, "{out}{err}");
    assert!(err.contains("longer than 256 bytes"), "{err}");
}

/// Blocks that move all the time take memory and time in proportion to what the program does, not to what it frees.
#[test]
fn a_program_that_reallocates_all_the_time_is_checked() {
    let bench = Bench::new();
    bench.write(
        "moves.c",
        "#include <pthread.h>\n#include <stdlib.h>\nstatic int n;\n\
         static void *f(void *a) { for (int i = 0; i < n; i++) { char *p = malloc(i % 5000 + 1); p[0] = 1;\n\
         p = realloc(p, i % 9000 + 1); p[0]++; free(p); } return a; }\n\
         int main(int c, char **v) { n = atoi(v[1]); pthread_t t[4];\n\
         for (int i = 0; i < 4; i++) pthread_create(t + i, 0, f, 0);\n\
         for (int i = 0; i < 4; i++) pthread_join(t[i], 0); return 0; }\n",
    );
    bench.built("cc -w -o moves moves.c");
    let (status, out, err) = bench.run("--check race --max-memory 64 -- ./moves 2000");
    assert_eq!(status, 0, "{out}{err}");
}
