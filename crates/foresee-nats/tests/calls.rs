//! Requests are answered, whoever dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foresee_nats::{Caller, Group};

use crate::harness::{ECHO, Nats, WorkerProcess};

fn caller(nats: &Nats, group: &str) -> Caller {
    let group: Group = group.parse().unwrap();
    Caller::open(&nats.server(), &group, Arc::new(|| false), Arc::new(|_| ())).unwrap()
}

#[test]
fn requests_and_answers_of_every_size_arrive_although_workers_die() {
    let nats = Nats::start(&[]);
    let caller = caller(&nats, ECHO);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut workers =
                [WorkerProcess::start(&nats.url()), WorkerProcess::start(&nats.url())];
            // A request that three workers die of is given up, so only two do.
            for worker in &mut workers {
                std::thread::sleep(Duration::from_millis(700));
                *worker = WorkerProcess::start(&nats.url());
            }
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let asking: Vec<_> = (0..4_u8)
            .map(|number| {
                let caller = &caller;
                scope.spawn(move || {
                    for size in [0, 1, 1000, 300_000, 1_100_000] {
                        let request: Vec<u8> = (0..size).map(|i| i as u8 ^ number).collect();
                        let answer = caller.call(&request).unwrap();
                        assert!(answer.iter().eq(request.iter().rev()), "{size} bytes");
                    }
                })
            })
            .collect();
        let answered: Vec<_> = asking.into_iter().map(|one| one.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        answered.into_iter().for_each(|one| one.unwrap());
    });
}

#[test]
fn a_request_that_fails_or_kills_its_workers_gets_an_error() {
    let nats = Nats::start(&[]);
    let caller = caller(&nats, ECHO);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut worker = WorkerProcess::start(&nats.url());
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                worker.restart_if_dead(&nats.url());
            }
        });
        let (odd, deadly) = (caller.call(b"odd"), caller.call(b"deadly"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(odd.unwrap_err().to_string(), "this one is odd");
        let deadly = deadly.unwrap_err().to_string();
        assert!(deadly.contains("given up after 3 tries"), "{deadly}");
    });
}

#[test]
fn who_serves_another_group_is_not_asked_and_who_stops_waiting_is_told() {
    let nats = Nats::start(&[]);
    let _worker = WorkerProcess::start(&nats.url());
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&is_stopped);
    let group: Group = "another".parse().unwrap();
    let caller = Caller::open(
        &nats.server(),
        &group,
        Arc::new(move || stopped.load(Ordering::Relaxed)),
        Arc::new(|_| ()),
    );
    let caller = caller.unwrap();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| caller.call(b"anyone?"));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!asking.is_finished());
        is_stopped.store(true, Ordering::Relaxed);
        assert!(asking.join().unwrap().unwrap_err().to_string().contains("stopped"));
    });
}
