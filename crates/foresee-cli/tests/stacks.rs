//! Call stacks of captured programs, compared with what the programs know of their own calls.
#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::collections::HashMap;
use std::fs::File;

use foresee_formats::{Format, Native};
use foresee_trace::{Batch, Location, Op, StackId, Value, location};

use crate::harness::Bench;

/// Two threads that walk at random through functions which call each other, from lines that are marked with digits. Each function
/// gets the digits of the calls that led to it, and writes them to `path` before and after its own calls.
const WALK: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long path;
static __thread unsigned seed;
static __thread jmp_buf target;
static __thread int can_jump;
static int draw(int below) { seed = seed * 1103515245 + 12345; return (seed >> 16) % below; }
NOINLINE void note(long p) { pthread_mutex_lock(&lock); path = p; /* N */
    pthread_mutex_unlock(&lock); }
void a(long p, int depth); void b(long p, int depth); void c(long p, int depth);
NOINLINE void a(long p, int depth) {
    note(p); // 1
    for (int i = depth < 9 ? draw(3) : 0; i > 0; i--) {
        if (draw(2)) b(p * 16 + 2, depth + 1); // 2
        else c(p * 16 + 3, depth + 1); // 3
    }
    note(p); // 4
}
NOINLINE void b(long p, int depth) {
    volatile char large[300]; large[depth] = depth;
    if (depth < 9 && draw(2)) {
        a(p * 16 + 5, depth + 1); // 5
        if (can_jump && draw(3) == 0) { can_jump = 0; longjmp(target, 1); }
        if (depth < 5) b(p * 16 + 6, depth + large[depth] % 2 + 1); // 6
    }
    note(p); // 7
}
NOINLINE void c(long p, int depth) {
    if (draw(3) || can_jump) {
        a(p * 16 + 8, depth + 1); // 8
        __asm__ volatile("nop"); /* clang would make one call of this and the last one */
    } else if (!setjmp(target)) {
        can_jump = 1;
        b(p * 16 + 9, depth + 1); // 9
        can_jump = 0;
    } else {
        a(p * 16 + 10, depth + 1); // 10
    }
    note(p); // 11
}
NOINLINE void walk(unsigned from) { seed = from;
    for (int i = 0; i < 25; i++) { can_jump = 0; a(12, 0); // 12
    } note(0); // 13
}
"#;

/// The end of each of these programs: two threads walk.
const WALKERS: &str = r#"
void *work(void *from) { walk((unsigned)(long)from); // 14
    return 0; }
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(i + 3));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// The same with exceptions, which are caught some frames further up, and templates.
const THROWS: &str = r#"
#include <pthread.h>
#include <stdexcept>
#define NOINLINE __attribute__((noinline, noclone, noipa))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long path;
static __thread unsigned seed;
static __thread int catchers;
static int draw(int below) { seed = seed * 1103515245 + 12345; return (seed >> 16) % below; }
NOINLINE void note(long p) { pthread_mutex_lock(&lock); path = p; /* N */
    pthread_mutex_unlock(&lock); }
struct Guard { long p; ~Guard() { catchers += p < 0; } };
void a(long p, int depth); template <int N> void b(long p, int depth); void c(long p, int depth);
NOINLINE void a(long p, int depth) {
    Guard guard{p};
    note(p); // 1
    for (int i = depth < 9 ? draw(3) : 0; i > 0; i--) {
        if (draw(2)) b<300>(p * 16 + 2, depth + 1); // 2
        else c(p * 16 + 3, depth + 1); // 3
    }
    note(p); // 4
}
template <int N> NOINLINE void b(long p, int depth) {
    volatile char large[N]; large[depth] = depth;
    if (depth < 9 && draw(2)) {
        a(p * 16 + 5, depth + 1); // 5
        if (catchers > 0 && draw(3) == 0) throw std::runtime_error("far");
        if (depth < 5) b<N - 100>(p * 16 + 6, depth + large[depth] % 2 + 1); // 6
    }
    note(p); // 7
}
template <> NOINLINE void b<0>(long, int) {}
NOINLINE void c(long p, int depth) {
    if (draw(3)) {
        a(p * 16 + 8, depth + 1); // 8
    } else try {
        catchers++;
        b<300>(p * 16 + 9, depth + 1); // 9
        catchers--;
    } catch (const std::exception &) {
        catchers--;
        a(p * 16 + 10, depth + 1); // 10
    }
    note(p); // 11
}
NOINLINE void walk(unsigned from) { seed = from;
    for (int i = 0; i < 25; i++) { catchers = 0; a(12, 0); // 12
    } note(0); // 13
}
"#;

/// Functions that write `path` at their very end, where compilers put the store behind the hook at the end of the function; that
/// only copy, so that they have no such hooks; that have none because they ask for it; and that libc calls.
const ENDS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa))
#endif
static long path;
struct large { long path; long rest[9]; } large;
struct small { long path; long rest; } small;
static __thread unsigned seed;
static __thread long sorted;
static int draw(int below) { seed = seed * 1103515245 + 12345; return (seed >> 16) % below; }
void a(long p, int depth); void c(long p, int depth);
NOINLINE void copy(struct large *to, const struct large *from) { *to = *from; }
NOINLINE void copy_small(struct small *to, const struct small *from) { *to = *from; }
NOINLINE __attribute__((no_sanitize_thread)) void plain(long p, int depth) {
    a(p * 16 + 6, depth + 1); // 6
    __asm__ volatile("");
}
NOINLINE void recurse(long p, int depth) {
    if (depth < 9 && draw(4)) recurse(p * 16 + 3, depth + 1); // 3
    path = p;
}
NOINLINE int branch(long p, int depth) {
    int n = draw(3);
    if (n == 0) return n;
    if (n == 1) path = p; else path = p + 0;
    return n + 1;
}
NOINLINE void a(long p, int depth) {
    struct large own = {p * 16 + 5, {1}};
    struct small little = {p * 16 + 9, 1};
    if (depth < 9 && draw(2)) {
        recurse(p * 16 + 2, depth + 1); // 2
        c(p * 16 + 4, depth + 1); // 4
    }
    copy(&large, &own); // 5
    copy_small(&small, &little); // 9
    branch(p * 16 + 1, depth); // 1
    path = p;
}
NOINLINE void c(long p, int depth) { // 7
    if (depth < 9 && draw(2)) plain(p * 16 + 7, depth + 1);
    else if (depth < 9) recurse(p * 16 + 8, depth + 1); // 8
    path = p;
}
static int compare(const void *left, const void *right) {
    path = sorted;
    return *(const int *)left - *(const int *)right;
}
NOINLINE void sorts(long p) { // 10
    int data[3] = {3, draw(9), 2};
    sorted = p * 16 + 10;
    qsort(data, 3, sizeof *data, compare);
}
NOINLINE void walk(unsigned from) { seed = from;
    for (int i = 0; i < 25; i++) {
        a(12, 0); // 12
        sorts(13); // 13
    }
    path = 0;
}
"#;

/// The lines that end with each number in a comment.
fn marked(source: &str) -> HashMap<i64, u32> {
    let number = |line: &str| line.rsplit_once("// ")?.1.trim().parse().ok();
    (1..).zip(source.lines()).filter_map(|(at, line)| Some((number(line)?, at))).collect()
}

/// The writes of `path` in a trace: the value, and the places of the calls that led there.
fn writes(trace: &std::path::Path) -> Vec<(i64, Option<Vec<Location>>)> {
    let mut source = Native.read(Box::new(File::open(trace).unwrap())).unwrap();
    let (mut batch, mut found) = (Batch::default(), Vec::new());
    while source.next_batch(&mut batch).unwrap() {
        let names = source.names();
        for (i, event) in batch.events.iter().enumerate() {
            let values: Vec<Value> = batch.pool.values(event).to_vec();
            if let (Op::Write, Some("path" | "large.path" | "small.path"), [Value::Int(value)]) =
                (event.op(), event.target_name(names), &values[..])
            {
                let stack = batch.stack(i);
                let places = names.stacks.calls(stack).map(|at| location(at, names).unwrap());
                found.push((*value, (stack != StackId::NONE).then(|| places.collect())));
            }
        }
    }
    found
}

/// The calls behind a value, innermost first.
fn digits(value: i64) -> Vec<i64> {
    let rest = std::iter::successors(Some(value), |rest| Some(rest / 16));
    rest.take_while(|rest| *rest > 0).map(|rest| rest % 16).collect()
}

/// Builds a program with each compiler and runs it; `check` gets the lines of its numbers, and each value with its stack.
fn walked(name: &str, source: &str, mut check: impl FnMut(&HashMap<i64, u32>, i64, &[Location])) {
    let source = &format!("{source}{WALKERS}");
    let lines = marked(source);
    let is_cpp = name.ends_with(".cc");
    for compilers in foresee_testkit::tools::compilers() {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let compiler = compilers[usize::from(is_cpp)];
            let bench = Bench::new();
            bench.write(name, source);
            let wrapper = if is_cpp { "c++" } else { "cc" };
            bench.built(&format!("{wrapper} -- {compiler} {level} -g -o program {name} -pthread"));
            let (status, out, err) = bench.run("--keep t.fse --check deadlock -- ./program");
            assert_eq!(status, 0, "{compiler} {level}: {out}{err}");
            let (mut deepest, mut count) = (0, 0);
            for (value, stack) in writes(&bench.path("t.fse")) {
                let Some(stack) = stack else {
                    panic!("{compiler} {level}: no stack where {value:x} is written");
                };
                let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    check(&lines, value, &stack)
                }));
                assert!(said.is_ok(), "{compiler} {level}: {value:x} {stack:?}");
                (deepest, count) = (stack.len().max(deepest), count + 1);
            }
            assert!(deepest > 7 && count > 100, "{compiler} {level}: {deepest} {count}");
        }
    }
}

/// The lines of the calls behind a value.
fn expected(lines: &HashMap<i64, u32>, value: i64) -> Vec<u32> {
    digits(value).iter().chain(&[14]).map(|digit| lines[digit]).collect()
}

fn got(stack: &[Location]) -> Vec<u32> {
    stack.iter().map(|place| place.line.unwrap_or(0)).collect()
}

/// All writes are in `note`, which is called from one of two lines.
fn noted(lines: &HashMap<i64, u32>, value: i64, stack: &[Location]) {
    let got = got(stack);
    assert_eq!(got[1..], expected(lines, value)[..]);
    let from = match digits(value).first() {
        None => vec![13],
        Some(3) => vec![11],
        Some(2 | 6 | 9) => vec![7],
        Some(_) => vec![1, 4],
    };
    assert!(from.iter().any(|digit| lines[digit] == got[0]), "{from:?}");
}

#[test]
fn stacks_are_those_that_the_program_knows_of() {
    walked("walk.c", WALK, noted);
}

#[test]
fn exceptions_leave_the_functions_that_they_pass() {
    walked("throws.cc", THROWS, noted);
}

#[test]
fn a_step_at_the_end_of_its_function_is_in_it() {
    let mut called_back = 0;
    walked("ends.c", ENDS, |lines, value, stack| {
        // The functions of libc that call back have no lines, and no hooks.
        let is_known = |place: &&Location| place.line.is_some();
        let known: Vec<Location> = stack.iter().filter(is_known).cloned().collect();
        called_back += usize::from(known.len() < stack.len());
        let (got, mut expected) = (got(&known), expected(lines, value));
        // Code without hooks does not say where it was called: the caller may be at its beginning, which is marked.
        let digits = digits(value);
        let called_without_hooks = digits.iter().map(|digit| matches!(digit, 7 | 10));
        for ((got, expected), is_near) in got.iter().zip(&mut expected).zip(called_without_hooks) {
            if is_near && (*expected..*expected + 4).contains(got) {
                *expected = *got;
            }
        }
        assert_eq!(got, expected);
    });
    assert!(called_back > 0);
}

const RACES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
int count, started, data[4] = {3, 1, 2, 0};
__attribute__((noinline)) void bump(int n) { count += n; }
__attribute__((noinline)) void repeat(int n) { if (n > 0) repeat(n - 1); else bump(n); started += n; }
static int compare(const void *a, const void *b) { bump(1); return *(int *)a - *(int *)b; }
__attribute__((noinline)) void sorts(void) { qsort(data, 4, sizeof *data, compare); data[0]++; }
void *work(void *arg) { sorts(); return arg; }
__attribute__((noinline)) pthread_t launch(void) { pthread_t t; pthread_create(&t, 0, work, 0); return t; }
int main(void) {
    pthread_t t = launch();
    repeat(20);
    pthread_join(t, 0);
    return 0;
}
"#;

#[test]
fn reports_show_stacks_and_suppressions_see_them() {
    let bench = Bench::new();
    bench.write("races.c", RACES);
    bench.built("cc -O0 -g -o program races.c -pthread");
    let (status, out, err) = bench.run("--check race --keep t.fse -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    // Places are aligned with spaces.
    let plain = |out: &str| out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "#0 bump races.c:5",
        "#1 compare races.c:7",
        "sorts races.c:8",
        "#1 repeat races.c:6",
        "more frames, which -v shows",
    ] {
        assert!(plain(&out).contains(words), "{words}:\n{out}");
    }
    let check = |words: &str| {
        let output =
            bench.foresee().arg("check").arg("t.fse").args(words.split_whitespace()).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // The same stacks from the trace that was kept; all of them, and that of the thread's start.
    let (_, verbose) = check("--check race -v");
    assert!(
        plain(&verbose).contains("main races.c:13") && !verbose.contains("which -v shows"),
        "{verbose}"
    );
    assert!(plain(&verbose).contains("#0 launch races.c:10"), "{verbose}");
    let (_, json) = check("--check race --format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sites = json["analyses"][0]["findings"][0]["sites"].as_array().unwrap();
    let functions = |site: &serde_json::Value| -> Vec<String> {
        let frames = site["frames"].as_array().unwrap().iter();
        frames.map(|frame| frame["function"].as_str().unwrap_or("?").to_owned()).collect()
    };
    let all: Vec<Vec<String>> = sites.iter().map(functions).collect();
    let recursive: Vec<&str> =
        std::iter::once("bump").chain(["repeat"; 21]).chain(["main"]).collect();
    assert!(all.iter().any(|frames| *frames == recursive), "{all:?}");
    let called_back =
        all.iter().find(|frames| frames.get(1).is_some_and(|f| f == "compare")).unwrap();
    assert_eq!(called_back[called_back.len() - 2..], ["sorts", "work"], "{all:?}");
    let (_, sarif) = check("--check race --format sarif");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    let stacks = sarif["runs"][0]["results"][0]["stacks"].as_array().unwrap();
    assert!(stacks.len() == 2 && stacks[0]["frames"].as_array().unwrap().len() > 3, "{stacks:?}");
    // A function further up covers a finding, but not as the innermost one.
    bench.write("some.supp", "race:^sorts$ # known\n");
    bench.write("other.supp", "race_top:^sorts$ # known\n");
    assert_eq!(check("--check race --suppressions some.supp").0, Some(0));
    assert_eq!(check("--check race --suppressions other.supp").0, Some(1));
    // Without stacks, findings are the same and have the same fingerprints.
    let (status, without, err) = bench.run("--check race --stacks off -- ./program");
    assert_eq!(status, 1, "{without}{err}");
    assert!(!without.contains("#1 "), "{without}");
    let prints = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().filter(|word| word.starts_with("F-"));
        words.map(|word| word.trim_end_matches(';').to_owned()).collect()
    };
    assert_eq!(prints(&out), prints(&without));
}
