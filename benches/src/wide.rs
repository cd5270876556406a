//! Clocks of very many threads that talk in small groups, as servers' threads do: what a thread
//! knows changes in few places, whatever the number of threads.

use std::time::Instant;

use foresee_causality::{Clocks, Order};
use foresee_trace::{Event, Op, ThreadId};

use crate::baseline::vector_clocks::VectorClocks;

const EVENTS: u32 = 2_000_000;
const GROUP: u32 = 8;

pub(crate) fn run() -> anyhow::Result<()> {
    println!("\n| threads in groups of {GROUP} | ours | plain vectors | ratio |");
    println!("|--:|--:|--:|--:|");
    for threads in [64, 256, 1000] {
        let events = grouped(threads);
        let (mut ours, mut plain) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            let start = Instant::now();
            let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
            for stretch in events.chunks(8192) {
                for event in stretch {
                    std::hint::black_box(clocks.event(event)?);
                }
                clocks.forget_old(&[]);
            }
            ours = ours.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let mut clocks = VectorClocks::default();
            events.iter().for_each(|event| clocks.event(event));
            plain = plain.min(start.elapsed().as_secs_f64());
        }
        let rate = |seconds: f64| events.len() as f64 / seconds / 1e6;
        println!(
            "| {threads} | {:.1} M/s | {:.1} M/s | {:.1} |",
            rate(ours),
            rate(plain),
            plain / ours
        );
    }
    Ok(())
}

/// Threads take turns at random; each turn is a critical section of the group's lock around its
/// variable, and some writes of the thread's own.
fn grouped(threads: u32) -> Vec<Event> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut events = vec![];
    for t in 1..threads {
        events.push(Event::new(ThreadId(0), Op::Fork).with_target(t));
    }
    while events.len() < EVENTS as usize {
        let t = rng.u32(..threads);
        let group = t / GROUP;
        let event = |op, target| Event::new(ThreadId(t), op).with_target(target);
        events.push(event(Op::Acquire, group));
        events.push(event(Op::Read, group));
        events.push(event(Op::Write, group));
        events.push(event(Op::Release, group));
        for _ in 0..4 {
            events.push(event(Op::Write, threads + t * 10 + rng.u32(..10)));
        }
    }
    events
}
