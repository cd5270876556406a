//! What a queue costs, and how far it scales: `field/fleet` runs this and docs/operations.md has the tables.
//!
//! `scaling NATS-SERVER-URL` measures; `scaling NATS-SERVER-URL worker MILLISECONDS` is one of its workers, which takes
//! that much longer for each job.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // A measurement that fails is to be seen.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use foresee_batch::{Cache, InProcess, Plan, Questions, Queue, Shard, perform};
use foresee_nats::{NatsQueue, Server, Worker, work};
use foresee_predict::session::Settings;

/// Long enough that the queue is not what is waited for, short enough to be measured here.
const SLOW: u64 = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.as_slice() {
        [_, url] => measure(url),
        [_, url, _, slow] => be_worker(url, slow.parse().unwrap()),
        _ => println!("usage: scaling URL [worker MILLISECONDS]"),
    }
}

fn be_worker(url: &str, slow: u64) {
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker {
        server: Server::new(url),
        jobs: 1,
        folder: folder.path().to_owned(),
        most_bytes: 1 << 30,
        idle: None,
        perform: Arc::new(move |job, blobs| {
            std::thread::sleep(Duration::from_millis(slow));
            perform(job, blobs, 1)
        }),
        served: Vec::new(),
    };
    work(&worker, &AtomicBool::new(false), &|text| println!("{text}")).unwrap();
}

struct Fleet(Vec<Child>);

impl Fleet {
    fn start(url: &str, workers: usize, slow: u64) -> Fleet {
        let one = |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([url, "worker", &slow.to_string()]).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        let fleet = Fleet((0..workers).map(one).collect());
        // All of them should wait for work before it is measured.
        std::thread::sleep(Duration::from_millis(1500 + 30 * workers as u64));
        fleet
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Traces that no round before had.
fn plan(folder: &Path, jobs: usize, round: usize) -> Plan {
    let traces = (0..jobs).map(|i| {
        let path = folder.join(format!("{round}-{i}.std"));
        let text = format!("T1|w(x{i})|a.c:{round}(f)\nT2|w(x{i})|a.c:2(g)\n");
        std::fs::write(&path, text).unwrap();
        path
    });
    let (traces, checks) = (traces.collect(), vec!["race".to_owned()]);
    let group = Questions { traces, checks, ..Questions::default() };
    Plan::new(&[group], &Settings::default(), 1).unwrap()
}

fn time(plan: &Plan, queue: &dyn Queue) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let began = Instant::now();
    let done = foresee_batch::run(plan, Shard::ALL, &cache, queue, &mut |_| ()).unwrap();
    assert_eq!(done.progress.failed, 0);
    began.elapsed()
}

fn measure(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut round = 0;
    let mut next = |jobs| {
        round += 1;
        plan(folder.path(), jobs, round)
    };
    let queue = NatsQueue { server: Server::new(url), tell: &|text| println!("{text}") };
    let jobs = 1000;
    println!("| {jobs} tiny jobs | seconds | milliseconds per job |\n|---|--:|--:|");
    let tell = |what: &str, took: Duration| {
        let seconds = took.as_secs_f64();
        println!("| {what} | {seconds:.2} | {:.2} |", seconds * 1000.0 / jobs as f64);
    };
    for cores in [1, 2] {
        tell(&format!("in process, {cores} cores"), time(&next(jobs), &InProcess { cores }));
    }
    for workers in [1, 2, 4] {
        let fleet = Fleet::start(url, workers, 0);
        tell(&format!("queue, {workers} workers"), time(&next(jobs), &queue));
        drop(fleet);
    }
    println!("\n| workers | jobs | seconds | jobs per second | speed-up |\n|--:|--:|--:|--:|--:|");
    let mut alone = None;
    for workers in [1, 2, 4, 8, 16, 32, 64] {
        let jobs = 20 * workers;
        let fleet = Fleet::start(url, workers, SLOW);
        let seconds = time(&next(jobs), &queue).as_secs_f64();
        drop(fleet);
        let rate = jobs as f64 / seconds;
        let alone = *alone.get_or_insert(rate);
        println!("| {workers} | {jobs} | {seconds:.2} | {rate:.1} | {:.1} |", rate / alone);
    }
}
