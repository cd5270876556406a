//! `foresee explore` on real programs: the classics of `testdata/explore` fail, and repaired they are covered.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use serde_json::Value as Json;

use crate::harness::{Bench, root, said};

/// Builds a classic; with the repair or without.
fn build(bench: &Bench, name: &str, is_repaired: bool) {
    let folder = root().join("testdata/explore");
    let (folder, define) = (folder.display(), if is_repaired { "-DREPAIRED" } else { "" });
    bench.built(&format!("cc -g -O1 -pthread {define} -o {name} {folder}/{name}.c"));
}

fn foresee(bench: &Bench, words: &str) -> (i32, String, String) {
    said(&bench.foresee().args(words.split_whitespace()).output().unwrap())
}

#[test]
fn classics_fail_and_their_schedules_can_be_replayed() {
    let bench = Bench::new();
    for (name, word) in [
        ("account", "assertion"),
        ("aba_stack", "assertion"),
        ("queue", "assertion"),
        ("timed_wait", "assertion"),
        ("torn_copy", "assertion"),
        ("lost_wakeup", "deadlock"),
        ("philosophers", "deadlock"),
    ] {
        build(&bench, name, false);
        let (status, out, err) =
            foresee(&bench, &format!("explore --runs 200 --keep {name}.kept -- ./{name}"));
        assert_eq!(status, 1, "{name}: {out} {err}");
        assert!(out.starts_with("FAILED ") && out.contains(word), "{name}: {out}");
        assert!(out.contains("replayed 3 of 3"), "{name}: {out}");
        let (status, out, err) =
            foresee(&bench, &format!("replay --quiet {name}.kept/1.schedule -- ./{name}"));
        assert_eq!(status, 1, "{name}: {out} {err}");
        assert!(out.starts_with("confirmed: "), "{name}: {out}");
        // The repaired program does not fail on that way, or cannot go it.
        build(&bench, name, true);
        let words = format!("replay --quiet --expect clean {name}.kept/1.schedule -- ./{name}");
        let (status, out, err) = foresee(&bench, &words);
        assert!(matches!(status, 0 | 3), "{name}: {status} {out} {err}");
        assert!(err.contains("another build"), "{name}: {err}");
    }
}

#[test]
fn repaired_classics_are_covered() {
    let bench = Bench::new();
    for name in
        ["account", "queue", "timed_wait", "torn_copy", "lost_wakeup", "philosophers", "rw_upgrade"]
    {
        build(&bench, name, true);
        let (status, out, err) = foresee(&bench, &format!("explore -- ./{name}"));
        assert_eq!(status, 0, "{name}: {out} {err}");
        assert!(out.contains("Every schedule was covered"), "{name}: {out}");
    }
}

#[test]
fn loops_that_wait_are_an_assumption_or_a_limit() {
    let bench = Bench::new();
    build(&bench, "ticket_lock", true);
    let (status, out, _) = foresee(&bench, "explore --spin collapse -- ./ticket_lock");
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("told the same twice in a loop is waiting"), "{out}");
    let (status, out, _) = foresee(&bench, "explore --spin bound=1 -- ./ticket_lock");
    assert_eq!(status, 3, "{out}");
    assert!(out.starts_with("NOT ALL ") && out.contains("Loops that wait were cut"), "{out}");
}

#[test]
fn an_exploration_continues_and_tells_what_it_covered() {
    let bench = Bench::new();
    build(&bench, "aba_stack", true);
    // The nodes of this stack are raced for, which is not what is tried here.
    let words = "explore --no-checks --keep kept --format json --runs";
    let (status, out, err) = foresee(&bench, &format!("{words} 6 -- ./aba_stack"));
    assert_eq!(status, 3, "{out} {err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["explored"]["stopped"], "runs", "{out}");
    assert_ne!(report["explored"]["covered"], "everything", "{out}");
    let (status, out, err) = foresee(&bench, &format!("{words} 1000 -- ./aba_stack"));
    assert_eq!(status, 0, "{out} {err}");
    assert!(err.contains("kept has 6 runs"), "{err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["explored"]["covered"], "everything", "{out}");
    // Another program cannot use it, and that is said.
    build(&bench, "queue", true);
    let (status, _, err) = foresee(&bench, &format!("{words} 1000 -- ./queue"));
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("void"), "{err}");
}

#[test]
fn what_cannot_be_explored_is_refused() {
    let bench = Bench::new();
    for (words, message) in [
        ("explore -- /bin/true", "was not built for capture"),
        ("explore -- ./missing", "there is no program `./missing`"),
        ("explore --spin often -- /bin/true", "--spin is `collapse` or `bound=N`"),
        (
            "explore --budget soon -- /bin/true",
            "invalid value 'soon' for '--budget <TIME>': not a time in seconds, or such as 60s, 5m or 1h",
        ),
    ] {
        let (status, _, err) = foresee(&bench, words);
        assert_eq!(status, 2, "{words}: {err}");
        assert!(err.contains(message), "{words}: {err}");
    }
    let cut = bench.write("cut.schedule", "foresee-explored-schedule 1\nthread 0\nstep 0\n");
    let (status, _, err) = foresee(&bench, &format!("replay {} -- /bin/true", cut.display()));
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("cut off"), "{err}");
}

/// Code without hooks may share memory that no schedule knows of.
#[test]
fn a_program_that_is_captured_in_part_is_not_covered() {
    let bench = Bench::new();
    bench.write("part.c", "static int n; void bump(void) { n++; }\n");
    bench.write(
        "main.c",
        "#include <pthread.h>\nvoid bump(void);\nstatic void *f(void *p) { bump(); return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); bump(); return pthread_join(t, 0); }\n",
    );
    let plain = std::process::Command::new("cc")
        .args(["-g", "-c", "part.c"])
        .current_dir(bench.dir.path())
        .status();
    assert!(plain.unwrap().success());
    bench.built("cc -g -pthread -o program main.c part.o");
    // A second exploration with the same folder needs no run that could show it.
    for _ in 0..2 {
        let (status, out, err) = foresee(&bench, "explore --keep kept -- ./program");
        assert_eq!(status, 3, "{out} {err}");
        assert!(out.starts_with("NOT ALL ") && out.contains("not built for capture"), "{out}");
    }
    let (status, out, err) = foresee(&bench, "explore --trust program -- ./program");
    assert_eq!(status, 0, "{out} {err}");
}

/// What threads tell each other through the kernel is not in the model: that is said, and a wait there is no failure.
#[test]
fn what_goes_through_the_kernel_is_not_covered() {
    let bench = Bench::new();
    let begin = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <sys/mman.h>\n\
        #include <sys/wait.h>\n#include <unistd.h>\nstatic int ends[2], file, *a, *b;\n";
    let main = "pthread_t t; pthread_create(&t, 0, f, 0);";
    let end = "pthread_join(t, 0); return 0; }";
    for (name, thread, before, after, why) in [
        (
            "pipe",
            "if (write(ends[1], \"x\", 1) != 1) _exit(1);",
            "if (pipe(ends)) return 1;",
            "char c; if (read(ends[0], &c, 1) != 1) return 1;",
            "through the kernel",
        ),
        (
            "file",
            "if (pwrite(file, \"x\", 1, 0) != 1) _exit(1);",
            "file = open(\"content\", O_RDWR | O_CREAT | O_TRUNC, 0600);",
            "char c; if (pread(file, &c, 1, 0) > 1) return 1;",
            "through the kernel",
        ),
        (
            "mapping",
            "*a = 1;",
            "file = memfd_create(\"m\", 0); if (ftruncate(file, 4096)) return 1;\n\
             a = mmap(0, 4096, PROT_WRITE, MAP_SHARED, file, 0); b = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);",
            "int seen = *b; if (seen > 1) return 1;",
            "maps memory",
        ),
        (
            "process",
            "",
            "",
            "pid_t p = fork(); if (!p) _exit(0); waitpid(p, 0, 0);",
            "starts other",
        ),
        (
            "program",
            "",
            "",
            "pthread_join(t, 0); execlp(\"true\", \"true\", (char *)0);",
            "starts other",
        ),
        // None of it is done.
        ("nothing", "", "", "if (n > 9) execlp(\"true\", \"true\", (char *)0);", ""),
    ] {
        let text = format!(
            "{begin}static void *f(void *p) {{ {thread} return p; }}\n\
             int main(int n, char **v) {{ (void)v; {before}\n{main}\n{after}\n{end}\n"
        );
        bench.write("program.c", &text);
        bench.built("cc -g -w -pthread -o program program.c");
        let (status, out, err) = foresee(&bench, "explore --no-checks --timeout 5 -- ./program");
        assert!(!out.contains("FAILED"), "{name}: {out}");
        match why {
            "" => assert_eq!(status, 0, "{name}: {out} {err}"),
            _ => {
                assert_eq!(status, 3, "{name}: {out} {err}");
                assert!(out.contains("Nothing is claimed to be covered"), "{name}: {out}");
                assert!(out.contains(why), "{name}: {out}");
            }
        }
    }
}

pub(crate) const ACCOUNT: &str = r#"
#include <pthread.h>
#include "foresee.h"
int balance = 10, audited;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *withdraw(void *x) {
    pthread_mutex_lock(&m);
    int seen = balance;
#ifndef REPAIRED
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
#endif
    if (seen >= 8)
        balance = balance - 8;
    pthread_mutex_unlock(&m);
    return x;
}
static void *audit(void *x) {
    FORESEE_EVENT("begin", 1);
#ifdef REPAIRED
    pthread_mutex_lock(&m);
#endif
    audited = balance;
#ifdef REPAIRED
    pthread_mutex_unlock(&m);
#endif
    FORESEE_EVENT("end", 2);
    return x;
}
int main(void) {
    pthread_t t[3];
    pthread_create(&t[0], 0, withdraw, 0);
    pthread_create(&t[1], 0, withdraw, 0);
    pthread_create(&t[2], 0, audit, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
}
"#;

pub(crate) const PROPERTIES: &str = "property solvent: balance >= 0
property locked: write(audited) -> !release(m) since acquire(m)
property marked: event(end, 2) -> once event(begin, 1)
property unmarked: event(end) -> balance == 10
";

#[test]
fn properties_are_decided_over_all_schedules() {
    let bench = Bench::new();
    bench.write("account.c", ACCOUNT);
    bench.write("account.spec", PROPERTIES);
    bench.built("cc -g -O1 -pthread -o account account.c");
    let words = "explore --all --keep kept --spec account.spec -- ./account";
    let (status, out, err) = foresee(&bench, words);
    assert_eq!(status, 1, "{out} {err}");
    for name in ["solvent", "locked", "unmarked"] {
        assert!(out.contains(&format!("(property {name} violated)")), "{out}");
    }
    assert!(!out.contains("property marked"), "{out}");
    assert_eq!(out.matches("replayed 3 of 3").count(), 3, "{out}");
    assert!(out.contains("Every schedule was covered; all failures are listed"), "{out}");
    for i in 1..=3 {
        let words = format!("replay --quiet --spec account.spec kept/{i}.schedule -- ./account");
        let (status, out, err) = foresee(&bench, &words);
        assert_eq!(status, 1, "{out} {err}");
        assert!(out.starts_with("confirmed: property "), "{out}");
    }
    // Repaired, all hold but the one that the schedule decides.
    bench.built("cc -g -O1 -pthread -DREPAIRED -o account account.c");
    let (status, out, err) = foresee(&bench, &words.replace("kept", "kept2"));
    assert_eq!(status, 1, "{out} {err}");
    assert_eq!(out.matches("FAILED").count(), 1, "{out}");
    assert!(out.contains("(property unmarked violated)"), "{out}");
    let kept: Vec<&str> = PROPERTIES.lines().take(3).collect();
    bench.write("account.spec", &kept.join("\n"));
    let (status, out, err) = foresee(&bench, &words.replace("kept", "kept3"));
    assert_eq!(status, 0, "{out} {err}");
    assert!(out.contains("every property held"), "{out}");
    // With parameters: for each binding.
    let parametric = "property pair(x): event(end, x) -> once event(begin, x)
        property apart(x): event(end, x) -> !once event(begin, x)
        pattern again(l, t): acquire(l)@t .. write(balance)@t .. acquire(l)@t";
    bench.write("account.spec", parametric);
    let (status, out, err) = foresee(&bench, &words.replace("kept", "kept4"));
    assert_eq!(status, 1, "{out} {err}");
    assert_eq!(out.matches("FAILED").count(), 1, "{out}");
    assert!(out.contains("(property pair violated)"), "{out}");
    assert!(out.contains("replayed 3 of 3"), "{out}");
    assert!(out.contains("Every schedule was covered; all failures are listed"), "{out}");
    let words_of_replay = "replay --quiet --spec account.spec kept4/1.schedule -- ./account";
    let (status, out, err) = foresee(&bench, words_of_replay);
    assert_eq!(status, 1, "{out} {err}");
    // What cannot be decided along the search is said, and is judged on each run.
    bench.write("account.spec", "property every: write(_) -> once write(_)");
    let (status, out, err) = foresee(&bench, &words.replace("kept", "kept5"));
    assert_eq!(status, 3, "{out} {err}");
    assert!(out.contains("property every sees accesses of every variable"), "{out}");
}

#[test]
fn checks_see_every_run_and_report_once() {
    let bench = Bench::new();
    build(&bench, "account", false);
    let words = "explore --all --keep kept --format json --check race -- ./account";
    let (status, out, err) = foresee(&bench, words);
    assert_eq!(status, 1, "{out} {err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    let rules: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    let has = |what: &str| rules.iter().any(|rule| rule.starts_with(what));
    assert!(has("race") && has("program-failure"), "{rules:?}");
    let mut prints: Vec<&Json> =
        report["findings"].as_array().unwrap().iter().map(|one| &one["fingerprint"]).collect();
    prints.retain(|print| !print.is_null());
    let count = prints.len();
    prints.sort_by_key(|print| print.to_string());
    prints.dedup();
    assert_eq!(prints.len(), count, "{out}");
    let schedules = std::fs::read_dir(bench.path("kept")).unwrap().flatten();
    let is_schedule =
        |path: &std::path::Path| path.extension().is_some_and(|end| end == "schedule");
    assert_eq!(schedules.filter(|one| is_schedule(&one.path())).count(), rules.len());
    let (status, _, err) = foresee(&bench, "explore --check rase -- ./account");
    assert_eq!(status, 2, "{err}");
}

/// Kept runs are not made again, and what checks found in them is still found.
#[test]
fn checks_are_made_by_default_and_see_kept_runs() {
    let bench = Bench::new();
    bench.write(
        "race.c",
        "#include <pthread.h>\nstatic int n;\nstatic void *f(void *p) { n = 1; return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); n = 2; return pthread_join(t, 0); }\n",
    );
    bench.built("cc -g -pthread -o race race.c");
    for _ in 0..2 {
        let (status, out, err) = foresee(&bench, "explore --keep kept -- ./race");
        assert_eq!(status, 1, "{out} {err}");
        assert!(out.contains("Every schedule was covered"), "{out}");
        assert!(out.contains("race on n") && out.contains("no sequential consistency"), "{out}");
    }
    let (status, out, err) = foresee(&bench, "replay --quiet kept/1.schedule -- ./race");
    assert_eq!(status, 0, "{out} {err}");
    // Runs that were not checked do not count as such that passed.
    let (status, out, err) = foresee(&bench, "explore --no-checks --keep kept -- ./race");
    assert_eq!(status, 0, "{out} {err}");
    assert!(err.contains("other checks"), "{err}");
    let (status, out, err) = foresee(&bench, "explore --keep kept -- ./race");
    assert_eq!(status, 1, "{out} {err}");
    assert!(err.contains("other checks"), "{err}");
}

#[test]
fn nothing_runs_on_after_a_kill() {
    let bench = Bench::new();
    // It never comes to another operation.
    bench.write("idle.c", "int main(void) { for (;;) __asm__ volatile(\"\"); }");
    bench.built("cc -g -o idle idle.c");
    let program = bench.path("idle");
    let mut explorer = bench.foresee();
    explorer.args(["explore", "--timeout", "1000", "--"]).arg(&program);
    let mut explorer = explorer.spawn().unwrap();
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut links = processes.filter_map(|one| std::fs::read_link(one.path().join("exe")).ok());
        links.any(|link| link == program)
    };
    while !running() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    explorer.kill().unwrap();
    explorer.wait().unwrap();
    // The kernel needs a moment.
    for _ in 0..1000 {
        if !running() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the program still runs");
}

const CONSUMERS: &str = r#"
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
static std::mutex m;
static std::condition_variable filled;
static std::queue<int> items;
static bool is_over;
static std::atomic<int> taken{0};
static void consume() {
    std::unique_lock<std::mutex> held(m);
#ifdef REPAIRED
    filled.wait(held, [] { return !items.empty() || is_over; });
    if (items.empty()) return;
#else
    if (items.empty() && !is_over) filled.wait(held);
    assert(!items.empty());
#endif
    items.pop();
    taken++;
}
int main() {
    std::thread a(consume), b(consume);
    {
        std::lock_guard<std::mutex> held(m);
        items.push(1);
        is_over = true;
    }
    filled.notify_all();
    a.join();
    b.join();
    assert(taken == 1);
}
"#;

const GATE: &str = r#"
#include <atomic>
#include <cassert>
#include <thread>
static std::atomic<int> turns{0};
static std::atomic<bool> is_busy{false};
static int inside;
static void enter() {
#ifdef REPAIRED
    bool expected = false;
    if (!is_busy.compare_exchange_strong(expected, true)) return;
#else
    if (is_busy.load(std::memory_order_acquire)) return;
    is_busy.store(true, std::memory_order_release);
#endif
    inside++;
    assert(inside == 1);
    inside--;
    turns.fetch_add(1, std::memory_order_relaxed);
    is_busy.store(false);
}
int main() {
    std::thread a(enter), b(enter);
    a.join();
    b.join();
    assert(turns >= 1 && turns <= 2);
}
"#;

#[test]
fn programs_in_cpp_are_explored() {
    let bench = Bench::new();
    for (name, text) in [("consumers", CONSUMERS), ("gate", GATE)] {
        bench.write(&format!("{name}.cpp"), text);
        bench.built(&format!("c++ -g -O1 -pthread -o {name} {name}.cpp"));
        let (status, out, err) = foresee(&bench, &format!("explore --runs 300 -- ./{name}"));
        assert_eq!(status, 1, "{name}: {out} {err}");
        assert!(out.contains("(assertion)") && out.contains("replayed 3 of 3"), "{out}");
        bench.built(&format!("c++ -g -O1 -pthread -DREPAIRED -o {name} {name}.cpp"));
        let (status, out, err) = foresee(&bench, &format!("explore -- ./{name}"));
        assert_eq!(status, 0, "{name}: {out} {err}");
    }
}

/// A program that leaves a file behind is another one when it runs again, unless each run has a folder of its own.
#[test]
fn runs_have_folders_of_their_own() {
    let bench = Bench::new();
    bench.write(
        "leaves.c",
        "#include <fcntl.h>\n#include <pthread.h>\nstatic int n;\n\
         static void *f(void *x) { n = open(\"left\", O_CREAT | O_EXCL, 0600) >= 0; return x; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return !n; }\n",
    );
    bench.built("cc -g -pthread -o leaves leaves.c");
    let (status, out, err) = foresee(&bench, "explore --private --jobs 3 -- ./leaves");
    assert_eq!(status, 0, "{out} {err}");
    assert!(!bench.path("left").exists());
    let (status, out, _) = foresee(&bench, "explore -- ./leaves");
    assert_ne!(status, 0, "{out}");
}

/// More schedules than anyone waits for. The first run says that it has begun.
const ENDLESS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int count, odd;
static void *work(void *of) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        count++;
        odd ^= count;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    pthread_t others[4];
    open("begun", O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 4; i++) pthread_create(&others[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(others[i], 0);
    return 0;
}
"#;

#[test]
fn an_exploration_that_is_told_to_stop_says_what_it_has() {
    let bench = Bench::new();
    bench.write("endless.c", ENDLESS);
    bench.built("cc -g -O1 -pthread -o endless endless.c");
    for signal in ["-INT", "-TERM", "-HUP"] {
        let _ = std::fs::remove_file(bench.path("begun"));
        let mut explore = bench.foresee();
        explore.args(["explore", "--format", "json", "--", "./endless"]);
        let explore =
            explore.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let exploring = explore.spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(300);
        while !bench.path("begun").exists() {
            assert!(std::time::Instant::now() < until, "it does not begin");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let id = exploring.id().to_string();
        let told = std::process::Command::new("kill").args([signal, &id]).status();
        assert!(told.unwrap().success());
        let (status, out, err) = said(&exploring.wait_with_output().unwrap());
        // Nothing was found, and not everything was looked at.
        assert_eq!(status, 3, "{signal}: {out}{err}");
        let told: serde_json::Value =
            serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        assert_eq!(told["findings"].as_array().map(Vec::len), Some(0), "{signal}: {out}");
    }
}
