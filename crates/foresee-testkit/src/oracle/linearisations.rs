//! All runs, one by one.

use std::ops::ControlFlow;

use super::Order;

/// Calls `visit` with every order of the chosen events that preserves `order`, until it breaks.
///
/// By the projection lemma these are also the orders in which the chosen events appear in the
/// linearisations of the whole trace.
pub fn for_each_run<B>(
    order: &Order,
    events: &[usize],
    mut visit: impl FnMut(&[usize]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut used = vec![false; events.len()];
    extend(order, events, &mut used, &mut Vec::with_capacity(events.len()), &mut visit)
}

fn extend<B>(
    order: &Order,
    events: &[usize],
    used: &mut [bool],
    run: &mut Vec<usize>,
    visit: &mut impl FnMut(&[usize]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if run.len() == events.len() {
        return visit(run);
    }
    for (i, &event) in events.iter().enumerate() {
        let blocked = |j: usize| !used[j] && order.before(events[j], event);
        if used[i] || (0..events.len()).any(blocked) {
            continue;
        }
        used[i] = true;
        run.push(event);
        extend(order, events, used, run, visit)?;
        run.pop();
        used[i] = false;
    }
    ControlFlow::Continue(())
}

/// The number of runs, counted one by one.
pub fn count_runs(order: &Order, events: &[usize]) -> u128 {
    let mut count = 0;
    let _ = for_each_run(order, events, |_| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Relation;
    use crate::trace;

    #[test]
    fn independent_threads_shuffle() {
        let trace = trace! { T1: w(a), w(b); T2: w(c), w(d); T3: w(e) };
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        // 5! / (2! 2! 1!)
        assert_eq!(count_runs(&order, &[0, 1, 2, 3, 4]), 30);
        assert_eq!(count_runs(&order, &[0, 2]), 2);
        assert_eq!(count_runs(&order, &[]), 1);
        let first = for_each_run(&order, &[0, 1, 2], |run| ControlFlow::Break(run.to_vec()));
        assert_eq!(first, ControlFlow::Break(vec![0, 1, 2]));
    }
}
