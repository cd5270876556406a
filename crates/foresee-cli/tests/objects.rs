//! Properties about every object of a type, in C and C++ programs.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::harness::{Bench, text};
use foresee_testkit::tools::compilers;

/// Three valves in allocated memory. Each of two threads opens and closes its own, the second thread only after the first is
/// through, by chance: nothing orders them. The third valve is touched by `main` alone.
const VALVES: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    typedef struct { char name[4]; int open; short level; pthread_mutex_t lock; } valve;\n\
    static void *work(void *p) { valve *v = p; pthread_mutex_lock(&v->lock);\n\
    v->open = 1; v->level = -3; v->open = 0; pthread_mutex_unlock(&v->lock); return p; }\n\
    static void *later(void *p) { usleep(100000); return work(p); }\n\
    static valve *make(void) {\n\
    valve *v = malloc(sizeof *v);\n\
    v->open = 0; v->level = 7; pthread_mutex_init(&v->lock, 0); return v; }\n\
    int main(void) { pthread_t a, b; valve *one = make(), *two = make(), *own = make();\n\
    pthread_create(&a, 0, work, one); pthread_create(&b, 0, later, two);\n\
    pthread_join(a, 0); pthread_join(b, 0); own->level = -9; free(one); free(two); return 0; }\n";

#[test]
fn a_property_of_two_objects_is_predicted() {
    let bench = Bench::new();
    bench.write("valves.c", VALVES);
    bench.write(
        "two.spec",
        "property exclusive(a: valve, b: valve): !(a.open == 1 && b.open == 1)\n",
    );
    for [c, _] in compilers() {
        bench.built(&format!("cc -- {c} -g -O0 valves.c -o program"));
        let (status, out, err) = bench.run("--spec two.spec -- ./program");
        assert_eq!(status, 1, "{c}: {out}{err}");
        let two = "exclusive(valve(valves.c:9(make))#1, valve(valves.c:9(make))#2)";
        // The other order of the two says the same.
        let other = "exclusive(valve(valves.c:9(make))#2, valve(valves.c:9(make))#1)";
        let violated = |out: &str, property| {
            out.contains(&format!("lattice {property}: violated in another run"))
        };
        assert!(violated(&out, two) && !out.contains(other), "{c}: {out}{err}");
        assert!(out.contains("0 observed, 1 predicted"), "{c}: {out}");
        // The plain causality and the stored trace give the same answer.
        let (status, out, err) =
            bench.run("--reorder maz --keep t.fse --spec two.spec -- ./program");
        assert_eq!(status, 1, "{c}: {out}{err}");
        assert!(violated(&out, two), "{c}: {out}{err}");
        let mut check = bench.foresee();
        let check = check.args(["check", "t.fse", "--spec", "two.spec"]).output().unwrap();
        assert!(violated(&text(&check.stdout), two), "{c}: {}", text(&check.stdout));
    }
}

#[test]
fn fields_have_the_values_of_their_types() {
    let bench = Bench::new();
    bench.write("valves.c", VALVES);
    bench.write("low.spec", "property low(v: valve): v.level >= -5\n");
    bench.write(
        "fine.spec",
        "property fine(v: valve): v.level >= -9 && v.level <= 7 && v.open <= 1\n",
    );
    bench.write("lock.spec", "property locked(v: valve): write(v.level) && v.level == -3 -> !release(v.lock) since acquire(v.lock)\n");
    for [c, _] in compilers() {
        bench.built(&format!("cc -- {c} -g -O1 -fno-inline valves.c -o program"));
        let (status, out, err) = bench.run("--spec low.spec -- ./program");
        assert_eq!(status, 1, "{c}: {out}{err}");
        // It is the object that only one thread has.
        assert!(out.contains("OBSERVED low(valve(valves.c:9(make))#3)"), "{c}: {out}{err}");
        assert!(out.contains("1 observed, 0 predicted"), "{c}: {out}");
        for fine in ["fine.spec", "lock.spec"] {
            let (status, out, err) = bench.run(&format!("--spec {fine} -- ./program"));
            assert_eq!(status, 0, "{c} {fine}: {out}{err}");
        }
    }
}

#[test]
fn objects_of_classes() {
    let bench = Bench::new();
    bench.write(
        "valves.cc",
        "#include <thread>\n#include <chrono>\nnamespace plant {\n\
         struct Part { int number = 4; };\n\
         class Valve : public Part { bool open = false; double level = 0.5; public:\n\
         void use() { open = true; level = -1.5; open = false; } };\n}\n\
         int main() {\n\
         plant::Valve *one = new plant::Valve;\n\
         plant::Valve *two = new plant::Valve;\n\
         std::thread a([=] { one->use(); });\n\
         std::thread b([=] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); two->use(); });\n\
         a.join(); b.join(); delete one; delete two; }\n",
    );
    bench.write(
        "two.spec",
        "property exclusive(a: Valve, b: Valve): !(a.open && b.open)\n\
         property level(a: Valve): a.level >= -1.5 && a.number == 4\n",
    );
    for [_, cpp] in compilers() {
        bench.built(&format!("c++ -- {cpp} -g -O0 valves.cc -o program"));
        let (status, out, err) = bench.run("--spec two.spec -- ./program");
        assert_eq!(status, 1, "{cpp}: {out}{err}");
        let two = "exclusive(Valve(valves.cc:9(main))#1, Valve(valves.cc:10(main))#1)";
        assert!(
            out.contains(&format!("lattice {two}: violated in another run")),
            "{cpp}: {out}{err}"
        );
        let level = "correct level(Valve(valves.cc:10(main))#1): no violation";
        assert!(out.contains(level) && out.contains("0 observed, 1 predicted"), "{cpp}: {out}");
    }
}

#[test]
fn misspelt_types_and_fields_are_errors() {
    let bench = Bench::new();
    bench.write("valves.c", VALVES);
    bench.built("cc -- cc -g valves.c -o program");
    for (spec, says) in [
        ("property p(v: vlave): v.level > 0", "did you mean `valve`?"),
        ("property p(v: valve): v.levle > 0", "did you mean `level`?"),
        ("property p(v: ship): v.level > 0", "there are objects of the types `valve`"),
        ("property p(v): v.level > 0", "no event of the property binds its parameter `v`"),
    ] {
        bench.write("bad.spec", spec);
        let (status, out, err) = bench.run("--spec bad.spec -- ./program");
        assert_eq!(status, 2, "{spec}: {out}{err}");
        assert!(err.contains(says), "{spec}: {out}{err}");
    }
    bench.write("explore.spec", "property p(v: valve): v.level > 0");
    let mut explore = bench.foresee();
    explore.args(["explore", "--spec", "explore.spec", "--", "./program"]);
    let explore = explore.output().unwrap();
    assert_eq!(explore.status.code(), Some(2));
    assert!(
        text(&explore.stderr).contains("about every object of a type"),
        "{}",
        text(&explore.stderr)
    );
}

#[test]
fn an_object_without_values_is_not_green() {
    let bench = Bench::new();
    let (one, two) = ("account(bank.c:9(open))#1", "account(bank.c:9(open))#2");
    let steps = |limit: &str| {
        format!(
            "T0|fork(T1)|\nT0|w({one}.balance)=5|bank.c:1\nT0|w({one}.limit){limit}|bank.c:2\n\
             T1|w({two}.balance)=5|bank.c:3\nT1|w({two}.limit)=7|bank.c:4\n"
        )
    };
    bench.write("bank.spec", "property p(a: account): a.balance <= a.limit\n");
    for (limit, expected) in [("=9", 0), ("", 3)] {
        bench.write("bank.std", &steps(limit));
        // Whatever is looked at.
        for space in ["", "--reorder maz", "--reorder correct"] {
            let mut check = bench.foresee();
            check.args(["check", "bank.std", "--spec", "bank.spec"]);
            let check = check.args(space.split_whitespace()).output().unwrap();
            let out = text(&check.stdout);
            assert_eq!(check.status.code(), Some(expected), "{space}: {out}");
            let says = out.contains(&format!("before `{one}.limit` has a value"));
            assert_eq!(says, limit.is_empty(), "{space}: {out}");
        }
    }
}
