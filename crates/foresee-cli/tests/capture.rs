//! Programs built by `foresee cc` and `c++` and run by `foresee run`, with gcc and with clang: the
//! examples, every way to build, and what goes wrong.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");

/// A folder to build and run in, with a cache of its own.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { dir: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn foresee(&self) -> Command {
        let mut command = Command::new(FORESEE);
        command.current_dir(self.dir.path());
        command.env("FORESEE_CACHE", cache());
        command.env_remove("FORESEE_CC").env_remove("FORESEE_CXX");
        command
    }

    /// Builds with `foresee cc WORDS`.
    fn build(&self, words: &str) -> Output {
        self.foresee().args(words.split_whitespace()).output().unwrap()
    }

    fn built(&self, words: &str) {
        let output = self.build(words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
    }

    /// Runs `foresee run WORDS`; status, standard output and error.
    fn run(&self, words: &str) -> (i32, String, String) {
        let output = self.foresee().arg("run").args(words.split_whitespace()).output().unwrap();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

/// One cache for all tests: the runtime in it is the same.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Compilers for C and C++. clang is no part of a plain machine; continuous integration must have
/// it.
fn compilers() -> Vec<(&'static str, &'static str)> {
    let has_clang = Command::new("clang-19").arg("--version").output().is_ok();
    assert!(has_clang || std::env::var_os("CI").is_none(), "clang-19 is missing");
    let mut found = vec![("gcc", "g++")];
    if has_clang {
        found.push(("clang-19", "clang++-19"));
    }
    found
}

/// Every example passes when run, and its violation is predicted, whichever compiler builds it.
fn example(folder: &str, source: &str, spec: &str, says: &str, predicted: &[&str]) {
    let bench = Bench::new();
    let at = root().join("examples").join(folder);
    for (c, cpp) in compilers() {
        let (word, compiler) = if source.ends_with(".cc") { ("c++", cpp) } else { ("cc", c) };
        let (source, spec) = (at.join(source), at.join(spec));
        bench.built(&format!("{word} -- {compiler} -Wall -Werror -o program {}", source.display()));
        // Alone it runs as if nothing were.
        let plain = Command::new(bench.path("program")).output().unwrap();
        assert_eq!((plain.status.code(), text(&plain.stdout).trim()), (Some(0), says));
        assert_eq!(text(&plain.stderr), "");
        let (status, out, err) = bench.run(&format!("--spec {} -- ./program", spec.display()));
        let how = format!("{folder} with {compiler}:\n{out}{err}");
        assert_eq!(status, 1, "{how}");
        assert!(out.starts_with(says), "{how}");
        assert!(out.contains("captured 1 of 1 module"), "{how}");
        assert!(out.contains("events exact") || out.contains("of events exact"), "{how}");
        for property in predicted {
            assert!(out.contains(&format!("PREDICTED {property} ")), "{how}");
        }
        let summary = format!("0 observed, {} predicted", predicted.len());
        assert!(out.contains(&summary), "{how}");
        assert!(out.contains(at.join(&source).file_name().unwrap().to_str().unwrap()), "{how}");
        assert_eq!(err, "", "{how}");
    }
}

#[test]
fn landing() {
    example("landing", "landing.c", "landing.spec", "landed", &["safe_landing"]);
}

#[test]
fn water_level() {
    example("water-level", "water.c", "water.spec", "water 31, valve 70", &["level"]);
}

#[test]
fn write_after_close() {
    example("write-after-close", "log.c", "log.spec", "closed", &["write_after_close"]);
}

#[test]
fn double_checked_initialisation() {
    example("double-checked", "config.cc", "config.spec", "admitted: 2", &["loaded"]);
}

#[test]
fn bank_transfer_with_an_audit() {
    example("bank", "bank.c", "bank.spec", "the books balance", &["audit_is_sound"]);
}

#[test]
fn bounded_buffer() {
    example("bounded-buffer", "buffer.c", "buffer.spec", "sum 60", &["filled"]);
}

#[test]
fn work_queue_shutdown() {
    let predicted = ["job_has_database", "job_after_release"];
    example("work-queue", "queue.c", "queue.spec", "1 job done", &predicted);
}

/// Every access is under a lock: only where critical sections swap is there anything to find.
fn locked(folder: &str, source: &str, spec: &str, says: &str, property: &str) {
    example(folder, source, spec, says, &[property]);
    let bench = Bench::new();
    let at = root().join("examples").join(folder);
    bench.built(&format!("cc -o program {}", at.join(source).display()));
    let spec = at.join(spec);
    let (status, out, err) =
        bench.run(&format!("--reorder maz --spec {} -- ./program", spec.display()));
    assert_eq!(status, 0, "{out}{err}");
    let (_, out, _) = bench.run(&format!("--spec {} -- ./program", spec.display()));
    assert!(out.contains("sections swapped"), "{out}");
    // What a thinned capture left out matters here, so from one nothing is claimed.
    bench.run(&format!("--reorder maz --keep t.fse --spec {} -- ./program", spec.display()));
    let check = bench.foresee().args(["check", "t.fse", "--spec"]).arg(&spec).output().unwrap();
    let out = text(&check.stdout);
    assert_eq!(check.status.code(), Some(0), "{out}");
    assert!(out.contains("not looked for"), "{out}");
}

#[test]
fn locked_log() {
    locked("locked-log", "log.c", "log.spec", "closed", "write_after_close");
}

#[test]
fn locked_queue() {
    locked("locked-queue", "queue.c", "queue.spec", "3 jobs to do", "lost_job");
}

const RACE: &str = "#include <pthread.h>\nint shared, done;\n\
    static void *work(void *p) { shared = 1; return p; }\n\
    int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);\n\
    done = 1; return shared - 1; }\n";

/// `done` comes last whatever happens.
const ORDERED: &str = "property ordered: done == 1 -> shared == 1\n";

#[test]
fn every_way_to_build() {
    for (c, _) in compilers() {
        let bench = Bench::new();
        bench.write("race.c", RACE);
        bench.write("s.spec", ORDERED);
        bench.write("words", "-c 'race.c' -o race.o");
        bench.write("half.c", "int half(int x) { return x / 2; }\n");
        bench.write("user.c", "int half(int); int shared, done;\nint main(void) { shared = half(3); done = 1; return shared - 1; }\n");
        for steps in [
            vec![format!("cc -- {c} race.c -o program")],
            vec![format!("cc -- {c} -c race.c"), format!("cc -- {c} race.o -o program -lm")],
            vec![format!("cc -- {c} @words"), format!("cc -- {c} -o program race.o")],
            vec![format!("cc -- {c} -O2 -g3 -flto race.c -o program")],
            vec![format!("cc -- {c} -no-pie -fno-pie race.c -o program")],
            vec![format!("cc -- {c} -fsanitize=thread race.c -o program")],
            vec![format!("cc -- {c} -x c race.c -o program")],
            vec![
                format!("cc -- {c} -shared -fPIC -Wl,-z,defs half.c -o libhalf.so"),
                format!(
                    "cc -- {c} user.c -o program -L. -lhalf -Wl,-rpath,{}",
                    bench.dir.path().display()
                ),
            ],
        ] {
            steps.iter().for_each(|step| bench.built(step));
            let plain = Command::new(bench.path("program")).output().unwrap();
            assert_eq!(plain.status.code(), Some(0), "{steps:?}: {}", text(&plain.stderr));
            let (status, out, err) = bench.run("--spec s.spec -- ./program");
            assert_eq!(status, 0, "{steps:?}\n{out}{err}");
            assert!(out.contains("complete"), "{steps:?}\n{out}");
        }
        // Questions and preprocessing go through.
        let version = bench.build(&format!("cc -- {c} --version"));
        let own = Command::new(c).arg("--version").output().unwrap();
        assert_eq!(version.stdout, own.stdout);
        let headers = bench.build(&format!("cc -- {c} -MM race.c"));
        assert!(text(&headers.stdout).starts_with("race.o:"), "{}", text(&headers.stderr));
        assert!(bench.build(&format!("cc -- {c} -E race.c")).status.success());
        // Mistakes are the compiler's own, and so is the status.
        bench.write("bad.c", "int main(void) { return x; }\n");
        let bad = bench.build(&format!("cc -- {c} -c bad.c"));
        assert_eq!(bad.status.code(), Some(1));
        assert!(text(&bad.stderr).contains("bad.c:1"), "{}", text(&bad.stderr));
    }
}

#[test]
fn what_cannot_be_built_for_capture_is_told() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    for (words, says) in [
        ("cc -static race.c -o program", "`-static` makes a program that cannot be captured"),
        ("cc -fsanitize=address race.c", "cannot be combined with capture"),
        ("cc race.c -ltsan", "links the sanitizer's own runtime beside that of foresee"),
        ("cc -- no-such-compiler race.c", "cannot run the compiler `no-such-compiler`"),
        ("cc -- true race.c", "`true` is neither gcc nor clang"),
        ("cc --", "expected the name of a compiler after `--`"),
    ] {
        let output = bench.build(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(says), "{words}: {}", text(&output.stderr));
    }
}

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
    assert_eq!((status, err.contains("nothing to look for")), (2, true), "{err}");
}

#[test]
fn two_runtimes_are_told_before_the_program_crashes() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    bench.built("cc -c race.c");
    // The linker's own command shows where the runtime is.
    let shown = Command::new("gcc").arg("-print-file-name=libtsan.so").output().unwrap();
    if !text(&shown.stdout).starts_with('/') {
        return; // This gcc comes without the library that could be linked by mistake.
    }
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
    for (body, flags, status, says) in [
        ("shared = 1; done = 1; return 7;", "", 0, "ended with exit status 7"),
        ("shared = 1; done = 1; _exit(4);", "", 0, "ended with exit status 4"),
        ("shared = 1; abort();", "", 3, "was killed by signal 6"),
        ("shared = 1; kill(getpid(), 9);", "", 3, "was killed by signal 9"),
        ("shared = 1; *(volatile int *)0 = 1;", "", 3, "was killed by signal 11"),
        ("shared = 1; sleep(60);", "--timeout 1 ", 3, "was ended after 1 second"),
    ] {
        bench.write("end.c", &format!("{main}int main(void) {{ {body} }}\n"));
        bench.built("cc -w end.c -o program");
        let (found, out, err) = bench.run(&format!("{flags}--spec s.spec -- ./program"));
        assert_eq!(found, status, "{body}\n{out}{err}");
        assert!(err.contains(says), "{body}\n{out}{err}");
        assert_eq!(status == 3, out.contains("cut short"), "{body}\n{out}{err}");
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

#[test]
fn a_kept_trace_says_the_same_again() {
    let bench = Bench::new();
    let at = root().join("examples/landing");
    bench.built(&format!("cc -o program {}", at.join("landing.c").display()));
    let spec = at.join("landing.spec");
    let run = format!("--keep t.fse --spec {} -- ./program", spec.display());
    assert_eq!(bench.run(&run).0, 1);
    let check = bench.foresee().args(["check", "t.fse", "--spec"]).arg(&spec).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("PREDICTED safe_landing"), "{}", text(&check.stdout));
    let (status, out, err) = bench.run("--keep u.fse.zst -- ./program");
    assert_eq!((status, out.as_str()), (0, "landed\n"), "{err}");
    let validate = bench.foresee().args(["trace", "validate", "u.fse.zst"]).output().unwrap();
    assert_eq!(validate.status.code(), Some(0), "{}", text(&validate.stderr));
}

#[test]
fn a_child_process_has_a_trace_of_its_own() {
    let bench = Bench::new();
    bench.write(
        "fork.c",
        "#include <unistd.h>\n#include <sys/wait.h>\nint shared, done;\n\
         int main(void) { int s; pid_t p = fork(); shared = p ? 1 : 2; done = 1;\n\
         if (p) waitpid(p, &s, 0); return 0; }\n",
    );
    bench.built("cc fork.c -o program");
    bench.write("s.spec", ORDERED);
    let (status, out, err) = bench.run("--spec s.spec -- ./program");
    // The child breaks it, the parent does not.
    assert_eq!(status, 1, "{out}{err}");
    assert_eq!(out.matches("OBSERVED ordered").count(), 1, "{out}{err}");
    assert!(out.contains("the second captured"), "{out}{err}");
    // A shell in between changes nothing.
    let mut shell = bench.foresee();
    shell.args(["run", "--spec", "s.spec", "--", "sh", "-c", "./program; exit 5"]);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("ended with exit status 5"), "{}", text(&output.stderr));
}

#[test]
fn builds_by_make_configure_and_cmake() {
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    bench.write("Makefile", "program: race.o\n\t$(CC) $(CFLAGS) -o $@ $^ -lpthread\n");
    let mut make = Command::new("make");
    make.current_dir(bench.dir.path()).env("FORESEE_CACHE", cache());
    let output = make.arg(format!("CC={FORESEE} cc")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(bench.run("--spec s.spec -- ./program").0, 0);
    if Command::new("cmake").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "cmake is missing");
        return;
    }
    bench.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(race C)\nfind_package(Threads REQUIRED)\n\
         add_executable(race race.c)\ntarget_link_libraries(race Threads::Threads)\n",
    );
    std::os::unix::fs::symlink(FORESEE, bench.path("foresee-cc")).unwrap();
    for words in [vec!["-S", ".", "-B", "out"], vec!["--build", "out"]] {
        let mut cmake = Command::new("cmake");
        cmake.current_dir(bench.dir.path()).env("FORESEE_CACHE", cache()).args(&words);
        if words[0] == "-S" {
            cmake.arg(format!("-DCMAKE_C_COMPILER={}", bench.path("foresee-cc").display()));
        }
        let output = cmake.output().unwrap();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    }
    let (status, out, err) = bench.run("--spec s.spec -- out/race");
    assert_eq!(status, 0, "{out}{err}");
}

/// Threads that take turns by the bakery lock, made of atomics alone; with an argument the first
/// takes no lock.
const BAKERY: &str = r#"
#include <foresee.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
enum { THREADS = 3, ROUNDS = 5 };
static atomic_int choosing[THREADS], number[THREADS];
static int account, faulty;
static void lock(int me) {
    int most = 0;
    choosing[me] = 1;
    for (int t = 0; t < THREADS; t++) { int n = number[t]; if (n > most) most = n; }
    number[me] = most + 1;
    choosing[me] = 0;
    for (int t = 0; t < THREADS; t++) {
        if (t == me) continue;
        while (choosing[t]) sched_yield();
        for (;;) {
            int n = number[t];
            if (n == 0 || n > most + 1 || (n == most + 1 && t > me)) break;
            sched_yield();
        }
    }
}
static void *work(void *p) {
    int me = (int)(intptr_t)p;
    for (int i = 0; i < ROUNDS; i++) {
        if (!(faulty && me == 0)) lock(me);
        FORESEE_EVENT("bw");
        account = me;
        FORESEE_EVENT("aw");
        if (!(faulty && me == 0)) number[me] = 0;
    }
    return 0;
}
int main(int argc, char **argv) {
    (void)argv;
    pthread_t t[THREADS];
    faulty = argc > 1;
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], 0, work, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// Notes of a program that is not stopped tell the order of what it synchronises, and no more.
#[test]
fn a_free_running_program_is_monitored_soundly() {
    let spec = root().join("testdata/monitorability/exclusion.spec");
    for (c, _) in compilers() {
        let bench = Bench::new();
        bench.write("bakery.c", BAKERY);
        bench.built(&format!("cc -- {c} -o program bakery.c -lpthread"));
        for mode in ["async", "sync"] {
            for _ in 0..3 {
                let words =
                    format!("--mode {mode} --check monitorability --spec {}", spec.display());
                let (status, out, err) = bench.run(&format!("{words} -- ./program"));
                assert!(out.contains("verdict: monitorable"), "{mode} with {c}:\n{out}{err}");
                assert_eq!(status, 0, "{mode} with {c}:\n{out}{err}");
                let (status, out, err) = bench.run(&format!("{words} -- ./program faulty"));
                assert!(
                    out.contains("SCHEDULE-DEPENDENT exclusion"),
                    "{mode} with {c}:\n{out}{err}"
                );
                assert_eq!(status, 1, "{mode} with {c}:\n{out}{err}");
            }
        }
        // Without being asked, what the notes do not tell is no finding, but no clean bill either.
        let words = format!("--mode async --spec {}", spec.display());
        let (status, out, err) = bench.run(&format!("{words} -- ./program faulty"));
        assert_eq!(status, 3, "{c}:\n{out}{err}");
        assert!(out.contains("0 observed, 0 predicted; NOT complete"), "{c}:\n{out}{err}");
    }
}
