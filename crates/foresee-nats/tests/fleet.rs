//! Several workers, of which some die, and a server that dies, too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foresee_batch::{
    Blobs, Cache, Digest, HandOver, InProcess, Job, Plan, Questions, Queue, QueueError, Shard,
    SpecSource,
};
use foresee_nats::NatsQueue;
use foresee_report::{Report, exit_status, json};

use crate::harness::{Nats, WorkerProcess, names, plan, settings};

/// Counts how often each job is handed over, and calls `before` with how many were.
struct Counted<'q> {
    queue: &'q dyn Queue,
    times: std::cell::RefCell<HashMap<Digest, usize>>,
    before: &'q dyn Fn(usize),
}

impl Queue for Counted<'_> {
    fn perform(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError> {
        self.queue.perform(jobs, blobs, &mut |number, performed| {
            (self.before)(self.times.borrow().len());
            *self.times.borrow_mut().entry(jobs[number].key()).or_default() += 1;
            done(number, performed)
        })
    }
}

/// The report on a plan, and how many jobs were handed over; each at most once.
pub(crate) fn run(
    plan: &Plan,
    queue: &dyn Queue,
) -> Result<(usize, Report), foresee_batch::BatchError> {
    run_and(plan, queue, &|_| ())
}

pub(crate) fn run_and(
    plan: &Plan,
    queue: &dyn Queue,
    before: &dyn Fn(usize),
) -> Result<(usize, Report), foresee_batch::BatchError> {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let counted = Counted { queue, times: Default::default(), before };
    let done = foresee_batch::run(plan, Shard::ALL, &cache, &counted, &mut |_| ())?;
    let times = counted.times.into_inner();
    assert!(times.values().all(|&times| times == 1), "a job was handed over twice: {times:?}");
    Ok((times.len(), done.report))
}

fn expected(plan: &Plan) -> String {
    json::report(&run(plan, &InProcess { cores: 2 }).unwrap().1)
}

/// `FORESEE_FLEET=1000,8` makes it larger, as `field/fleet` does.
fn size() -> (usize, usize) {
    let size = std::env::var("FORESEE_FLEET").unwrap_or_else(|_| "100,4".to_owned());
    let (traces, workers) = size.split_once(',').unwrap();
    (traces.parse().unwrap(), workers.parse().unwrap())
}

#[test]
#[allow(clippy::print_stderr)] // `field/fleet` shows it.
fn nothing_is_lost_or_told_twice_whoever_dies() {
    let (traces, workers) = size();
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &names(traces));
    let expected = expected(&plan);
    let mut nats = Nats::start(&[]);
    let (url, server) = (nats.url(), nats.server());
    let (is_over, servers_killed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let began = Instant::now();
    let (told, deaths) = std::thread::scope(|scope| {
        let chaos = scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(7);
            let mut fleet: Vec<WorkerProcess> =
                (0..workers).map(|_| WorkerProcess::start(&url)).collect();
            let mut workers_killed = 0;
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(random.u64(150..500)));
                // A dead worker is replaced, as whoever runs the fleet would do.
                let unlucky = random.usize(0..workers);
                fleet[unlucky] = WorkerProcess::start(&url);
                workers_killed += 1;
                let killed = servers_killed.load(Ordering::Relaxed);
                if workers_killed % 4 == 3 && killed < traces / 50 {
                    nats.kill();
                    std::thread::sleep(Duration::from_millis(random.u64(0..400)));
                    nats.restart();
                    servers_killed.store(killed + 1, Ordering::Relaxed);
                }
            }
            workers_killed
        });
        let queue = NatsQueue { server, tell: &|_| () };
        // A fast machine would otherwise be done before a server has died.
        let wait = |handed_over: usize| {
            while handed_over >= 10 && servers_killed.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let told = run_and(&plan, &queue, &wait);
        is_over.store(true, Ordering::Relaxed);
        (told, (chaos.join().unwrap(), servers_killed.load(Ordering::Relaxed)))
    });
    let (handed_over, report) = told.unwrap();
    assert_eq!(handed_over, traces);
    assert!(json::report(&report) == expected, "the answers differ from those of one process");
    assert_eq!(exit_status(&report), 1);
    assert!(deaths.0 > 0 && deaths.1 > 0, "{deaths:?}");
    eprintln!("{traces} traces, {workers} workers, {deaths:?} killed, {:?}", began.elapsed());
}

#[test]
fn bindings_in_parts_have_the_answer_of_one_process_whoever_dies() {
    const PARTS: usize = 7;
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let traces: Vec<_> = (0..6)
        .map(|i| {
            let path = folder.path().join(format!("{i}.std"));
            let step = |at: usize| {
                let (thread, variable) = (random.usize(1..4), ["x", "y"][random.usize(..2)]);
                format!("T{thread}|w({variable})={}|a.c:{at}\n", random.usize(..12))
            };
            let text: String = (0..40).map(step).collect();
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    let text = "init x = 99\ninit y = 99\nproperty first(v): write(y, v) -> once write(x, v)\n";
    let specs = vec![SpecSource { name: "p.spec".to_owned(), text: text.to_owned() }];
    let group = Questions { traces: traces.clone(), specs, ..Questions::default() };
    let mut settings = settings();
    settings.limits.states = Some(5_000);
    let whole = Plan::new(std::slice::from_ref(&group), &settings, 1).unwrap();
    let expected = expected(&whole);
    let plan = Plan::new(&[group], &settings, PARTS).unwrap();
    let nats = Nats::start(&[]);
    let (url, server) = (nats.url(), nats.server());
    let (is_over, killed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut fleet: Vec<_> = (0..3).map(|_| WorkerProcess::start(&url)).collect();
            let mut random = fastrand::Rng::with_seed(11);
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(random.u64(150..500)));
                fleet[random.usize(0..3)] = WorkerProcess::start(&url);
                killed.fetch_add(1, Ordering::Relaxed);
            }
        });
        let queue = NatsQueue { server, tell: &|_| () };
        let wait = |handed_over: usize| {
            while handed_over >= 5 && killed.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let told = run_and(&plan, &queue, &wait);
        is_over.store(true, Ordering::Relaxed);
        told
    });
    let (handed_over, report) = told.unwrap();
    assert_eq!(handed_over, traces.len() * (PARTS + 1));
    assert!(json::report(&report) == expected, "the answers differ from those of one process");
    assert!(!report.findings.is_empty() && killed.into_inner() > 0);
}

#[test]
fn workers_of_one_machine_share_a_folder_with_room_for_few_traces() {
    const MOST: u64 = 400;
    let (traces, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(traces.path(), &names(60));
    let nats = Nats::start(&[]);
    let queue = NatsQueue { server: nats.server(), tell: &|_| () };
    // What a worker left that was killed while it fetched something.
    std::fs::write(kept.path().join(".fetching-dead"), [0; 1000]).unwrap();
    std::fs::write(kept.path().join("mine.txt"), [0; 1000]).unwrap();
    let fleet: Vec<WorkerProcess> =
        (0..4).map(|_| WorkerProcess::sharing(&nats.url(), kept.path(), MOST)).collect();
    let (handed_over, report) = run(&plan, &queue).unwrap();
    drop(fleet);
    assert_eq!(handed_over, 60);
    assert!(json::report(&report) == expected(&plan), "{}", json::report(&report));
    let mut left = 0;
    for entry in std::fs::read_dir(kept.path()).unwrap().flatten() {
        left += entry.metadata().unwrap().len();
    }
    // Each worker may have had one more in use when it looked for room.
    assert!((1000..1000 + 2 * MOST).contains(&left), "{left} bytes are left");
    assert!(!kept.path().join(".fetching-dead").exists());
}

#[test]
fn a_job_that_kills_its_workers_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    let plan = plan(folder.path(), &["deadly".to_owned(), "fine".to_owned(), "odd".to_owned()]);
    let is_over = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut worker = WorkerProcess::start(&nats.url());
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                worker.restart_if_dead(&nats.url());
            }
        });
        let queue = NatsQueue { server: nats.server(), tell: &|_| () };
        let told = run(&plan, &queue);
        is_over.store(true, Ordering::Relaxed);
        told
    });
    let (handed_over, report) = told.unwrap();
    assert_eq!((handed_over, exit_status(&report)), (3, 3));
    let told = json::report(&report);
    assert!(told.contains("given up after 3 tries: its workers died"), "{told}");
    assert!(told.contains("this one is odd"), "{told}");
    assert!(!told.contains("fine.std (race)"), "the others' answers stay: {told}");
}

#[test]
fn a_second_batch_takes_the_results_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    let plan = plan(folder.path(), &names(5));
    let queue = NatsQueue { server: nats.server(), tell: &|_| () };
    let first = {
        let _worker = WorkerProcess::start(&nats.url());
        run(&plan, &queue).unwrap().1
    };
    // There is no worker any more.
    let (handed_over, second) = run(&plan, &queue).unwrap();
    assert_eq!(handed_over, 5);
    assert_eq!(json::report(&first), json::report(&second));
    assert_eq!(json::report(&first), expected(&plan));
}
