//! Posts, looks and misses: a look comes after every post so far at the object, a miss before every later post.
//!
//! Each thread has a variable of its own at each object at which it posts, so posts of several threads are not ordered. Where a
//! post was missed, the threads that post later write one more variable, which the miss has read.

use foresee_trace::{Batch, Op, Value, VarId};

use super::super::HashMap;
use super::super::record::Record;
use super::{JvmSource, Result, Target};

/// What threads posted at an object.
#[derive(Debug, Default)]
pub(super) struct Board {
    posts: Vec<Posts>,
    /// How many posts each thread has seen of each of `posts`.
    seen: HashMap<(usize, usize), i64>,
    misses: i64,
    /// The thread that missed last, and how many posts there were then.
    last_miss: Option<(usize, i64)>,
    /// How many misses there were when each thread posted last.
    misses_before: HashMap<usize, i64>,
    /// How many posts came after misses.
    missed: i64,
}

/// What one thread posted.
#[derive(Clone, Copy, Debug)]
struct Posts {
    thread: usize,
    var: VarId,
    count: i64,
    /// How many events the thread had then.
    then: u64,
}

impl Board {
    fn total(&self) -> i64 {
        self.posts.iter().map(|posts| posts.count).sum()
    }
}

impl JvmSource {
    fn atomic(
        &mut self,
        (i, op): (usize, Op),
        (var, value): (VarId, i64),
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        let event = self.event(i, op, record)?.with_target(var.0);
        let event = event.with_values(&[Value::Int(value)], &mut batch.pool);
        self.push(i, event, batch);
        Ok(())
    }

    /// A step that all later looks come after.
    pub(super) fn post(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let object = record.object;
        let board = self.boards.entry(object).or_default();
        let misses = board.misses;
        if board.misses_before.insert(i, misses).unwrap_or(0) < misses {
            board.missed += 1;
            let missed = board.missed;
            let var = self.variable(Target::Missed(object))?;
            self.atomic((i, Op::VolatileWrite), (var, missed), record, batch)?;
        }
        let board = self.boards.entry(object).or_default();
        let place = board.posts.iter().position(|posts| posts.thread == i);
        let (var, count) = match place.map(|place| board.posts[place]) {
            // It has done nothing since it posted last.
            Some(posts) if posts.then == self.counts[i] => return Ok(()),
            Some(posts) => (posts.var, posts.count + 1),
            None => (self.variable(Target::Posts(object, i))?, 1),
        };
        self.atomic((i, Op::VolatileWrite), (var, count), record, batch)?;
        let posts = Posts { thread: i, var, count, then: self.counts[i] };
        let board = self.boards.entry(object).or_default();
        match place {
            Some(place) => board.posts[place] = posts,
            None => board.posts.push(posts),
        }
        Ok(())
    }

    /// A step that comes after all posts so far.
    pub(super) fn look(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let Some(board) = self.boards.get_mut(&record.object) else { return Ok(()) };
        let mut fresh = Vec::new();
        for (place, posts) in board.posts.iter().enumerate().filter(|(_, posts)| posts.thread != i)
        {
            if board.seen.insert((i, place), posts.count).unwrap_or(0) < posts.count {
                fresh.push((posts.var, posts.count));
            }
        }
        for read in fresh {
            self.atomic((i, Op::VolatileRead), read, record, batch)?;
        }
        Ok(())
    }

    /// A look that all later posts come after.
    pub(super) fn miss(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        self.look(i, record, batch)?;
        let board = self.boards.entry(record.object).or_default();
        let now = (i, board.total());
        if board.last_miss.replace(now) == Some(now) {
            return Ok(());
        }
        board.misses += 1;
        let missed = board.missed;
        let var = self.variable(Target::Missed(record.object))?;
        self.atomic((i, Op::VolatileRead), (var, missed), record, batch)
    }
}
