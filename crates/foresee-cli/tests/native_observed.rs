//! Programs in C that are observed while they run: what is found comes before they end, and the verdict is that of the whole
//! trace, however they end.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foresee_capture::launch::{Recording, Timeouts, launch};
use foresee_capture::log::{self, Log, snapshot};
use serde_json::Value as Json;

use crate::harness::{Bench, said};
use crate::observe::Observer;

const PATIENCE: Duration = Duration::from_secs(300);

/// Two threads race for `x` at once, and for `y` when there is a file.
pub(crate) const SLOW: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int x, y;
struct both { char first[8]; long second; } *shared;
static void *add(void *to) { (*(int *)to)++; return 0; }
static void *fill(void *to) { memset(shared, 1, sizeof *shared); return 0; }
int main(int count, char **words) {
    pthread_t other;
    shared = calloc(1, sizeof *shared);
    pthread_create(&other, 0, add, &x);
    x++;
    pthread_join(other, 0);
    while (access(words[1], F_OK)) usleep(10000);
    pthread_create(&other, 0, add, &y);
    y++;
    pthread_join(other, 0);
    /* Until now these bytes were one variable at most. */
    pthread_create(&other, 0, fill, 0);
    shared->first[3]++;
    pthread_join(other, 0);
    return 0;
}
"#;

/// What `foresee check` says of a kept trace, with what an observer assumes.
fn offline(bench: &Bench, trace: &str) -> (i32, Json) {
    let mut check = bench.foresee();
    check.args(["check", trace, "--check", "race", "--window", "256", "--reorder", "maz"]);
    let (status, out, err) = said(&check.args(["--format", "json"]).output().unwrap());
    (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}")))
}

/// What a report says, without callers of places, which only a check looks up.
pub(crate) fn claims(report: &Json) -> Json {
    fn stripped(value: &Json) -> Json {
        match value {
            Json::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| *name != "frames");
                kept.map(|(name, value)| (name.clone(), stripped(value))).collect()
            }
            Json::Array(all) => all.iter().map(stripped).collect(),
            value => value.clone(),
        }
    }
    assert!(report["analyses"].is_array() && report["summary"].is_object(), "{report}");
    stripped(&serde_json::json!([report["analyses"], report["summary"]]))
}

/// The findings of a report.
pub(crate) fn findings(report: &Json) -> Vec<Json> {
    let all = report["analyses"].as_array().unwrap().iter();
    all.flat_map(|one| one["findings"].as_array().unwrap().clone()).collect()
}

/// Whether a verdict is that of a check.
fn assert_equal(verdict: &Json, (status, offline): &(i32, Json)) {
    assert_eq!(verdict["status"], *status, "{verdict}");
    assert_eq!(claims(&verdict["report"]), claims(offline));
}

fn start(bench: &Bench, words: &[&str]) -> Child {
    let mut run = bench.foresee();
    run.arg("run").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    run.spawn().unwrap()
}

#[test]
fn what_is_found_comes_while_the_program_runs_and_the_verdict_is_that_of_the_whole_trace() {
    let bench = Bench::new();
    bench.write("slow.c", SLOW);
    bench.built("cc -g -O1 -pthread -o slow slow.c");
    let mut observer = Observer::listen(&["--check", "race", "--programs", "1"]);
    let address = observer.address.clone();
    let running = start(&bench, &["--to", &address, "--keep", "slow.fse", "--", "./slow", "go"]);
    let finding = observer.next("finding");
    assert!(finding["finding"]["message"].as_str().unwrap().contains('x'), "{finding}");
    assert_eq!(finding["program"]["name"], "slow");
    // Only now it may end.
    bench.write("go", "");
    let (status, out, err) = said(&running.wait_with_output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains(&format!("sent to {address}")), "{out}{err}");
    let (lines, status) = observer.finish();
    assert_eq!(status, Some(1));
    // The next edition has the same finding, which is not told again.
    let told = |line: &&Json| line["finding"]["fingerprint"] == finding["finding"]["fingerprint"];
    let again = lines.iter().filter(|line| line["what"] == "finding").filter(told).count();
    assert_eq!(again, 0, "{lines:?}");
    assert!(lines.iter().all(|line| line["what"] != "withdrawn"), "{lines:?}");
    let verdict = lines.iter().find(|line| line["what"] == "verdict").unwrap();
    let offline = offline(&bench, "slow.fse");
    assert!(findings(&offline.1).len() >= 3, "{offline:?}");
    assert_equal(verdict, &offline);
}

#[test]
fn a_sender_that_is_killed_leaves_the_verdict_on_what_it_sent() {
    let bench = Bench::new();
    bench.write("slow.c", SLOW);
    bench.built("cc -g -O1 -pthread -o slow slow.c");
    let flags = ["--check", "race", "--programs", "1", "--linger", "1"];
    let mut observer = Observer::listen(&flags);
    let address = observer.address.clone();
    let mut running = start(&bench, &["--to", &address, "--", "./slow", "go"]);
    let finding = observer.next("finding");
    running.kill().unwrap();
    running.wait().unwrap();
    // The program itself must not stay behind.
    bench.write("go", "");
    let (lines, status) = observer.finish();
    let verdict = lines.iter().find(|line| line["what"] == "verdict").unwrap();
    let report = &verdict["report"];
    assert_eq!((status, &verdict["status"]), (Some(1), &1.into()), "{verdict}");
    assert_eq!(findings(report)[0]["fingerprint"], finding["finding"]["fingerprint"]);
    assert!(verdict.to_string().contains("ended without a goodbye"), "{verdict}");
    // And one that is told to keep the trace has all of it.
    let flags =
        ["--check", "race", "--programs", "1", "--keep", bench.path("kept").to_str().unwrap()]
            .map(str::to_owned);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let observer = Observer::listen(&flags);
    let (status, out, err) = bench.run(&format!("--to {} -- ./slow go", observer.address));
    assert_eq!(status, 0, "{out}{err}");
    let (lines, _) = observer.finish();
    let kept: Vec<_> = std::fs::read_dir(bench.path("kept")).unwrap().flatten().collect();
    let kept: Vec<String> = kept.iter().map(|f| f.file_name().into_string().unwrap()).collect();
    assert!(kept.len() == 1 && kept[0].ends_with(".fse"), "{kept:?}");
    let verdict = lines.iter().find(|line| line["what"] == "verdict").unwrap();
    assert_equal(verdict, &offline(&bench, &format!("kept/{}", kept[0])));
}

/// Two processes, of which one waits; the other forks, loads a library, becomes another program, or dies.
const ENDINGS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int x;
static void *add(void *to) { (*(int *)to)++; return 0; }
static void race(int *on) {
    pthread_t other;
    pthread_create(&other, 0, add, on);
    (*on)++;
    pthread_join(other, 0);
}
int main(int count, char **words) {
    race(&x);
    if (count < 2) return 0;
    usleep(1500000);
    if (!strcmp(words[1], "fork")) {
        int child = fork();
        race(&x);
        if (child == 0) { usleep(1500000); _exit(0); }
        waitpid(child, 0, 0);
    } else if (!strcmp(words[1], "exec")) {
        execl(words[0], words[0], (char *)0);
    } else if (!strcmp(words[1], "crash")) {
        *(volatile int *)0 = 1;
    } else if (!strcmp(words[1], "kill")) {
        kill(getpid(), SIGKILL);
    } else {
        void *library = dlopen("./more.so", RTLD_NOW);
        if (!library) return 9;
        race(dlsym(library, "more"));
    }
    return 0;
}
"#;

#[test]
fn however_a_program_ends_each_process_has_the_verdict_of_its_trace() {
    let bench = Bench::new();
    bench.write("endings.c", ENDINGS);
    bench.write("more.c", "int more;\nint *where(void) { more = 1; return &more; }\n");
    bench.built("cc -g -O1 -pthread -o endings endings.c");
    bench.built("cc -g -O1 -fPIC -shared -o more.so more.c");
    for (how, processes, expected) in
        [("fork", 2, 0), ("exec", 2, 0), ("crash", 1, 1), ("kill", 1, 1), ("load", 1, 0)]
    {
        let observer = Observer::listen(&["--check", "race", "--programs", &processes.to_string()]);
        let words = format!("--to {} --keep {how}.fse -- ./endings {how}", observer.address);
        let (status, out, err) = bench.run(&words);
        assert_eq!(status, expected, "{how}: {out}{err}");
        let (lines, _) = observer.finish();
        let told = |what: &str| lines.iter().filter(|line| line["what"] == what).count();
        // Its first second was worth an edition.
        assert!(told("finding") >= 1, "{how}: {lines:?}");
        assert_eq!(told("verdict"), processes, "{how}: {lines:?}");
        let mut offline: Vec<_> = (1..=processes)
            .map(|i| if i == 1 { format!("{how}.fse") } else { format!("{how}.{i}.fse") })
            .map(|trace| offline(&bench, &trace))
            .collect();
        for verdict in lines.iter().filter(|line| line["what"] == "verdict") {
            let fits = |one: &(i32, Json)| claims(&verdict["report"]) == claims(&one.1);
            let place = offline.iter().position(fits);
            let place = place.unwrap_or_else(|| panic!("{how}: {verdict}\n{offline:?}"));
            assert_equal(verdict, &offline.remove(place));
        }
    }
}

/// Many records of several threads, so that the buffer is written and used again all the time.
const BUSY: &str = r#"
#include <pthread.h>
#include <unistd.h>
int data[64];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *of) {
    for (int i = 0; i < 60000; i++) {
        // However fast the machine is, there is time for copies.
        if (i % 6000 == 0) usleep(20000);
        pthread_mutex_lock(&lock);
        data[i % 64] += i * 7919;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    pthread_t others[3];
    for (int i = 0; i < 3; i++) pthread_create(&others[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(others[i], 0);
    return 0;
}
"#;

/// The records of a log, by what they say.
fn records(log: &Log) -> Vec<(u32, u64, u64, u64)> {
    let mut raw = log.raw().unwrap();
    let mut all = Vec::new();
    while let Some(record) = raw.next_record().unwrap() {
        all.push((record.thread, record.pc, record.address, record.value));
    }
    all
}

#[test]
fn a_copy_of_a_log_that_is_being_written_is_a_beginning_of_it() {
    let bench = Bench::new();
    bench.write("busy.c", BUSY);
    bench.built("cc -g -O1 -pthread -o busy busy.c");
    for is_free_running in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        let mut copies = Vec::new();
        std::thread::scope(|scope| {
            let launched = scope.spawn(|| {
                let (is_interrupted, stop) = (AtomicBool::new(false), AtomicUsize::new(0));
                let recording = Recording {
                    is_free_running,
                    is_unfiltered: true,
                    seed: 1,
                    ..Recording::default()
                };
                let timeouts = Timeouts {
                    timeout: None,
                    is_interrupted: &is_interrupted,
                    stop: &stop,
                    on_orphans: &mut |_| {},
                };
                let command = [bench.path("busy").into_os_string()];
                let ended = launch(&command, folder.path(), &recording, timeouts);
                is_over.store(true, Ordering::SeqCst);
                ended.unwrap()
            });
            let until = Instant::now() + PATIENCE;
            while !is_over.load(Ordering::SeqCst) && Instant::now() < until {
                for tail in log::find(folder.path()).unwrap() {
                    let copy = tempfile::tempdir().unwrap();
                    if let Some(tail) = snapshot::copy(&tail, copy.path()).unwrap() {
                        copies.push((copy, tail));
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(launched.join().unwrap().status.success());
        });
        let tails = log::find(folder.path()).unwrap();
        let whole = records(&Log::open(&tails[0]).unwrap());
        assert!(copies.len() > 3 && whole.len() > 300_000, "{} {}", copies.len(), whole.len());
        let mut longest = 0;
        for (_, tail) in &copies {
            let copied = records(&Log::open(tail).unwrap());
            assert!(copied.len() <= whole.len() && copied == whole[..copied.len()]);
            longest = longest.max(copied.len());
        }
        assert!(longest > 1000, "{longest} of {}", whole.len());
    }
}

#[test]
fn whoever_cannot_be_reached_is_said_before_the_program_runs() {
    let bench = Bench::new();
    bench.write("slow.c", SLOW);
    bench.built("cc -g -O1 -pthread -o slow slow.c");
    let (status, _, err) = bench.run("--to 127.0.0.1:9 -- ./slow go");
    assert!(status == 2 && err.contains("cannot reach an observer at 127.0.0.1:9"), "{err}");
    let observer = Observer::listen(&["--check", "race"]);
    let (status, _, err) = bench.run(&format!("--lossy --to {} -- ./slow go", observer.address));
    assert!(status == 2 && err.contains("--lossy is for queues"), "{err}");
}
