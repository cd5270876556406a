//! Programs built by `foresee cc` and `c++` and run by `foresee run`, with gcc and with clang: the
//! examples, every way to build, and what goes wrong.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::Command;

use crate::harness::{Bench, FORESEE, ORDERED, RACE, cache, root, said, text};
use foresee_testkit::tools::{compilers, need};

/// Every example passes when run, and its violation is predicted, whichever compiler builds it.
fn example(folder: &str, source: &str, spec: &str, says: &str, predicted: &[&str]) {
    let bench = Bench::new();
    let at = root().join("examples").join(folder);
    for [c, cpp] in compilers() {
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
    // What a filtered capture left out matters here, so from one nothing is claimed.
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

#[test]
fn every_way_to_build() {
    for [c, _] in compilers() {
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
    // Without a question, what goes wrong without a specification is looked for.
    let (status, out, err) = bench.run("--keep u.fse.zst -- ./program");
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("PREDICTED race") && out.contains("\ndeadlock: "), "{out}");
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
    // The reports of both processes go to one file, in the order in which they would be printed.
    let (status, rest, _) = bench.run("--spec s.spec --format json --output r.json -- ./program");
    assert_eq!((status, rest.as_str()), (1, ""));
    let reports = std::fs::read_to_string(bench.path("r.json")).unwrap();
    let reports = serde_json::Deserializer::from_str(&reports).into_iter::<serde_json::Value>();
    let reports: Vec<serde_json::Value> = reports.map(Result::unwrap).collect();
    let observed: Vec<_> = reports.iter().map(|r| r["summary"]["observed"].as_u64()).collect();
    assert_eq!(observed, [Some(0), Some(1)]);
    // A shell in between changes nothing.
    let mut shell = bench.foresee();
    shell.args(["run", "--spec", "s.spec", "--", "sh", "-c", "./program; exit 5"]);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("ended with exit status 5"), "{}", text(&output.stderr));
}

#[test]
fn builds_by_make_configure_and_cmake() {
    need("make", "make");
    need("cmake", "cmake");
    let bench = Bench::new();
    bench.write("race.c", RACE);
    bench.write("s.spec", ORDERED);
    bench.write("Makefile", "program: race.o\n\t$(CC) $(CFLAGS) -o $@ $^ -lpthread\n");
    let mut make = Command::new("make");
    make.current_dir(bench.dir.path()).env("FORESEE_CACHE", cache());
    let output = make.arg(format!("CC={FORESEE} cc")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(bench.run("--spec s.spec -- ./program").0, 0);
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

#[test]
fn memory_from_the_heap_is_named_by_where_it_comes_from_and_what_it_is() {
    let bench = Bench::new();
    bench.write(
        "list.c",
        "#include <pthread.h>\n#include <stdlib.h>\n\
         struct node { long id; struct { short x, y; } at; pthread_mutex_t lock; };\n\
         int *table, *untold; struct node *shared;\n\
         static void *work(void *p) { struct node *n = p; pthread_mutex_lock(&n->lock);\n\
         n->at.y++; table[2]++; untold[1]++; pthread_mutex_unlock(&n->lock); return p; }\n\
         int main(void) { pthread_t t;\n\
         struct node *n = calloc(1, sizeof *n);\n\
         int *numbers = calloc(4, sizeof *numbers);\n\
         untold = calloc(4, sizeof *untold);\n\
         table = numbers; pthread_mutex_init(&n->lock, 0); n->at.y = 1; table[2] = 5; untold[1] = 7;\n\
         pthread_create(&t, 0, work, n); pthread_join(t, 0); return n->at.y + table[2] + untold[1] - 16; }\n",
    );
    for [c, _] in compilers() {
        bench.built(&format!("cc -- {c} -O0 list.c -o program"));
        let (status, out, err) = bench.run("--keep t.fse -- ./program");
        assert_eq!(status, 0, "{c}: {out}{err}");
        let mut convert = bench.foresee();
        convert.args(["trace", "convert", "t.fse", "--to", "std"]);
        let show = convert.output().unwrap();
        assert!(show.status.success(), "{}", text(&show.stderr));
        let trace = text(&show.stdout);
        for name in [
            "w(node(list.c:8(main))#1.at.y)",
            "acq(node(list.c:8(main))#1.lock)",
            "heap(list.c:9(main))#1[2]",
            // The line says nothing of what is in it.
            "heap(list.c:10(main))#1+4",
        ] {
            assert!(trace.contains(name), "{c}: {name} in\n{trace}");
        }
    }
}

#[test]
fn a_filtered_capture_is_asked_only_about_what_it_has_whole() {
    let bench = Bench::new();
    // `x` goes through 1, which the filter leaves out of the trace.
    bench.write(
        "thin.c",
        "#include <pthread.h>\nint x, y;\n\
         static void *work(void *p) { for (int i = 1; i < 5; i++) { x = i; y = i; } return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);\n\
         return x + y - 8; }\n",
    );
    bench.built("cc -O0 thin.c -o program");
    bench.write("x.spec", "property steps: x == 4 -> once(x == 2)\n");
    bench.write("y.spec", "init y = 0\nproperty steps: y == 4 -> once(y == 2)\n");
    let check = |spec: &str| {
        let mut check = bench.foresee();
        said(&check.args(["check", "t.fse", "--reorder", "maz", "--spec", spec]).output().unwrap())
    };
    let (status, out, err) = bench.run("--reorder maz --keep t.fse --spec x.spec -- ./program");
    assert_eq!(status, 0, "{out}{err}");
    assert_eq!(check("x.spec").0, 0);
    let (status, out, err) = check("y.spec");
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("the capture left out accesses of `y`"), "{err}");
    // A trace kept for its causality has no more than that needs, specification or not.
    let (status, out, err) = bench.run("--reorder maz --check causality --keep t.fse -- ./program");
    assert_eq!(status, 0, "{out}{err}");
    let (status, _, err) = check("x.spec");
    assert_eq!(status, 2, "{err}");
    // Without a stated purpose, the trace has everything.
    assert_eq!(bench.run("--keep t.fse -- ./program").0, 0);
    let (status, out, err) = check("y.spec");
    assert_eq!(status, 0, "{out}{err}");
    // What goes beyond the causality is looked for in everything, too.
    let (_, out, err) = bench.run("--check nondeterminism -- ./program");
    assert!(!out.contains("not looked for"), "{out}{err}");
}

#[test]
fn threads_with_bytes_of_their_own_do_not_race() {
    let bench = Bench::new();
    bench.write(
        "bytes.c",
        "#include <pthread.h>\n#include <string.h>\nint words[4];\n\
         static void *work(void *p) { memset(p, 1, 3); return p; }\n\
         int main(int argc, char **argv) { char *at = (char *)words; pthread_t a, b; (void)argv;\n\
         pthread_create(&a, 0, work, at + 3);\n\
         pthread_create(&b, 0, work, at + (argc > 1 ? 5 : 6)); pthread_join(a, 0);\n\
         pthread_join(b, 0); return words[1] == 0; }\n",
    );
    bench.built("cc -O0 bytes.c -o program");
    let (status, out, err) = bench.run("--check race -- ./program");
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("no race is possible"), "{out}{err}");
    // With one byte in common they do.
    let (status, out, err) = bench.run("--check race -- ./program 1");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("words[1]+1:1"), "{out}{err}");
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

/// Notes of a program that is not stopped show the order of what it synchronises, and no more.
#[test]
fn a_free_running_program_is_monitored_soundly() {
    let spec = root().join("testdata/monitorability/exclusion.spec");
    for [c, _] in compilers() {
        let bench = Bench::new();
        bench.write("bakery.c", BAKERY);
        bench.built(&format!("cc -- {c} -o program bakery.c -lpthread"));
        for mode in ["async", "sync"] {
            for _ in 0..3 {
                let words =
                    format!("--mode {mode} --check monitorability --spec {}", spec.display());
                let (status, out, err) = bench.run(&format!("{words} -- ./program"));
                assert!(out.contains("verdict monitorable"), "{mode} with {c}:\n{out}{err}");
                assert_eq!(status, 0, "{mode} with {c}:\n{out}{err}");
                let (status, out, err) = bench.run(&format!("{words} -- ./program faulty"));
                assert!(
                    out.contains("SCHEDULE-DEPENDENT exclusion"),
                    "{mode} with {c}:\n{out}{err}"
                );
                assert_eq!(status, 1, "{mode} with {c}:\n{out}{err}");
            }
        }
        // By default, what the notes do not show is not a finding, but the answer is not complete
        // either.
        let words = format!("--mode async --spec {}", spec.display());
        let (status, out, err) = bench.run(&format!("{words} -- ./program faulty"));
        assert_eq!(status, 3, "{c}:\n{out}{err}");
        assert!(out.contains("0 observed, 0 predicted; NOT complete"), "{c}:\n{out}{err}");
    }
}

/// Programs that are right, and that hand data over by what compilers have no hook for.
#[test]
fn structures_by_value_and_inline_assembly_order_what_they_order() {
    let bench = Bench::new();
    let programs = root().join("testdata/programs");
    let silent = |flags: &str, name: &str| {
        let source = programs.join(name);
        bench.built(&format!("cc -- {flags} -pthread -o program {}", source.display()));
        let (status, out, err) = bench.run("-- ./program");
        let how = format!("{flags} {name}:\n{out}{err}");
        assert!(out.contains("all events exact"), "{how}");
        assert!(out.contains("0 observed, 0 predicted"), "{how}");
        assert_eq!(status, 0, "{how}");
    };
    for [c, _] in compilers() {
        for level in ["-O0", "-O2"] {
            for name in ["by_value.c", "cas_expected.c", "spin_in_assembly.c"] {
                silent(&format!("{c} {level}"), name);
            }
            for (set, look) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
                for shape in ["-DLARGE=0 -DWHERE=0", "-DLARGE=1 -DWHERE=1"] {
                    // clang has no hook for a variable that only copies are made of, which the runtime sees made.
                    if set == 2 && c.starts_with("clang") {
                        continue;
                    }
                    silent(&format!("{c} {level} {shape} -DSET={set} -DLOOK={look}"), "handover.c");
                }
            }
        }
    }
}

/// Where something is not understood, that is said, and nothing is called complete.
#[test]
fn functions_that_are_not_exact_are_named() {
    let bench = Bench::new();
    bench.write(
        "odd.c",
        "#include <pthread.h>\nlong x[2];\n\
         static void odd(void) { __asm__ volatile(\"lock; cmpxchg16b %0\" : \"+m\"(x) : : \"rax\", \"rdx\", \"memory\", \"cc\"); }\n\
         static void *t(void *p) { odd(); return p; }\n\
         int main(void) { pthread_t a; pthread_create(&a, 0, t, 0); pthread_join(a, 0); return 0; }\n",
    );
    for [c, _] in compilers() {
        bench.built(&format!("cc -- {c} -O0 -pthread -o odd odd.c"));
        let (status, out, err) = bench.run("-- ./odd");
        assert_eq!(status, 3, "{out}{err}");
        assert!(out.contains("1 function not exact"), "{out}{err}");
        assert!(out.contains("odd (inline assembly)"), "{out}{err}");
        assert!(!out.contains("all events exact"), "{out}{err}");
    }
}

/// The compiler's own ways to go through several steps leave nothing behind but what was asked for.
#[test]
fn completing_hooks_fits_into_every_way_to_build() {
    let bench = Bench::new();
    bench.write(
        "a.c",
        "struct S { long a, b, c; } s; long f(struct S); int main(void) { return (int)f(s); }\n",
    );
    bench.write("b.c", "struct S { long a, b, c; }; long f(struct S v) { return v.a; }\n");
    let listed = || {
        let mut names: Vec<String> = std::fs::read_dir(bench.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for [c, _] in compilers() {
        for words in ["a.c b.c -o program", "-pipe a.c b.c -o program"] {
            bench.built(&format!("cc -- {c} {words}"));
            assert_eq!(listed(), ["a.c", "b.c", "program"], "{c} {words}");
            let (_, out, err) = bench.run("-- ./program");
            assert!(out.contains("all events exact"), "{c} {words}: {out}{err}");
        }
        // From assembly, too.
        bench.built(&format!("cc -- {c} -S a.c b.c"));
        bench.built(&format!("cc -- {c} a.s b.s -o program"));
        let (_, out, err) = bench.run("-- ./program");
        assert!(out.contains("all events exact"), "{c}: {out}{err}");
        std::fs::remove_file(bench.path("a.s")).unwrap();
        std::fs::remove_file(bench.path("b.s")).unwrap();
        std::fs::remove_file(bench.path("program")).unwrap();
    }
}
