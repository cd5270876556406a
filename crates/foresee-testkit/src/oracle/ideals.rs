//! All consistent cuts: questions about exponentially many runs in one pass over the lattice.

use std::collections::{BTreeMap, BTreeSet};

use foresee_trace::Trace;

use super::Order;

/// The lattice of consistent cuts (ideals) of chosen events under an order.
#[derive(Clone, Debug)]
pub struct Ideals {
    events: Vec<usize>,
    /// For each chosen event, the set of chosen events before it.
    below: Vec<u128>,
}

impl Ideals {
    /// The cuts of `events`.
    ///
    /// # Panics
    /// With more than 127 events: a cut is a bit set in an integer, and there would be far too many
    /// of them anyway.
    pub fn new(order: &Order, events: &[usize]) -> Ideals {
        assert!(events.len() < 128, "this oracle is for fewer than 128 events");
        let set_below = |&b: &usize| {
            let bit = |(i, &a): (usize, &usize)| u128::from(order.before(a, b)) << i;
            events.iter().enumerate().map(bit).fold(0, |set, bit| set | bit)
        };
        Ideals { events: events.to_vec(), below: events.iter().map(set_below).collect() }
    }

    /// Propagates something from the empty cut to the full one: `extend` carries it over an event,
    /// `merge` combines what reaches one cut by different events, and `visit` sees the result for
    /// each cut.
    pub fn fold<T>(
        &self,
        start: T,
        mut extend: impl FnMut(&T, usize) -> T,
        mut merge: impl FnMut(&mut T, T),
        mut visit: impl FnMut(&T),
    ) -> T {
        let mut level = BTreeMap::from([(0u128, start)]);
        for _ in 0..self.events.len() {
            let mut next = BTreeMap::new();
            for (&cut, it) in &level {
                visit(it);
                for (i, &event) in self.events.iter().enumerate() {
                    if cut >> i & 1 == 1 || self.below[i] & !cut != 0 {
                        continue;
                    }
                    let extended = extend(it, event);
                    match next.entry(cut | 1 << i) {
                        std::collections::btree_map::Entry::Vacant(free) => {
                            free.insert(extended);
                        }
                        std::collections::btree_map::Entry::Occupied(mut there) => {
                            merge(there.get_mut(), extended);
                        }
                    }
                }
            }
            level = next;
        }
        let (_, full) = level.pop_first().expect("an order is acyclic, so the full cut is reached");
        visit(&full);
        full
    }

    /// The number of cuts, including the empty and the full one.
    pub fn count(&self) -> u64 {
        let mut cuts = 0;
        self.fold((), |(), _| (), |(), ()| (), |()| cuts += 1);
        cuts
    }

    /// The number of runs, or `None` if it does not fit.
    pub fn runs(&self) -> Option<u128> {
        self.fold(
            Some(1u128),
            |&runs, _| runs,
            |sum, runs| *sum = sum.zip(runs).and_then(|(a, b)| a.checked_add(b)),
            |_| (),
        )
    }

    /// The states in which an automaton can be after some run. To find out whether it can be in a
    /// state on the way, let it stay there.
    pub fn states<S: Ord + Clone>(
        &self,
        start: impl IntoIterator<Item = S>,
        step: impl Fn(&S, usize) -> Vec<S>,
    ) -> BTreeSet<S> {
        self.fold(
            start.into_iter().collect::<BTreeSet<S>>(),
            |states, event| states.iter().flat_map(|state| step(state, event)).collect(),
            |all, more| all.extend(more),
            |_| (),
        )
    }
}

/// The events that a text such as `T1 w(count)` or `T2 enter(add,list)` describes: thread and
/// operation as in the std format, with all values or without any. `_` means any thread.
pub fn matching_events(trace: &Trace, text: &str) -> Vec<usize> {
    let (thread, operation) = text.split_once(' ').unwrap_or(("", text));
    let matches = |&i: &usize| {
        let event = &trace.events[i];
        let bare = event.with_values(&[], &mut Default::default());
        (thread == "_" || trace.names.threads.get(event.thread()) == thread)
            && [*event, bare]
                .iter()
                .any(|e| e.describe(&trace.names, &trace.pool).to_string() == operation.trim())
    };
    (0..trace.events.len()).filter(matches).collect()
}

/// Whether some run has events as described by `labels` (see [`matching_events`]) in this order,
/// with anything in between.
pub fn pattern_predictable(trace: &Trace, order: &Order, labels: &[&str]) -> bool {
    let positions: Vec<Vec<usize>> =
        labels.iter().map(|label| matching_events(trace, label)).collect();
    let all: Vec<usize> = (0..order.len()).collect();
    let matched = Ideals::new(order, &all).states([0], |&matched: &usize, event| {
        let hit = positions.get(matched).is_some_and(|events| events.contains(&event));
        vec![matched + usize::from(hit)]
    });
    matched.contains(&labels.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Relation;
    use crate::trace;

    #[test]
    fn a_grid_has_the_cuts_and_runs_of_a_grid() {
        let trace = trace! { T1: w(a), w(b), w(c); T2: w(d), w(e) };
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let ideals = Ideals::new(&order, &[0, 1, 2, 3, 4]);
        assert_eq!((ideals.count(), ideals.runs()), (4 * 3, Some(10)));
        assert_eq!(Ideals::new(&order, &[]).count(), 1);
    }

    #[test]
    fn states_are_those_of_all_runs() {
        let trace = trace! { T1: w(a); T2: w(b); T1: w(a) };
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let orders = Ideals::new(&order, &[0, 1, 2])
            .states([vec![]], |run: &Vec<usize>, event| vec![[run.as_slice(), &[event]].concat()]);
        assert_eq!(orders, BTreeSet::from([vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2]]));
    }

    #[test]
    fn patterns_need_as_many_events_as_labels() {
        let trace = trace! { T2: event(b); T1: event(a); T1: w(x)=1 };
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        assert!(pattern_predictable(&trace, &order, &["T1 event(a)", "T2 event(b)"]));
        assert!(!pattern_predictable(&trace, &order, &["T1 event(a)", "T1 event(a)"]));
        assert!(pattern_predictable(&trace, &order, &["_ w(x)", "_ event(b)"]));
        assert!(!pattern_predictable(&trace, &order, &["T1 w(x)=2"]));
    }
}
