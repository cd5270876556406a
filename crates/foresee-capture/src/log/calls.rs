//! The call stacks of threads, from the records of their calls.
//!
//! All stacks of a log form a tree, which the first pass over the log makes. Later passes only move around in it, so a node means
//! the same in all of them, and a pass that skips records can continue at the node where they end.

use foresee_rt::format::{self, Tag};

use super::HashMap;
use super::records::Record;

/// The maximum number of stacks; a recursive function can have as many as it makes calls.
const MOST: usize = 1 << 21;

/// The stack without calls.
const ROOT: u32 = 0;

/// A call on top of another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) outer: u32,
    /// The return address.
    pub(super) at: u64,
    /// A place in the innermost function with hooks around it; zero if there is none.
    pub(super) from: u64,
}

/// All call stacks of a log.
#[derive(Debug)]
pub(super) struct CallTree {
    calls: Vec<Call>,
    numbers: HashMap<Call, u32>,
    most: usize,
}

impl Default for CallTree {
    fn default() -> CallTree {
        let root = Call { outer: ROOT, at: 0, from: 0 };
        CallTree { calls: vec![root], numbers: HashMap::default(), most: MOST }
    }
}

impl CallTree {
    /// The call on top of a stack, and the rest of it; nothing on top of none.
    pub(super) fn call(&self, node: u32) -> Option<Call> {
        if node == ROOT { None } else { self.calls.get(node as usize).copied() }
    }

    /// Whether the log has call stacks.
    pub(super) fn has_any(&self) -> bool {
        self.calls.len() > 1
    }

    fn find(&self, call: Call) -> Option<u32> {
        self.numbers.get(&call).copied()
    }

    fn add(&mut self, call: Call) -> Option<u32> {
        let known = self.find(call);
        if known.is_some() || self.calls.len() >= self.most {
            return known;
        }
        let number = self.calls.len() as u32;
        self.calls.push(call);
        self.numbers.insert(call, number);
        Some(number)
    }
}

/// The stack of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Stack {
    node: u32,
    /// How many calls there are on top that are not in the tree.
    deeper: u32,
    is_unknown: bool,
}

impl Stack {
    fn known(&self) -> Option<u32> {
        (self.deeper == 0 && !self.is_unknown).then_some(self.node)
    }
}

/// The stacks of all threads, as far as a log has been read.
#[derive(Debug, Default)]
pub(super) struct CallStacks {
    stacks: HashMap<u32, Stack>,
    /// The latest thread and its stack, which is not among the others meanwhile.
    latest: (u32, Stack),
}

impl CallStacks {
    #[inline]
    fn of(&mut self, thread: u32) -> &mut Stack {
        if self.latest.0 != thread {
            self.stacks.insert(self.latest.0, self.latest.1);
            let stack = self.stacks.get(&thread).copied().unwrap_or_default();
            self.latest = (thread, stack);
        }
        &mut self.latest.1
    }

    /// Where in the tree a thread is, if that is known.
    #[inline]
    pub(super) fn node(&mut self, thread: u32) -> Option<u32> {
        self.of(thread).known()
    }

    /// Sets where a thread is.
    pub(super) fn set(&mut self, thread: u32, node: u32) {
        *self.of(thread) = Stack { node, ..Stack::default() };
    }

    /// A call or a return, in the first pass.
    pub(super) fn learn(&mut self, record: &Record<'_>, tag: Tag, tree: &mut CallTree) {
        let stack = self.of(record.thread);
        if let Some(call) = stack.change(record, tag, tree) {
            stack.push(tree.add(call));
        }
    }

    /// The same in later passes.
    pub(super) fn follow(&mut self, record: &Record<'_>, tag: Tag, tree: &CallTree) {
        let stack = self.of(record.thread);
        if let Some(call) = stack.change(record, tag, tree) {
            stack.push(tree.find(call));
        }
    }
}

impl Stack {
    /// Returns from calls, and says which one comes then.
    fn change(&mut self, record: &Record<'_>, tag: Tag, tree: &CallTree) -> Option<Call> {
        if tag == Tag::StackUnknown {
            self.is_unknown = true;
            return None;
        }
        self.is_unknown = false;
        let mut returned = returned(record, tag).unwrap_or(0);
        let from = match tag {
            Tag::Call => format::Call::decode(record.value, record.pc).from,
            Tag::CallFrom => record.address,
            _ => 0,
        };
        let shallow = returned.min(u64::from(self.deeper));
        self.deeper -= shallow as u32;
        returned -= shallow;
        while returned > 0
            && let Some(call) = tree.call(self.node)
        {
            self.node = call.outer;
            returned -= 1;
        }
        (tag != Tag::Return).then_some(Call { outer: self.node, at: record.pc, from })
    }

    fn push(&mut self, node: Option<u32>) {
        match node {
            Some(node) if self.deeper == 0 => self.node = node,
            _ => self.deeper = self.deeper.saturating_add(1),
        }
    }
}

/// From how many functions a thread has returned, if that is known.
pub(super) fn returned(record: &Record<'_>, tag: Tag) -> Option<u64> {
    match tag {
        Tag::StackUnknown => None,
        Tag::Call => Some(format::Call::decode(record.value, record.pc).returned),
        _ => Some(record.value),
    }
}

/// Whether a record is about a thread's calls.
pub(super) fn is_about(tag: Tag) -> bool {
    matches!(tag, Tag::Call | Tag::CallFrom | Tag::Return | Tag::StackUnknown)
}

#[cfg(test)]
mod tests {
    use super::super::records::What;
    use super::*;

    fn record(thread: u32, tag: Tag, pc: u64, value: u64) -> Record<'static> {
        let what = What::Sync(tag);
        let (address, old, order, bytes, at) = (0, 0, 0, &[][..], 0);
        Record { thread, what, inexact: false, pc, address, value, old, order, bytes, at }
    }

    /// The return addresses of a stack, outermost first.
    fn path(tree: &CallTree, node: u32) -> Vec<u64> {
        let calls = std::iter::successors(tree.call(node), |call| tree.call(call.outer));
        let mut path: Vec<u64> = calls.map(|call| call.at).collect();
        path.reverse();
        path
    }

    #[test]
    fn stacks_are_those_of_the_calls_also_where_the_tree_is_full() {
        for most in [4, 20, 1 << 20] {
            let mut tree = CallTree { most, ..CallTree::default() };
            let (mut records, mut expected) = (Vec::new(), Vec::new());
            let mut seed = 7u64;
            let mut stacks = [const { Vec::<u64>::new() }; 3];
            let mut draw = |below: u64| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 33) % below
            };
            for _ in 0..3000 {
                let thread = draw(3) as usize;
                let stack = &mut stacks[thread];
                let returned = draw(3).min(stack.len() as u64);
                stack.truncate(stack.len() - returned as usize);
                let (tag, pc) =
                    if draw(5) < 3 { (Tag::Call, 10 + draw(3)) } else { (Tag::Return, 0) };
                if tag == Tag::Call {
                    stack.push(pc);
                }
                records.push(record(thread as u32 + 1, tag, pc, returned));
                expected.push(stack.clone());
            }
            let mut first = CallStacks::default();
            let mut nodes = Vec::new();
            for one in &records {
                let What::Sync(tag) = one.what else { continue };
                first.learn(one, tag, &mut tree);
                nodes.push(first.node(one.thread));
            }
            let mut again = CallStacks::default();
            for ((one, node), expected) in records.iter().zip(nodes).zip(&expected) {
                let What::Sync(tag) = one.what else { continue };
                again.follow(one, tag, &tree);
                assert_eq!(again.node(one.thread), node);
                assert!(node.is_none_or(|node| path(&tree, node) == *expected));
                assert!(node.is_some() || most < 1 << 20);
            }
        }
    }

    #[test]
    fn a_stack_that_is_not_known_may_be_known_again() {
        let (mut tree, mut stacks) = (CallTree::default(), CallStacks::default());
        for (tag, pc) in [(Tag::Call, 5), (Tag::StackUnknown, 0)] {
            stacks.learn(&record(1, tag, pc, 0), tag, &mut tree);
        }
        assert_eq!(stacks.node(1), None);
        stacks.learn(&record(1, Tag::Return, 0, 0), Tag::Return, &mut tree);
        assert_eq!(stacks.node(1).map(|node| path(&tree, node)), Some(vec![5]));
        // A damaged log may return from more than was called.
        stacks.learn(&record(1, Tag::Return, 0, u64::MAX), Tag::Return, &mut tree);
        assert_eq!(stacks.node(1), Some(ROOT));
    }
}
