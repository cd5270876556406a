//! All correct reorderings of a window, level by level, as far as the width allows.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use foldhash::fast::RandomState;
use foresee_spec::monitor::TooManyStates;

use super::node::{Machine, Node};

/// A state of the property's monitor together with what it knows of variables, by number.
pub(super) type Config = u32;
/// The monitor has rejected the run.
pub(super) const BAD: Config = u32::MAX;

/// Steps the property along actions.
pub(super) trait Property {
    /// What an action makes of a configuration.
    fn step(&mut self, config: Config, action: u32) -> Result<Config, TooManyStates>;
}

/// The result of the search of a window.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// A violating run of the window, and the configuration it began with.
    pub(super) violation: Option<(Config, Vec<u32>)>,
    /// The configurations that can be reached where the next window begins, each with the one it
    /// began with and the way.
    pub(super) carried: Vec<(Config, Config, Vec<u32>)>,
    /// How many states of program and property were seen.
    pub(super) nodes: u64,
    /// Whether some of them were left out.
    pub(super) is_cut: bool,
    /// Whether that was for lack of memory.
    pub(super) is_full: bool,
}

struct Entry {
    node: Node,
    config: Config,
    parent: u32,
    /// What happened on the way from the parent: a stretch of all such events.
    path: (u32, u32),
}

/// The states of the observed run, which are always followed.
type Pins = HashSet<Node, RandomState>;

/// No parent: the entry begins the window, and the configuration takes the parent's place.
const ROOT: u32 = u32::MAX;

/// Searches a window, beginning with any of these configurations.
pub(super) struct Search<'m, 'w> {
    pub(super) machine: &'m Machine<'w>,
    pub(super) width: usize,
    pub(super) max_nodes: u64,
    /// How many bytes its states may take.
    pub(super) max_bytes: usize,
    pub(super) until: Option<Instant>,
}

impl Search<'_, '_> {
    /// Runs the window; the next one begins after `carry` of its events.
    pub(super) fn run(
        &self,
        configs: &[Config],
        carry: usize,
        property: &mut dyn Property,
    ) -> Result<Found, TooManyStates> {
        let mut found = Found::default();
        let (pins, goal) = self.observed(carry);
        let mut root = self.machine.start();
        let mut path: Vec<u32> = Vec::new();
        self.machine.settle(&mut root, &mut path);
        let mut entries: Vec<Entry> = Vec::new();
        // Each is stored twice, and its table may be half empty.
        let bytes_per_state = 2 * (size_of_val(&*root.counts) + size_of_val(&*root.writers))
            + size_of::<Entry>()
            + 2 * size_of::<(Node, Config)>();
        let mut seen: HashSet<(Node, Config), RandomState> = HashSet::default();
        let begin = (0, path.len() as u32);
        for &config in configs {
            seen.insert((root.clone(), config));
            entries.push(Entry { node: root.clone(), config, parent: ROOT, path: begin });
        }
        let mut level = 0..entries.len();
        let mut current: Vec<usize> = level.clone().collect();
        while !current.is_empty() {
            for &at in &current {
                if let Some((node, pending)) = &goal
                    && entries[at].node == *node
                {
                    let mut way = way(&entries, at, &path);
                    let from = origin(&entries, at);
                    way.extend(pending);
                    found.carried.push((from, entries[at].config, way));
                }
            }
            for &at in &current {
                for t in 0..self.machine.window.threads.len() {
                    let start = path.len() as u32;
                    let step = self.machine.step(&entries[at].node, t, &mut path);
                    let Some((mut node, action)) = step else {
                        path.truncate(start as usize);
                        continue;
                    };
                    let mut config = entries[at].config;
                    if let Some(action) = action {
                        config = property.step(config, action)?;
                    }
                    if config == BAD {
                        let mut violating = way(&entries, at, &path);
                        violating.extend(&path[start as usize..]);
                        found.violation = Some((origin(&entries, at), violating));
                        found.nodes = entries.len() as u64;
                        return Ok(found);
                    }
                    self.machine.settle(&mut node, &mut path);
                    let key = (node, config);
                    if seen.contains(&key) {
                        path.truncate(start as usize);
                        continue;
                    }
                    seen.insert(key.clone());
                    let parent = at as u32;
                    let stretch = (start, path.len() as u32);
                    entries.push(Entry { node: key.0, config, parent, path: stretch });
                }
            }
            level = level.end..entries.len();
            let is_late = self.until.is_some_and(|until| Instant::now() >= until);
            found.is_full = entries.len().saturating_mul(bytes_per_state) > self.max_bytes;
            if entries.len() as u64 > self.max_nodes || is_late || found.is_full {
                found.is_cut = true;
                break;
            }
            current = self.nearest(&entries, level.clone(), &pins, &mut found.is_cut);
        }
        found.nodes = entries.len() as u64;
        Ok(found)
    }

    /// The states of the observed run, and the one in which the next window begins, with the locks
    /// that are taken there besides.
    fn observed(&self, carry: usize) -> (Pins, Option<(Node, Vec<u32>)>) {
        let machine = self.machine;
        let mut pins = Pins::default();
        let mut node = machine.start();
        let mut path = Vec::new();
        machine.settle(&mut node, &mut path);
        pins.insert(node.clone());
        let mut counts: HashMap<usize, u16, RandomState> = HashMap::default();
        let mut goal = None;
        for (i, &t) in machine.window.observed.iter().enumerate() {
            if i == carry {
                goal = Some((node.clone(), self.pending(&node, &counts)));
            }
            let place = counts.entry(t).or_default();
            *place += 1;
            if node.counts[t] >= *place {
                continue;
            }
            let item = &machine.window.threads[t][usize::from(*place) - 1];
            if item.object.is_some() && machine.is_put_off(item) {
                continue;
            }
            // Locks that were put off are taken now.
            if let Some((next, _)) = machine.step(&node, t, &mut path) {
                node = next;
                machine.settle(&mut node, &mut path);
                pins.insert(node.clone());
            }
        }
        (pins, goal)
    }

    /// The acquires that were postponed at each number of observed events per thread.
    fn pending(&self, node: &Node, counts: &HashMap<usize, u16, RandomState>) -> Vec<u32> {
        let threads = &self.machine.window.threads;
        let put_off = |(&t, &count): (&usize, &u16)| {
            let from = usize::from(node.counts[t].min(count));
            threads[t][from..usize::from(count)].iter().map(|item| item.event).collect::<Vec<_>>()
        };
        let mut all: Vec<u32> = counts.iter().flat_map(put_off).collect();
        all.sort_unstable();
        all
    }

    /// The entries of a level nearest to the observed run, if there are too many.
    fn nearest(
        &self,
        entries: &[Entry],
        level: std::ops::Range<usize>,
        pins: &Pins,
        is_cut: &mut bool,
    ) -> Vec<usize> {
        let mut all: Vec<usize> = level.collect();
        if all.len() <= self.width {
            return all;
        }
        *is_cut = true;
        let threads = &self.machine.window.threads;
        all.sort_by_cached_key(|&at| {
            let node = &entries[at].node;
            let last = |(own, &count): (&Vec<super::window::Item>, &u16)| {
                own[..usize::from(count)].last().map_or(0, |item| u64::from(item.event))
            };
            let lasts = threads.iter().zip(&node.counts).map(last);
            let (latest, sum) = lasts.fold((0, 0), |(most, sum), e| (e.max(most), sum + e));
            (!pins.contains(node), latest, sum)
        });
        all.truncate(self.width);
        all
    }
}

/// The configuration with which the way to an entry began.
fn origin(entries: &[Entry], mut at: usize) -> Config {
    while entries[at].parent != ROOT {
        at = entries[at].parent as usize;
    }
    entries[at].config
}

/// What happens up to an entry.
fn way(entries: &[Entry], at: usize, path: &[u32]) -> Vec<u32> {
    let mut stretches = Vec::new();
    let mut at = Some(at);
    while let Some(i) = at {
        stretches.push(entries[i].path);
        at = Some(entries[i].parent).filter(|&p| p != ROOT).map(|p| p as usize);
    }
    let events = stretches.iter().rev().flat_map(|&(a, b)| &path[a as usize..b as usize]);
    events.copied().collect()
}
