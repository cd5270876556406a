//! Properties about every object of a type, in C and C++ programs.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;

use crate::harness::{Bench, root, text};
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

/// The objects that a property is violated for.
fn violated(out: &str) -> Vec<String> {
    let named = out.lines().filter_map(|line| line.strip_prefix("OBSERVED low("));
    let mut all: Vec<String> =
        named.filter_map(|rest| Some(rest.split_once(") [")?.0.to_owned())).collect();
    all.sort();
    all
}

/// The exit status of a run, and the objects that a property which never holds is violated for.
fn objects(bench: &Bench, of: &str) -> (i32, Vec<String>, String) {
    bench.write("low.spec", &format!("property low(a: {of}): a.balance < 0\n"));
    bench.write("fine.spec", &format!("property fine(a: {of}): a.balance >= 0\n"));
    let (status, out, err) = bench.run("-q --spec low.spec -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    let all = violated(&out);
    let (status, out, err) = bench.run("--spec fine.spec -- ./program");
    (status, all, format!("{out}{err}"))
}

#[test]
fn objects_are_known_however_their_memory_was_allocated() {
    let bench = Bench::new();
    let source = fs::read_to_string(root().join("testdata/programs/objects.c")).unwrap();
    bench.write("objects.c", &source);
    let at = |text: &str| {
        let line = source.lines().position(|line| line.contains(text)).unwrap() + 1;
        format!("objects.c:{line}(main)")
    };
    let (later, array) = (at("a = malloc("), at("= calloc("));
    let aligned = at("posix_memalign(");
    for [c, _] in compilers() {
        for level in ["-O0", "-O2"] {
            bench.built(&format!("cc -- {c} -g {level} objects.c -o program"));
            let (status, all, text) = objects(&bench, "account");
            let expected = [
                format!("account({later})#1"),
                format!("account({aligned})#1"),
                format!("account({array})#1[0]"),
                format!("account({array})#1[1]"),
                // A pool in a variable.
                "arena[0]".to_owned(),
            ];
            for object in expected {
                assert!(all.contains(&object), "{c} {level}: {object} in {all:?}");
            }
            let has = |part: &str, count: usize| {
                let found = all.iter().filter(|object| object.contains(part)).count();
                assert_eq!(found, count, "{c} {level}: {part} in {all:?}");
            };
            // A variable of `main`, by the place that shows what it is.
            has("memory(", 1);
            // Two fields of a structure from a wrapper, and one object.
            has(".in[0]", 1);
            has(".in[1]", 1);
            has("(xmalloc)", 3);
            // Elements of a variable. A compiler may make a variable of its own of each field.
            let fleet = all.iter().filter(|object| object.starts_with("fleet[")).count();
            let is_told = text.contains("the type of some memory is not known");
            let is_known = fleet == 2 && status == 0;
            assert!(
                is_known || fleet == 0 && status == 3 && is_told,
                "{c} {level}: {all:?} {text}"
            );
            assert!(is_known || level == "-O2", "{c} {level}: {all:?} {text}");
            assert_eq!(all.len(), 9 + fleet, "{c} {level}: {all:?}");
        }
    }
}

/// The code reaches structures from pointers to their members, and elements from both ends of arrays. No object begins
/// anywhere else, and none is missed without a word: compilers may put allocated memory where nothing is known of it.
#[test]
fn members_are_not_mistaken_for_other_objects() {
    let bench = Bench::new();
    let source = fs::read_to_string(root().join("testdata/programs/objects_within.c")).unwrap();
    bench.write("within.c", &source);
    let at = |text: &str| {
        let line = source.lines().position(|line| line.contains(text)).unwrap() + 1;
        format!("within.c:{line}(main)")
    };
    let (one, grid) = (at("one = calloc("), at("g = calloc("));
    let (vector, array) = (at("v = calloc("), at("all = malloc("));
    let mut expected: Vec<String> = (1..=3).map(|n| format!("item({one})#{n}")).collect();
    let cells = (0..6).map(|n| format!("grid({grid})#1.cells[{}][{}]", n / 3, n % 3));
    expected.extend(cells);
    expected.extend((0..3).map(|n| format!("heap({vector})#1+{}", 8 + 32 * n)));
    expected.extend((0..4).map(|n| format!("item({array})#1[{n}]")));
    expected.sort();
    for [c, _] in compilers() {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            bench.built(&format!("cc -- {c} -g {level} within.c -o program"));
            let (status, all, text) = objects(&bench, "item");
            let wrong: Vec<&String> = all.iter().filter(|it| !expected.contains(it)).collect();
            assert!(wrong.is_empty(), "{c} {level}: {wrong:?}");
            let is_told = text.contains("the type of some memory is not known");
            assert!(all == expected || status == 3 && is_told, "{c} {level}: {all:?} {text}");
            assert!(all == expected || level != "-O0", "{c} {level}: {all:?} {text}");
        }
    }
}

#[test]
fn objects_in_containers_are_known() {
    let bench = Bench::new();
    let source = root().join("testdata/programs/objects.cpp");
    fs::copy(source, bench.path("objects.cpp")).unwrap();
    for [_, cpp] in compilers() {
        for level in ["-O0", "-O2"] {
            bench.built(&format!("c++ -- {cpp} -g {level} objects.cpp -o program"));
            let (_, all, text) = objects(&bench, "plain");
            // Three and then four in a vector, two each in a map and a deque, one in a list, four by pointers; one of
            // these is of a derived class.
            assert_eq!(all.len(), 16, "{cpp} {level}: {all:?}");
            // What optimised LLVM code reads from its frame has no type.
            let is_known = !(cpp.starts_with("clang") && level == "-O2");
            let is_partial = text.contains("the type of some memory is not known");
            assert_eq!(is_partial, !is_known, "{cpp} {level}: {text}");
            assert_eq!(
                text.contains("does not hold everything"),
                is_partial,
                "{cpp} {level}: {text}"
            );
            assert!(!text.contains("violated"), "{cpp} {level}: {text}");
        }
    }
}

/// What cannot be known is not passed over: memory of two types, a variable of a function that is called twice, and
/// code without debugging information.
#[test]
fn objects_that_cannot_be_told_apart_are_not_green() {
    let bench = Bench::new();
    let program = |body: &str| {
        format!(
            "#include <pthread.h>\n#include <stdlib.h>\n\
             struct account {{ int id, balance; }};\nstruct other {{ long big; }};\n\
             static char arena[64];\n\
             static void *work(void *p) {{ struct account *a = p; a->balance++; return 0; }}\n\
             {body}"
        )
    };
    let reused = "int main(void) { pthread_t t; struct account *a = (void *)arena; a->balance = 1;\n\
                  pthread_create(&t, 0, work, a); pthread_join(t, 0);\n\
                  struct other *o = (void *)arena; o->big = -1; return 0; }\n";
    let twice = "static void once(void) { pthread_t t; struct account a; a.balance = 1;\n\
                 pthread_create(&t, 0, work, &a); pthread_join(t, 0); }\n\
                 int main(void) { struct account *b = malloc(8); b->balance = 1; once(); once(); return 0; }\n";
    bench.write("fine.spec", "property fine(a: account): a.balance >= 0\n");
    for (body, says) in [
        (reused, "no object of the type `account`"),
        (twice, "variables of functions that are called several times are objects"),
    ] {
        bench.write("program.c", &program(body));
        for [c, _] in compilers() {
            bench.built(&format!("cc -- {c} -g -O0 program.c -o program"));
            let (status, out, err) = bench.run("--spec fine.spec -- ./program");
            assert!(status == 2 || status == 3, "{c}: {out}{err}");
            assert!(out.contains(says) || err.contains(says), "{c}: {out}{err}");
        }
    }
}

#[test]
fn a_field_of_an_object_has_its_own_name_as_well() {
    let bench = Bench::new();
    bench.write(
        "bank.c",
        "#include <pthread.h>\nstruct account { int id, balance; };\n\
         struct account alice = {1, 5};\n\
         static void *work(void *p) { alice.balance = 7; return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); alice.id = 3; return pthread_join(t, 0); }\n",
    );
    bench.write(
        "both.spec",
        "property one(a: account): a.balance <= 6\nproperty two: alice.balance <= 6\n\
         property three: alice.id >= 1\n",
    );
    bench.built("cc -g bank.c -o program");
    let (status, out, err) = bench.run("--spec both.spec -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("OBSERVED one(alice)") && out.contains("OBSERVED two"), "{out}{err}");
    assert!(out.contains("2 observed, 0 predicted"), "{out}{err}");
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
