//! Which operations have a target and how many values: one table for all formats.
//!
//! Readers and writers reject everything else, so what one format accepts can be written in every
//! other.

use std::io;

use foresee_trace::{Batch, Op, TargetKind};

/// The maximum number of values of an event; it bounds a batch whatever a file contains.
pub const MAX_VALUES: usize = 65_535;

/// Whether an operation has a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetRule {
    Never,
    Maybe,
    Always,
}

pub(crate) fn target_rule(op: Op) -> TargetRule {
    match op {
        Op::Begin | Op::End => TargetRule::Maybe,
        _ if op.target_kind() == TargetKind::None => TargetRule::Never,
        _ => TargetRule::Always,
    }
}

/// The maximum number of values of an operation.
pub(crate) fn max_values(op: Op) -> usize {
    match op {
        Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Init => 1,
        Op::Rmw => 2,
        _ if has_arguments(op) => MAX_VALUES,
        _ => 0,
    }
}

/// Whether the values of an operation are arguments, `enter(f,1,2)`, rather than the contents of a
/// variable, `w(x)=1`.
pub(crate) fn has_arguments(op: Op) -> bool {
    matches!(op, Op::Enter | Op::Exit | Op::Event | Op::Begin | Op::End)
}

/// Whether an operation begins or ends a wait, and so may name a lock.
pub(crate) fn is_wait_half(op: Op) -> bool {
    matches!(op, Op::WaitBegin | Op::WaitEnd)
}

/// Rejects events that could not be read back.
pub(crate) fn check_batch(batch: &Batch) -> io::Result<()> {
    for event in &batch.events {
        let op = event.op();
        let target = match target_rule(op) {
            TargetRule::Never => event.target().is_none(),
            TargetRule::Maybe => true,
            TargetRule::Always => event.target().is_some(),
        };
        let values = batch.pool.values(event).len();
        if !target || values > max_values(op) {
            let what = if target { format!("{values} values") } else { "a wrong target".into() };
            let message = format!("cannot write an event \"{}\" with {what}", op.word());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use foresee_trace::{Event, ThreadId, Value};

    use super::*;

    #[test]
    fn what_could_not_be_read_is_not_written() {
        let mut batch = Batch::default();
        let t = ThreadId(0);
        let args = [Value::Bool(true), Value::Int(1)];
        let good = [
            Event::new(t, Op::Begin),
            Event::new(t, Op::ThreadEnd),
            Event::new(t, Op::Enter).with_target(0).with_values(&args, &mut batch.pool),
            Event::new(t, Op::Rmw).with_target(0).with_values(&args, &mut batch.pool),
        ];
        let bad = [
            Event::new(t, Op::Read),
            Event::new(t, Op::ThreadEnd).with_target(1),
            Event::new(t, Op::Write).with_target(0).with_values(&args, &mut batch.pool),
            Event::new(t, Op::Acquire).with_target(0).with_values(&args[1..], &mut batch.pool),
        ];
        batch.events = good.to_vec();
        assert!(check_batch(&batch).is_ok());
        for event in bad {
            batch.events = vec![event];
            assert!(check_batch(&batch).is_err(), "{event:?}");
        }
    }
}
