//! What foresee is measured against: the straightforward ways of doing the same.

pub(crate) mod ideals;
pub(crate) mod lattice;
pub(crate) mod lines;
pub(crate) mod permutations;
pub(crate) mod shb;
pub(crate) mod tree_clocks;
pub(crate) mod vector_clocks;

#[cfg(test)]
mod tests {
    use foresee_causality::{Clocks, Order};
    use foresee_trace::generate::{Config, Generator};
    use foresee_trace::{Id, ThreadId, Trace};

    use super::tree_clocks::TreeClocks;
    use super::vector_clocks::VectorClocks;

    /// Three ways to the same clocks, on traces long enough that old vectors are collected.
    #[test]
    fn all_clocks_agree() {
        for (threads, variables) in [(3, 50), (40, 500), (300, 2000)] {
            let config = Config { variables, ..Config::bench(threads, 60_000, 7) };
            let trace = Trace::load(&mut Generator::new(config).unwrap()).unwrap();
            let mut ours: Clocks = Clocks::new(Order::Mazurkiewicz);
            let (mut vectors, mut trees) = (VectorClocks::default(), TreeClocks::default());
            for (i, event) in trace.events.iter().enumerate() {
                let stamp = ours.event(event).unwrap();
                vectors.event(event);
                trees.event(event);
                ours.forget_old(&[stamp]);
                if i % 97 == 0 {
                    let t = event.thread().index();
                    for u in 0..threads as usize {
                        let expected = vectors.thread(t).get(u).copied().unwrap_or(0);
                        assert_eq!(ours.count(&stamp, ThreadId::new(u)), [expected], "event {i}");
                        assert_eq!(trees.known(t, u), expected, "event {i}");
                    }
                }
            }
        }
    }
}
