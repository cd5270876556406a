//! Which objects several threads use. What one thread has for itself is settled by its own order.

/// No thread.
const NONE: u32 = u32::MAX;

/// The users of objects, by the objects' numbers.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// For each object a thread that used it, and whether another one did.
    all: Vec<(u32, bool)>,
}

impl Users {
    /// A thread uses an object.
    #[inline]
    pub(crate) fn add(&mut self, object: usize, thread: u32) {
        if self.all.len() <= object {
            self.all.resize(object + 1, (NONE, false));
        }
        let (first, several) = &mut self.all[object];
        *several |= *first != NONE && *first != thread;
        *first = thread;
    }

    /// Whether several threads use an object.
    #[inline]
    pub(crate) fn is_shared(&self, object: usize) -> bool {
        self.all.get(object).is_some_and(|(_, several)| *several)
    }

    /// One more than the greatest number of an object that several threads use.
    pub(crate) fn shared_end(&self) -> usize {
        self.all.iter().rposition(|(_, several)| *several).map_or(0, |last| last + 1)
    }
}
