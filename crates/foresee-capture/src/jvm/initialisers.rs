//! Whether static initialisers could wait for each other.
//!
//! The thread that uses a class first runs its initialiser, and others wait. If the initialisers of two classes need each
//! other, a thread that begins with the one and a thread that begins with the other wait for ever. In a run that passes, one
//! thread has initialised both. So it is looked for classes that need each other in a circle, and for a thread that used one of
//! them first that is not the one with which they were initialised, and could have done so earlier.

use foresee_support::components::{components_of_pairs, members};

use super::HashMap;

/// When a thread had initialised a class: a context of [`super::certain`], and its time.
type Moment = (usize, u32);

#[derive(Debug, Default)]
struct Class {
    /// Who initialised it, which class that thread was about to use then, and when it was over.
    by: Option<(usize, u32)>,
    end: Option<Moment>,
    /// The threads that used it, in the order of their first uses, and whether they could have done so earlier.
    uses: Vec<(usize, bool)>,
}

/// The initialisers of a program.
#[derive(Debug, Default)]
pub(super) struct Initialisers {
    classes: Vec<Class>,
    numbers: HashMap<u64, u32>,
    objects: Vec<u64>,
    /// The classes that each thread is initialising, the latest last.
    open: HashMap<usize, Vec<u32>>,
    needs: Vec<(u32, u32)>,
    /// The classes that each thread has used, in the order of their first uses.
    used: HashMap<usize, Vec<u32>>,
}

impl Initialisers {
    fn number(&mut self, class: u64) -> u32 {
        let next = self.classes.len() as u32;
        let number = *self.numbers.entry(class).or_insert(next);
        if number == next {
            self.classes.push(Class::default());
            self.objects.push(class);
        }
        number
    }

    fn need(&mut self, thread: usize, number: u32) {
        if let Some(&outer) = self.open.get(&thread).and_then(|open| open.last())
            && outer != number
            && !self.needs.contains(&(outer, number))
        {
            self.needs.push((outer, number));
        }
    }

    /// A class needs another one, which it extends.
    pub(super) fn extends(&mut self, class: u64, above: u64) {
        let (class, above) = (self.number(class), self.number(above));
        self.needs.push((class, above));
    }

    pub(super) fn begin(&mut self, thread: usize, class: u64) {
        let number = self.number(class);
        self.need(thread, number);
        let open = self.open.entry(thread).or_default();
        let first = open.first().copied().unwrap_or(number);
        open.push(number);
        self.classes[number as usize].by = Some((thread, first));
        self.used.entry(thread).or_default().push(number);
    }

    pub(super) fn end(&mut self, thread: usize, class: u64, now: Moment) {
        let number = self.number(class);
        let open = self.open.entry(thread).or_default();
        if let Some(place) = open.iter().rposition(|&one| one == number) {
            open.remove(place);
        }
        self.classes[number as usize].end = Some(now);
    }

    /// A thread uses a class for the first time. `knows` tells whether it comes after a moment in any case.
    pub(super) fn seen(
        &mut self,
        thread: usize,
        class: u64,
        mut knows: impl FnMut(Moment) -> bool,
    ) {
        let number = self.number(class);
        self.need(thread, number);
        let known = &mut self.classes[number as usize];
        let is_free =
            known.by.is_none_or(|(by, _)| by != thread) && known.end.is_none_or(|end| !knows(end));
        known.uses.push((thread, is_free));
        self.used.entry(thread).or_default().push(number);
    }

    /// Classes that need each other and that two threads could begin to initialise.
    pub(super) fn doubtful(&self) -> Vec<Vec<u64>> {
        let mut doubtful = Vec::new();
        for component in members(&components_of_pairs(self.classes.len(), &self.needs)) {
            if component.len() < 2 {
                continue;
            }
            let is_one = |number: &u32| component.contains(number);
            // With which class each thread would begin, if it came first.
            let mut firsts = Vec::new();
            for (&thread, used) in &self.used {
                let Some(&first) = used.iter().find(|number| is_one(number)) else { continue };
                let class = &self.classes[first as usize];
                let is_free = class.by.is_some_and(|(by, _)| by == thread)
                    || class.uses.iter().any(|&(by, is_free)| by == thread && is_free);
                if is_free {
                    firsts.push(first);
                }
            }
            firsts.sort_unstable();
            firsts.dedup();
            if firsts.len() > 1 {
                doubtful.push(firsts.iter().map(|&one| self.objects[one as usize]).collect());
            }
        }
        doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thread 0 initialises class 1, which needs 2, which needs 1; thread 1 uses another class first, or not.
    fn doubts(first: u64, is_later: bool) -> usize {
        let mut all = Initialisers::default();
        all.begin(0, 1);
        all.begin(0, 2);
        all.seen(0, 1, |_| false);
        all.end(0, 2, (0, 1));
        all.end(0, 1, (0, 2));
        all.seen(1, first, |_| is_later);
        all.seen(1, 3 - first, |_| is_later);
        all.doubtful().len()
    }

    #[test]
    fn two_threads_must_begin_with_different_classes() {
        assert_eq!(doubts(2, false), 1);
        assert_eq!(doubts(1, false), 0);
        assert_eq!(doubts(2, true), 0);
    }

    #[test]
    fn a_superclass_is_needed() {
        let mut all = Initialisers::default();
        all.extends(2, 1);
        all.begin(0, 1);
        all.seen(0, 2, |_| false);
        all.end(0, 1, (0, 1));
        all.seen(1, 2, |_| false);
        assert_eq!(all.doubtful().len(), 1);
    }
}
