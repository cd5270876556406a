//! Derives traces with weak atomics from others.

use foresee_trace::{Event, Op, Trace};

/// The same trace with some atomic variables, remarks that weaken some of the atomic accesses, and
/// some fences.
pub fn relaxed(mut trace: Trace, seed: u64) -> Trace {
    let mut rng = fastrand::Rng::with_seed(seed);
    let atomic = rng.u32(..8);
    let mut events: Vec<Event> = Vec::new();
    for event in std::mem::take(&mut trace.events) {
        if event.op() != Op::Init && rng.u8(..12) == 0 && may_come_before(event.op()) {
            let fences = [Op::FenceAcquire, Op::FenceRelease, Op::Fence];
            events.push(Event::new(event.thread(), fences[rng.usize(..3)]));
        }
        let is_atomic = |event: &Event| atomic >> (event.var().0 % 3) & 1 != 0;
        let event = match event.op() {
            Op::Read if is_atomic(&event) => event.with_op(Op::VolatileRead),
            Op::Write if is_atomic(&event) => event.with_op(Op::VolatileWrite),
            _ => event,
        };
        if event.op().is_atomic() && rng.u8(..10) < 7 {
            let remark = match event.op() {
                Op::Rmw => [Op::Relaxed, Op::AcquireOnly, Op::ReleaseOnly][rng.usize(..3)],
                _ => Op::Relaxed,
            };
            events.push(Event::new(event.thread(), remark).with_target(event.var().0));
        }
        events.push(event);
    }
    trace.events = events;
    trace
}

/// Whether a thread may do something else directly before: not before it begins, nor in a wait.
fn may_come_before(op: Op) -> bool {
    !matches!(op, Op::ThreadBegin | Op::WaitEnd)
}
