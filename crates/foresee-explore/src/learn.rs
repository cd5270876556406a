//! Learns from a run: walks its events through the model, adds the facts that are new, and notices what contradicts.
//!
//! A run also shows whether the model is right about the program: what a thread was told must be what was computed from
//! what the others did. If it is not, something happened that was not captured.

use crate::map::HashMap;

use crate::facts::{Act, CHILD, Contradiction, Did, Facts, Tid};
use crate::memory::{Part, ValueId};
use crate::model::{INITIAL, LATE, MIXED, MOST_THREADS, Missing, Mode, Move, State, Status};
use crate::pairs::{Last, Pairs};
use crate::program::{Event, Execution, Operation, Place, TIME_OUT, ThreadName, Told, Value};

/// Why a run could not be followed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Two runs disagree, or a run and what was computed.
    Contradiction(Box<Contradiction>),
    /// A thread did something that the model does not allow or does not know.
    NotModelled {
        /// The run, from 1.
        run: u32,
        /// The thread.
        thread: ThreadName,
        /// What it did.
        operation: Operation,
        /// Where.
        place: Place,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// What was learnt from a run.
pub(crate) struct Lesson {
    /// The steps of the run, as far as it was understood.
    pub(crate) path: Vec<Move>,
    /// Why not to its end.
    pub(crate) doubt: Option<Doubt>,
}

/// Waiters in the order in which they began to wait, by condition: choices of schedules count them.
#[derive(Default)]
pub(crate) struct Arrivals(HashMap<u32, Vec<Tid>>);

impl Arrivals {
    /// Notes what a step does to the waiters, before it is taken.
    pub(crate) fn step(&mut self, act: Act, step: Move) {
        let thread = Tid::from(step.thread);
        match act {
            Act::Wait { condition, .. } => self.0.entry(condition).or_default().push(thread),
            Act::WaitEnd { condition, .. } => self.leave(condition, thread),
            Act::Signal(condition) if step.choice != 0 => {
                self.leave(condition, Tid::from(step.choice - 1));
            }
            Act::Broadcast(condition) => {
                self.0.remove(&condition);
            }
            _ => {}
        }
    }

    fn leave(&mut self, condition: u32, thread: Tid) {
        if let Some(waiters) = self.0.get_mut(&condition) {
            waiters.retain(|&waiter| waiter != thread);
        }
    }

    /// The choice of a schedule for a step.
    pub(crate) fn choice(&self, act: Act, step: Move) -> u32 {
        match act {
            Act::Signal(condition) if step.choice != 0 => {
                let waiters = self.0.get(&condition).map_or(&[][..], Vec::as_slice);
                let woken = Tid::from(step.choice - 1);
                waiters.iter().position(|&waiter| waiter == woken).unwrap_or(0) as u32
            }
            _ if step.choice == LATE => TIME_OUT,
            _ => 0,
        }
    }

    /// The step that an event with this choice is.
    fn step_of(&self, act: Act, thread: Tid, event: &Event) -> Move {
        let choice = match act {
            Act::Signal(condition) => {
                let waiters = self.0.get(&condition).map_or(&[][..], Vec::as_slice);
                waiters.get(event.choice as usize).map_or(0, |&waiter| waiter as u16 + 1)
            }
            _ if event.told == Told::TimedOut => LATE,
            _ => 0,
        };
        Move { thread: thread as u16, choice }
    }
}

/// Learns from a run.
pub(crate) fn learn(
    facts: &mut Facts,
    pairs: &mut Pairs,
    execution: &Execution,
    run: u32,
) -> Lesson {
    let threads: Vec<Tid> = execution.threads.iter().map(|name| facts.thread(name)).collect();
    let mut path = Vec::with_capacity(execution.events.len());
    let mut walk = Walk { state: State::start(facts), arrivals: Arrivals::default(), run };
    let mut last = Last::default();
    let strange = |event: &Event, why| Doubt::NotModelled {
        run,
        thread: execution.threads.get(event.thread as usize).cloned().unwrap_or_default(),
        operation: event.operation,
        place: event.place,
        why,
    };
    if facts.threads.len() > MOST_THREADS {
        let doubt =
            execution.events.first().map(|event| strange(event, "there are too many threads"));
        return Lesson { path, doubt };
    }
    // All slots are split before any of them is used.
    for event in &execution.events {
        facts.intern(event.operation, event.place);
    }
    for pending in &execution.pending {
        facts.intern(pending.operation, pending.place);
    }
    for event in &execution.events {
        let Some(&thread) = threads.get(event.thread as usize) else {
            let doubt = Some(strange(event, "its thread is not listed"));
            return Lesson { path, doubt };
        };
        match walk.event(facts, thread, event) {
            Ok(None) => break,
            Ok(Some((step, act))) => {
                path.push(step);
                last.step(facts, act, event.place, pairs);
            }
            Err(Wrong::Contradiction(contradiction)) => {
                return Lesson { path, doubt: Some(Doubt::Contradiction(contradiction)) };
            }
            Err(Wrong::Strange(why)) => {
                return Lesson { path, doubt: Some(strange(event, why)) };
            }
        }
    }
    let mut doubt = None;
    for pending in &execution.pending {
        let Some(&thread) = threads.get(pending.thread as usize) else { continue };
        let Status::At(node) = walk.state.status(facts, thread) else { continue };
        let learnt = facts.learn(node, pending.operation, pending.place, run);
        doubt = doubt.or(learnt.err().map(Doubt::Contradiction));
    }
    Lesson { path, doubt }
}

enum Wrong {
    Contradiction(Box<Contradiction>),
    Strange(&'static str),
}

struct Walk {
    state: State,
    arrivals: Arrivals,
    run: u32,
}

impl Walk {
    /// Follows an event; nothing if the process ends with it.
    fn event(
        &mut self,
        facts: &mut Facts,
        thread: Tid,
        event: &Event,
    ) -> Result<Option<(Move, Act)>, Wrong> {
        let node = match self.state.status(facts, thread) {
            Status::At(node) => node,
            Status::Unborn => return Err(Wrong::Strange("its thread was not started")),
            Status::Ended => return Err(Wrong::Strange("its thread has ended")),
        };
        let learnt = facts.learn(node, event.operation, event.place, self.run);
        learnt.map_err(Wrong::Contradiction)?;
        let Some(act) = facts.act(node) else { return Ok(None) };
        if matches!(act, Act::Stop | Act::Fail) {
            return Ok(None);
        }
        let step = self.arrivals.step_of(act, thread, event);
        let mut possible = Vec::new();
        self.state.moves_of(facts, thread, &mut possible);
        if !possible.contains(&step) {
            return Err(Wrong::Strange(why_not(&self.state, facts, thread)));
        }
        self.arrivals.step(act, step);
        let told = facts.answer(event.told);
        // A missing fact is made from what happened, so the step succeeds after a few of them.
        for _ in 0..64 {
            match self.state.take(facts, step, Mode::Learning) {
                Ok(computed) if computed == told || matches!(act, Act::End(_)) => {
                    return Ok(Some((step, act)));
                }
                Err(Missing { node: slot, told: INITIAL }) => {
                    self.learn_initial(facts, act, slot, event)?;
                }
                Err(Missing { told: MIXED, .. }) => {
                    return Err(Wrong::Strange("it reads parts of several addresses"));
                }
                Err(missing) if missing.told == told => {
                    let next = facts.make_edge(node, told, thread);
                    if let Some(stored) = event.stored {
                        facts.set_stored(next, stored);
                    }
                    if let Operation::Fork(number) = event.operation {
                        let child = facts.child(thread, number);
                        facts.make_edge(node, CHILD, child);
                    }
                }
                Ok(computed) | Err(Missing { told: computed, .. }) => {
                    let at = facts.nodes[node as usize];
                    return Err(Wrong::Contradiction(Box::new(Contradiction {
                        thread: facts.threads[thread as usize].name.clone(),
                        after: at.depth,
                        first_run: 0,
                        first: Did {
                            operation: event.operation,
                            told: facts.told(computed),
                            place: event.place,
                        },
                        second_run: self.run,
                        second: Did {
                            operation: event.operation,
                            told: Some(event.told),
                            place: event.place,
                        },
                    })));
                }
            }
        }
        Err(Wrong::Strange("its effect is not known"))
    }

    /// What was in memory at first, from the first read of it.
    fn learn_initial(
        &self,
        facts: &mut Facts,
        act: Act,
        slot: u32,
        event: &Event,
    ) -> Result<(), Wrong> {
        let (Act::Load(parts) | Act::Modify(parts, _)) = act else {
            return Err(Wrong::Strange("its effect is not known"));
        };
        let Told::Value(value) = event.told else {
            return Err(Wrong::Strange("it reads, and was not told what"));
        };
        let mut from = 0;
        for part in facts.memory.parts(parts).to_vec() {
            if part.slot == slot {
                let value = first_part(facts, value, from, part);
                facts.memory.set_initial(slot, value);
                return Ok(());
            }
            from += part.width;
        }
        Err(Wrong::Strange("its effect is not known"))
    }
}

fn first_part(facts: &mut Facts, value: Value, from: u8, part: Part) -> ValueId {
    let whole = facts.values.of(value);
    facts.values.part(whole, from, part.width)
}

/// Why a thread cannot move, although it did.
fn why_not(state: &State, facts: &Facts, thread: Tid) -> &'static str {
    match state.act(facts, thread) {
        Some((_, Act::Lock { .. })) => "another thread has the lock",
        Some((_, Act::Unlock { .. } | Act::Wait { .. })) => "it does not have the lock",
        Some((_, Act::WaitEnd { .. })) => "nothing woke it, or another thread has the lock",
        Some((_, Act::Join(_))) => "the joined thread has not ended",
        Some((_, Act::Unknown)) => "its meaning is not known",
        _ => "it must wait there",
    }
}
