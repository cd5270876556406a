//! The call stacks of threads.

use foresee_trace::StackId;

use super::super::record::{Kind, Record};
use super::{JvmSource, Result};

/// The most calls of a stack; the agent records fewer.
const DEEPEST: usize = 1 << 16;

/// The stack of a thread.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The stacks that it consists of, each with one more call.
    open: Vec<StackId>,
    /// How many calls are on top that are not among them.
    deeper: u64,
    is_unknown: bool,
}

impl Calls {
    /// Its name in the trace.
    pub(super) fn stack(&self) -> StackId {
        match self.open.last() {
            _ if self.is_unknown || self.deeper > 0 => StackId::NONE,
            None => StackId::EMPTY,
            Some(&stack) => stack,
        }
    }

    fn leave(&mut self, returned: u64) {
        self.is_unknown = false;
        let shallow = returned.min(self.deeper);
        self.deeper -= shallow;
        let left = (self.open.len() as u64).saturating_sub(returned - shallow);
        self.open.truncate(left as usize);
    }
}

impl JvmSource {
    /// A change of a thread's stack.
    pub(super) fn calls(&mut self, i: usize, record: &Record) -> Result<()> {
        if record.kind == Kind::StackUnknown {
            self.threads[i].calls.is_unknown = true;
            return Ok(());
        }
        let at = self.place(record.site)?;
        let calls = &mut self.threads[i].calls;
        calls.leave(record.value);
        if record.kind == Kind::StackCall {
            if calls.deeper > 0 || calls.open.len() >= DEEPEST {
                calls.deeper += 1;
            } else {
                let outer = calls.stack();
                calls.open.push(self.names.stacks.call(outer, at));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_return_to_where_they_came_from() {
        let mut calls = Calls::default();
        assert_eq!(calls.stack(), StackId::EMPTY);
        calls.open = vec![StackId(5), StackId(6), StackId(7)];
        calls.deeper = 2;
        assert_eq!(calls.stack(), StackId::NONE);
        calls.leave(3);
        assert_eq!(calls.stack(), StackId(6));
        calls.is_unknown = true;
        assert_eq!(calls.stack(), StackId::NONE);
        calls.leave(0);
        assert_eq!(calls.stack(), StackId(6));
        // A damaged log may return from more than was called.
        calls.leave(u64::MAX);
        assert_eq!(calls.stack(), StackId::EMPTY);
    }
}
