//! The pass over the trace: all patterns at once.
//!
//! One table maps events to the patterns they concern; most concern none and only carry what
//! threads know of each other. Clocks have one counter for each lane, and grow when a thread with a
//! candidate appears for which there is no room.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_causality::{Clock, LaneClocks, LaneVector, Lanes, TooLong};
use foresee_spec::letter::Letter;
use foresee_spec::observe::EventTable;
use foresee_spec::params::{Binding, ParamPlan};
use foresee_spec::pattern::Position;
use foresee_trace::Batch;

use super::event::{Held, Now};
use super::instances::{Bound, Instances};
use super::pareto::Fresh;
use super::plan::{LaneMap, Meaning, Sequence};
use super::tracker::Tracker;

/// One pattern.
#[derive(Debug)]
pub(super) struct MonitoredPattern {
    pub(super) sequences: Vec<Sequence>,
    pub(super) params: ParamPlan,
    pub(super) state: State,
    meanings: Meanings,
    /// How many events concern it.
    pub(super) steps: u64,
    pub(super) occurred: Occurred,
    /// How many tuples were dropped because there were too many.
    pub(super) dropped: u64,
}

/// What the trace's events are to a pattern, each kind once: the atoms that they match.
#[derive(Debug, Default)]
pub(super) struct Occurred {
    /// Those of events that match one.
    single: u64,
    others: HashSet<u64, RandomState>,
}

impl Occurred {
    #[inline]
    fn note(&mut self, letter: u64) {
        if letter.is_power_of_two() {
            self.single |= letter;
        } else {
            self.others.insert(letter);
        }
    }

    /// Whether some event fits a position.
    pub(super) fn has(&self, position: &Position) -> bool {
        let single = (0..64).map(|bit| self.single & 1 << bit).filter(|&letter| letter != 0);
        single.chain(self.others.iter().copied()).any(|letter| position.matches(Letter(letter)))
    }
}

/// What is remembered of a pattern.
#[derive(Debug)]
pub(super) enum State {
    One(Tracker),
    /// One for each binding of its parameters.
    Bindings(Box<Instances>),
    /// The observed run has the pattern; nothing more is to be found.
    Over,
}

/// What events mean, by the atoms they match.
#[derive(Debug)]
struct Meanings {
    list: Vec<Meaning>,
    /// For events that match one atom.
    by_bit: Box<[u32]>,
    others: HashMap<u64, u32, RandomState>,
}

impl Meanings {
    fn new(atoms: usize, sequences: &[Sequence]) -> Meanings {
        let list = (0..atoms).map(|bit| Meaning::of(Letter(1 << bit), sequences)).collect();
        Meanings { list, by_bit: (0..atoms as u32).collect(), others: HashMap::default() }
    }

    #[inline]
    fn number(&mut self, letter: u64, sequences: &[Sequence]) -> u32 {
        if letter.is_power_of_two() {
            return self.by_bit[letter.trailing_zeros() as usize];
        }
        *self.others.entry(letter).or_insert_with(|| {
            self.list.push(Meaning::of(Letter(letter), sequences));
            self.list.len() as u32 - 1
        })
    }
}

impl MonitoredPattern {
    pub(super) fn new(
        sequences: Vec<Sequence>,
        params: ParamPlan,
        atoms: usize,
    ) -> MonitoredPattern {
        let state = match params.is_empty() {
            true => State::One(Tracker::new(&sequences)),
            false => State::Bindings(Box::new(Instances::new(&params, atoms, &sequences))),
        };
        let meanings = Meanings::new(atoms, &sequences);
        let occurred = Occurred::default();
        MonitoredPattern { sequences, params, state, meanings, steps: 0, occurred, dropped: 0 }
    }
}

/// The observed run has a pattern.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) watch: u32,
    pub(super) binding: Option<Binding>,
    pub(super) events: Vec<u64>,
}

/// Everything but the clocks.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) watches: Vec<MonitoredPattern>,
    table: EventTable,
    /// For each atom of the table where its users begin.
    starts: Vec<u32>,
    /// The users of each atom: the pattern, and the atom's bit there.
    users: Vec<(u32, u8)>,
    map: LaneMap,
    pub(super) seen: Vec<Seen>,
    // Kept from event to event, so that events allocate nothing.
    hits: Vec<Hit>,
    lanes: Vec<u32>,
    parts: Vec<(Binding, u64)>,
    fresh: Fresh,
}

/// A pattern that an event concerns.
#[derive(Clone, Copy, Debug)]
struct Hit {
    watch: u32,
    letter: u64,
    /// For patterns without parameters.
    meaning: u32,
}

impl Core {
    /// `users` are, for each atom of the table, the patterns that have it.
    pub(super) fn new(
        watches: Vec<MonitoredPattern>,
        table: EventTable,
        users: &[Vec<(u32, u8)>],
        map: LaneMap,
    ) -> Core {
        let mut starts = vec![0];
        for of_atom in users {
            starts.push(starts[starts.len() - 1] + of_atom.len() as u32);
        }
        Core {
            watches,
            table,
            starts,
            users: users.concat(),
            map,
            seen: Vec::new(),
            hits: Vec::new(),
            lanes: Vec::new(),
            parts: Vec::new(),
            fresh: Fresh::default(),
        }
    }
}

/// Clocks of one width.
#[derive(Debug)]
pub(super) struct Engine<V: LaneVector> {
    clocks: LaneClocks<V>,
    held: Held<V>,
}

impl<V: LaneVector> Default for Engine<V> {
    fn default() -> Self {
        Engine { clocks: LaneClocks::default(), held: Held::default() }
    }
}

/// Clocks as wide as need be.
#[derive(Debug)]
pub(super) enum AnyEngine {
    Four(Engine<Lanes<4>>),
    Sixteen(Engine<Lanes<16>>),
    Any(Engine<Clock>),
}

impl AnyEngine {
    pub(super) fn new() -> AnyEngine {
        AnyEngine::Four(Engine::default())
    }

    /// Takes the next events; `first` is the index of the first of them.
    pub(super) fn events(
        &mut self,
        core: &mut Core,
        first: u64,
        batch: &Batch,
    ) -> Result<(), TooLong> {
        let mut from = Some(0);
        while let Some(at) = from {
            if at > 0 || core.map.count as usize > self.width() {
                self.widen(core.map.count);
            }
            from = match self {
                AnyEngine::Four(engine) => engine.events(core, first, batch, at)?,
                AnyEngine::Sixteen(engine) => engine.events(core, first, batch, at)?,
                AnyEngine::Any(engine) => engine.events(core, first, batch, at)?,
            };
        }
        Ok(())
    }

    fn width(&self) -> usize {
        match self {
            AnyEngine::Four(_) => Lanes::<4>::LANES,
            AnyEngine::Sixteen(_) => Lanes::<16>::LANES,
            AnyEngine::Any(_) => Clock::LANES,
        }
    }

    /// Makes room for this many lanes.
    fn widen(&mut self, lanes: u32) {
        let is_few = lanes as usize <= Lanes::<16>::LANES;
        *self = match self {
            AnyEngine::Four(engine) if is_few => AnyEngine::Sixteen(engine.widened()),
            AnyEngine::Four(engine) => AnyEngine::Any(engine.widened()),
            AnyEngine::Sixteen(engine) => AnyEngine::Any(engine.widened()),
            AnyEngine::Any(_) => return,
        };
    }
}

impl<V: LaneVector> Engine<V> {
    /// Takes the events from `from` on, up to one for which there are not enough lanes.
    fn events(
        &mut self,
        core: &mut Core,
        first: u64,
        batch: &Batch,
        from: usize,
    ) -> Result<Option<usize>, TooLong> {
        for (i, event) in batch.events.iter().enumerate().skip(from) {
            let Core { table, starts, users, hits, .. } = core;
            hits.clear();
            table.matches(event, &batch.pool, |atom| {
                let of_atom = starts[atom as usize] as usize..starts[atom as usize + 1] as usize;
                hits.extend(users[of_atom].iter().map(|&(watch, bit)| Hit {
                    watch,
                    letter: 1 << bit,
                    meaning: 0,
                }));
            });
            if core.hits.is_empty() {
                self.clocks.event(event, &[])?;
                continue;
            }
            let by_thread = core.count_lanes();
            let thread_lane = if by_thread { core.map.of_thread(event.thread()) } else { 0 };
            if core.map.count as usize > V::LANES {
                return Ok(Some(i));
            }
            if by_thread && !core.lanes.contains(&thread_lane) {
                core.lanes.push(thread_lane);
            }
            let vector = self.clocks.event(event, &core.lanes)?;
            let index = first + i as u64;
            let now = Now { clocks: &self.clocks, vector, index, thread_lane };
            core.step(&now, event, batch, &mut self.held);
        }
        self.clocks.forget_old(self.held.vectors());
        Ok(None)
    }

    fn widened<W: LaneVector>(&self) -> Engine<W> {
        let kept: Vec<V> = self.held.vectors().collect();
        let (clocks, kept) = self.clocks.widen(V::LANES as u32, &kept);
        Engine { clocks, held: self.held.with_vectors(kept) }
    }
}

impl Core {
    /// Brings the hits of each pattern together and finds the lanes the event is counted in;
    /// whether that of its thread is among them.
    fn count_lanes(&mut self) -> bool {
        if self.hits.len() > 1 {
            self.hits.sort_unstable_by_key(|hit| hit.watch);
            self.hits.dedup_by(|hit, before| {
                let is_same = hit.watch == before.watch;
                if is_same {
                    before.letter |= hit.letter;
                }
                is_same
            });
        }
        self.lanes.clear();
        let mut by_thread = false;
        for hit in &mut self.hits {
            let watch = &mut self.watches[hit.watch as usize];
            match &watch.state {
                State::One(_) => {
                    hit.meaning = watch.meanings.number(hit.letter, &watch.sequences);
                    let meaning = &watch.meanings.list[hit.meaning as usize];
                    by_thread |= meaning.by_thread;
                    for lane in &meaning.lanes {
                        if !self.lanes.contains(lane) {
                            self.lanes.push(*lane);
                        }
                    }
                }
                State::Bindings(_) => by_thread = true,
                State::Over => {}
            }
        }
        by_thread
    }

    /// Lets every pattern that the event concerns take it.
    fn step<V: LaneVector>(
        &mut self,
        now: &Now<'_, V>,
        event: &foresee_trace::Event,
        batch: &Batch,
        held: &mut Held<V>,
    ) {
        let Core { watches, seen, hits, parts, fresh, .. } = self;
        fresh.begin();
        for hit in hits.iter() {
            let watch = &mut watches[hit.watch as usize];
            watch.steps += 1;
            watch.occurred.note(hit.letter);
            let sequences = &watch.sequences;
            match &mut watch.state {
                State::Over => {}
                State::One(tracker) => {
                    let meaning = &watch.meanings.list[hit.meaning as usize];
                    let whole = tracker.step(sequences, meaning, now, held, fresh);
                    if let Some(events) = whole {
                        seen.push(Seen { watch: hit.watch, binding: None, events });
                        watch.state = State::Over;
                    }
                }
                State::Bindings(instances) => {
                    watch.params.bindings(hit.letter, event, &batch.pool, parts);
                    let common = hit.letter & !watch.params.binding_bits();
                    let bound = Bound { common, parts };
                    instances.step(sequences, &bound, now, held, fresh, |binding, events| {
                        let binding = Some(*binding);
                        seen.push(Seen { watch: hit.watch, binding, events });
                    });
                }
            }
            watch.dropped += std::mem::take(&mut fresh.dropped);
        }
        fresh.end(held);
    }
}
