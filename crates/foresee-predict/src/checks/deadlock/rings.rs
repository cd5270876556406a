//! Rings of requests: which threads could wait for each other, by locks and joins alone.
//!
//! A request stands for all places where a thread requests one thing while it holds others. One
//! request waits for another if it requests something that the other holds. Threads count as
//! things, too: a thread holds itself, and a join requests another. Nearly all requests are ruled out
//! before, because no cycle leads through them ([`Requests`](super::requests::Requests)); the search
//! looks for rings in the rest, the short ones first.

/// A lock or a thread that is held or wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thing(u32);

impl Thing {
    pub(crate) fn lock(lock: u32) -> Thing {
        Thing(lock * 2)
    }

    pub(crate) fn thread(thread: u32) -> Thing {
        Thing(thread * 2 + 1)
    }

    /// Its number among all things.
    pub(crate) fn code(self) -> u32 {
        self.0
    }
}

/// A thing, and whether it is held or requested in shared mode.
pub(crate) type Hold = (Thing, bool);

/// What a thread holds, and what it requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) thread: u32,
    /// Without the thread itself.
    pub(crate) has: Vec<Hold>,
    /// What other threads, by number, hold as long as it runs.
    pub(crate) guards: Vec<(u32, Hold)>,
    pub(crate) wants: Hold,
}

impl Request {
    /// Whether it has to wait until the other releases something.
    fn waits_for(&self, other: &Request) -> bool {
        let (thing, shared) = self.wants;
        let is_kept = |&(had, together): &Hold| had == thing && !(shared && together);
        thing == Thing::thread(other.thread) || other.has.iter().any(is_kept)
    }

    /// Whether both can be there at once: no lock is held by both.
    fn can_be_beside(&self, other: &Request) -> bool {
        let excludes = |(owner, (a, shared)): (u32, Hold)| {
            let is_it = |(by, (b, both)): (u32, Hold)| owner != by && a == b && !(shared && both);
            other.kept().any(is_it)
        };
        !self.kept().any(excludes)
    }

    /// What is held while the thread is there, and by which thread.
    fn kept(&self) -> impl Iterator<Item = (u32, Hold)> {
        self.has.iter().map(|&hold| (self.thread, hold)).chain(self.guards.iter().copied())
    }
}

/// The maximum number of threads of a ring. The result states whether there could be longer ones.
pub(crate) const LONGEST: usize = 8;
/// Rings of up to this many threads are all collected, as far as there is room.
const SHORT: usize = 4;

/// Requests, by number, each of which waits for the next, and the last for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ring {
    requests: [u32; LONGEST],
    len: usize,
}

impl Ring {
    pub(crate) fn requests(&self) -> &[u32] {
        &self.requests[..self.len]
    }
}

/// The result of the search for rings.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    pub(crate) found: Vec<Ring>,
    /// The rings in which two threads would have to hold a lock at once.
    pub(crate) guarded: Vec<Ring>,
    /// Whether the search was ended before it had seen all.
    pub(crate) is_cut: bool,
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many short rings are collected.
    pub(crate) rings: usize,
    /// How many rings are collected in all, if there are not that many short ones.
    pub(crate) long: usize,
    /// How many steps the search for short ones may take.
    pub(crate) steps: u64,
    /// How many steps the search for the others may take.
    pub(crate) long_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { rings: 200_000, long: 2_000, steps: 20_000_000, long_steps: 2_000_000 }
    }
}

/// All rings of at most [`LONGEST`] requests of different threads, among the `entangled` ones by
/// their numbers. If there may be longer ones, or more than there is room for, the search counts as
/// cut.
pub(crate) fn rings(requests: &[Request], entangled: &[u32], limits: Limits) -> Rings {
    let mut search = Search {
        requests,
        holders: holders(requests, entangled),
        path: Vec::new(),
        steps: limits.steps,
        most: limits.rings,
        rings: Rings::default(),
    };
    // A ring that is longer still begins like one that is just too long.
    for length in 2..=LONGEST + 1 {
        if length == SHORT + 1 {
            search.most = limits.long.max(search.rings.found.len());
            search.steps = limits.long_steps;
        }
        for &first in entangled {
            search.path.push(first);
            search.extend(length);
            search.path.pop();
        }
    }
    search.rings
}

/// For each thing that is requested, the requests that hold it, sorted.
fn holders(requests: &[Request], among: &[u32]) -> Vec<(Thing, u32)> {
    let mut holders = Vec::new();
    for &i in among {
        let request = &requests[i as usize];
        holders.push((Thing::thread(request.thread), i));
        holders.extend(request.has.iter().map(|&(thing, _)| (thing, i)));
    }
    holders.sort_unstable();
    holders.dedup();
    holders
}

struct Search<'r> {
    requests: &'r [Request],
    holders: Vec<(Thing, u32)>,
    path: Vec<u32>,
    steps: u64,
    most: usize,
    rings: Rings,
}

impl Search<'_> {
    /// Extends the path to rings of this length in every way. A ring starts with its lowest
    /// request, so that each is found once.
    fn extend(&mut self, length: usize) {
        let requests = self.requests;
        let (first, last) = (self.path[0], self.path[self.path.len() - 1]);
        let (first_one, last_one) = (&requests[first as usize], &requests[last as usize]);
        if self.path.len() > LONGEST {
            self.rings.is_cut = true;
            return;
        }
        if self.path.len() == length {
            if last_one.waits_for(first_one) {
                let ring = self.ring(None);
                self.rings.is_cut |= self.rings.found.len() >= self.most;
                if !self.rings.is_cut {
                    self.rings.found.push(ring);
                }
            }
            return;
        }
        let wanted = last_one.wants.0;
        let start = self.holders.partition_point(|&(thing, i)| (thing, i) <= (wanted, first));
        for at in start..self.holders.len() {
            let (thing, next) = self.holders[at];
            if thing != wanted || self.rings.is_cut {
                return;
            }
            self.steps = self.steps.saturating_sub(1);
            self.rings.is_cut |= self.steps == 0;
            let next_one = &requests[next as usize];
            let is_other = |&i: &u32| requests[i as usize].thread != next_one.thread;
            if !self.path.iter().all(is_other) || !last_one.waits_for(next_one) {
                continue;
            }
            let is_possible = |&i: &u32| requests[i as usize].can_be_beside(next_one);
            if !self.path.iter().all(is_possible) {
                let closes = self.path.len() + 1 == length && next_one.waits_for(first_one);
                if closes && length <= LONGEST && self.rings.guarded.len() < self.most {
                    let ring = self.ring(Some(next));
                    self.rings.guarded.push(ring);
                }
                continue;
            }
            self.path.push(next);
            self.extend(length);
            self.path.pop();
        }
    }

    /// The path, and possibly one more request.
    fn ring(&self, last: Option<u32>) -> Ring {
        let mut ring = Ring { requests: [0; LONGEST], len: 0 };
        for &request in self.path.iter().chain(&last) {
            ring.requests[ring.len] = request;
            ring.len += 1;
        }
        ring
    }
}

#[cfg(test)]
pub(super) mod tests {
    use foresee_support::components::components_of_pairs;

    use super::*;

    /// The requests that could be in a ring, by definition: the graph has an edge from each thing held
    /// to the thing requested.
    pub(in crate::checks::deadlock) fn entangled(requests: &[Request]) -> Vec<u32> {
        let mut edges = Vec::new();
        for request in requests {
            let to = request.wants.0.0;
            edges.extend(request.has.iter().map(|&(thing, _)| (thing.0, to)));
            edges.push((Thing::thread(request.thread).0, to));
        }
        edges.sort_unstable();
        edges.dedup();
        let nodes = edges.iter().map(|&(from, to)| from.max(to) as usize + 1).max().unwrap_or(0);
        let component = components_of_pairs(nodes, &edges);
        let is_in = |r: &Request| {
            let wanted = component[r.wants.0.0 as usize];
            let own = (Thing::thread(r.thread), false);
            r.has.iter().chain([&own]).any(|&(thing, _)| component[thing.0 as usize] == wanted)
        };
        (0..requests.len() as u32).filter(|&i| is_in(&requests[i as usize])).collect()
    }

    /// The rings among all requests.
    pub(in crate::checks::deadlock) fn all_rings(requests: &[Request]) -> Rings {
        rings(requests, &entangled(requests), Limits::default())
    }

    fn request(thread: u32, has: &[(u32, bool)], wants: (u32, bool)) -> Request {
        let hold = |&(lock, shared): &(u32, bool)| (Thing::lock(lock), shared);
        let has = has.iter().map(hold).collect();
        Request { thread, has, guards: Vec::new(), wants: hold(&wants) }
    }

    fn found(requests: &[Request]) -> Vec<Vec<u32>> {
        let rings = all_rings(requests);
        assert!(!rings.is_cut);
        rings.found.iter().map(|ring| ring.requests().to_vec()).collect()
    }

    #[test]
    fn rings_of_locks() {
        let a = request(1, &[(0, false)], (1, false));
        let b = request(2, &[(1, false)], (0, false));
        assert_eq!(found(&[a.clone(), b.clone()]), [[0, 1]]);
        assert!(found(&[a.clone(), Request { thread: 1, ..b.clone() }]).is_empty());
        let shared = request(2, &[(1, true)], (0, true));
        assert_eq!(found(&[a.clone(), shared.clone()]), [[0, 1]]);
        assert!(found(&[request(1, &[(0, true)], (1, true)), shared]).is_empty());
        let guarded = |r: &Request| {
            let mut r = r.clone();
            r.has.push((Thing::lock(7), false));
            r
        };
        let rings = all_rings(&[guarded(&a), guarded(&b)]);
        assert_eq!((rings.found.len(), rings.guarded.len()), (0, 1));
    }

    #[test]
    fn what_a_parent_keeps_guards_its_children() {
        let by = |thread: u32, mut r: Request| {
            r.guards.push((thread, (Thing::lock(7), false)));
            r
        };
        let a = request(1, &[(0, false)], (1, false));
        let b = request(2, &[(1, false)], (0, false));
        let with_it = request(2, &[(1, false), (7, false)], (0, false));
        let rings = all_rings(&[by(9, a.clone()), with_it]);
        assert_eq!((rings.found.len(), rings.guarded.len()), (0, 1));
        // Children of one parent do not exclude each other.
        assert_eq!(found(&[by(9, a.clone()), by(9, b.clone())]).len(), 1);
        assert!(found(&[by(9, a), by(8, b)]).is_empty());
    }

    #[test]
    fn rings_of_three_and_of_one_lock() {
        let three = |t: u32| request(t, &[(t, false)], ((t + 1) % 3, false));
        assert_eq!(found(&[three(0), three(1), three(2)]), [[0, 1, 2]]);
        let upgrade = |t: u32| request(t, &[(0, true)], (0, false));
        assert_eq!(found(&[upgrade(1), upgrade(2)]), [[0, 1]]);
    }

    #[test]
    fn long_rings_are_found_and_longer_ones_told() {
        let one = |n: u32, t: u32| request(t, &[(t, false)], ((t + 1) % n, false));
        let ring = |n: u32| (0..n).map(|t| one(n, t)).collect::<Vec<_>>();
        assert_eq!(found(&ring(5)), [[0, 1, 2, 3, 4]]);
        assert_eq!(found(&ring(8)).len(), 1);
        let long = all_rings(&ring(9));
        assert!(long.found.is_empty() && long.is_cut);
        // A chain that does not close is not a ring, however long.
        assert!(found(&ring(12)[..11]).is_empty());
    }

    #[test]
    fn a_join_waits_for_a_thread_whatever_it_has() {
        let join =
            Request { wants: (Thing::thread(2), false), ..request(1, &[(0, false)], (0, false)) };
        assert_eq!(found(&[join, request(2, &[], (0, false))]), [[0, 1]]);
    }

    /// Every ring of a random graph, found by trying all tuples.
    #[test]
    fn no_ring_is_missed() {
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut requests = Vec::new();
            for _ in 0..rng.usize(2..9) {
                let mut hold = |_| (rng.u32(..4), rng.u8(..4) == 0);
                let has: Vec<_> = (0..2).map(&mut hold).collect();
                let wants = hold(0);
                let mut one = request(rng.u32(..4), &has[..rng.usize(..=2)], wants);
                if rng.u8(..5) == 0 {
                    one.wants = (Thing::thread(rng.u32(..4)), false);
                }
                requests.push(one);
            }
            let n = requests.len();
            let mut expected = 0;
            for length in 2..=4u32 {
                for code in 0..n.pow(length) {
                    let tuple: Vec<usize> = (0..length).map(|i| code / n.pow(i) % n).collect();
                    let at = |i: usize| &requests[tuple[i % tuple.len()]];
                    let len = tuple.len();
                    let is_ring = tuple.iter().all(|&i| i >= tuple[0])
                        && (0..len).all(|i| at(i).waits_for(at(i + 1)))
                        && (0..len).all(|i| {
                            (0..i)
                                .all(|j| at(i).thread != at(j).thread && at(i).can_be_beside(at(j)))
                        });
                    expected += usize::from(is_ring);
                }
            }
            assert_eq!(found(&requests).len(), expected, "{requests:?}");
        }
    }
}
