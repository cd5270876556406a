//! The least events of whole chains that can come next together while sections keep their order.
//!
//! Among reorderings that keep the file's order of what they keep, what a set of events needs
//! before it only grows when later events of the same threads are asked for instead. So pointers
//! into the chains only move forward: an event that is needed before the others can come next is
//! too early for every later choice of the others. What is needed is added up along the way, and
//! the whole pass takes time linear in the trace, however long the chains are.

use crate::reorder::{Kind, NONE, Requirements};

/// How the pointers came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Least {
    /// These can come next together.
    Found(Vec<u32>),
    /// None can, as long as sections keep their order.
    Nothing,
    /// There was no room to go on.
    GaveUp,
}

/// The least events, one of each chain, that can come next together. Each chain is in the order of
/// its thread, and the threads are different. What the pass adds up is taken from `work`.
pub(crate) fn least(requirements: &Requirements, chains: &[&[u32]], work: &mut u64) -> Least {
    let mut needed = Needed {
        requirements,
        reached: vec![NONE; requirements.thread_count()],
        sections: vec![Vec::new(); requirements.object_count() / 2 + 1],
        todo: Vec::new(),
        path: Vec::new(),
    };
    let mut at = vec![0; chains.len()];
    loop {
        let tuple: Option<Vec<u32>> =
            chains.iter().zip(&at).map(|(chain, &i)| chain.get(i).copied()).collect();
        let Some(tuple) = tuple else { return Least::Nothing };
        let previous = tuple.iter().map(|&event| requirements.previous(event));
        needed.todo.extend(previous.filter(|&previous| previous != NONE));
        match needed.close(work) {
            Ok(()) => {}
            Err(Stopped::NeverReleased) => return Least::Nothing,
            Err(Stopped::NoRoom) => return Least::GaveUp,
        }
        let mut moved = false;
        for (chain, at) in chains.iter().zip(&mut at) {
            // What is needed of this thread only grows, so nothing is skipped for good.
            while chain.get(*at).is_some_and(|&event| needed.has(event)) {
                *at += 1;
                moved = true;
            }
        }
        if !moved {
            return Least::Found(tuple);
        }
    }
}

/// What is needed so far: a prefix of each thread.
struct Needed<'r> {
    requirements: &'r Requirements,
    /// For each thread the last event that is needed.
    reached: Vec<u32>,
    /// For each lock the latest section of each thread that is needed, by its acquire.
    sections: Vec<Vec<u32>>,
    todo: Vec<u32>,
    path: Vec<u32>,
}

enum Stopped {
    /// Two sections are needed of which the earlier has no end.
    NeverReleased,
    NoRoom,
}

impl Needed<'_> {
    fn has(&self, event: u32) -> bool {
        let reached = self.reached[self.requirements.thread(event) as usize];
        reached != NONE && event <= reached
    }

    /// Adds everything that what is needed needs.
    fn close(&mut self, work: &mut u64) -> Result<(), Stopped> {
        let requirements = self.requirements;
        while let Some(event) = self.todo.pop() {
            // With those before it in its thread, the earliest first.
            let mut at = event;
            while at != NONE && !self.has(at) {
                self.path.push(at);
                at = match requirements.has_previous(at) {
                    true => requirements.previous(at),
                    false => {
                        self.todo.extend(Some(requirements.previous(at)).filter(|&e| e != NONE));
                        NONE
                    }
                };
            }
            while let Some(event) = self.path.pop() {
                *work = work.checked_sub(1).ok_or(Stopped::NoRoom)?;
                self.reached[requirements.thread(event) as usize] = event;
                self.add(event)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, event: u32) -> Result<(), Stopped> {
        let requirements = self.requirements;
        let kind = requirements.kind(event);
        let need = match kind {
            Kind::Read | Kind::Rmw | Kind::Join | Kind::Wait => requirements.partner(event),
            Kind::WaitEnd => {
                requirements.wait(event).map_or(NONE, |(_, notification)| notification)
            }
            _ => NONE,
        };
        if need != NONE {
            self.todo.push(need);
        }
        let object = requirements.object(event);
        if !kind.acquires() || object == NONE {
            return Ok(());
        }
        let sections = &mut self.sections[(object / 2) as usize];
        let mode = |acquire: u32| requirements.kind(acquire) == Kind::AcquireShared;
        let mut mine = None;
        for (i, &other) in sections.iter().enumerate() {
            if requirements.thread(other) == requirements.thread(event) {
                if mode(other) == mode(event) {
                    mine = Some(i);
                }
            } else if !(mode(other) && mode(event)) {
                match requirements.partner(other.min(event)) {
                    NONE => return Err(Stopped::NeverReleased),
                    release => self.todo.push(release),
                }
            }
        }
        match mine {
            Some(i) => sections[i] = event,
            None => sections.push(event),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use foresee_causality::judge::Reads;
    use foresee_testkit::generated;
    use foresee_trace::Trace;
    use foresee_trace::generate::Config;

    use super::*;
    use crate::reorder::{Answer, Effort, Goal, Search};

    fn requirements(trace: &Trace) -> Requirements {
        let mut requirements = Requirements::default();
        trace.events.iter().for_each(|event| requirements.push(event).unwrap());
        requirements.finish();
        requirements
    }

    /// The search with one slice decides the same of every pair; the least pair is what all pairs
    /// that it accepts have in common.
    #[test]
    fn pointers_find_what_one_slice_finds() {
        let (mut found, mut nothing) = (0, 0);
        for seed in 0..1_500 {
            let trace = generated(Config {
                threads: 3,
                events: 16 + seed % 16,
                locks: 2,
                conditions: 1,
                variables: 2,
                in_sections: 0.8,
                section_events: 2.5,
                max_nesting: 2,
                shared: 0.3,
                forked: if seed % 2 == 0 { 0.5 } else { 0.0 },
                joined: 0.7,
                waits: if seed % 3 == 0 { 0.3 } else { 0.0 },
                unfinished: seed % 4 == 0,
                ..Config::small(seed)
            });
            let needs = requirements(&trace);
            let mut search = Search::new(&needs, Reads::Strict);
            let chain = |t: u32| -> Vec<u32> {
                let steps = (0..needs.len() as u32).filter(|&i| needs.is_step(i));
                steps.filter(|&i| needs.thread(i) == t).collect()
            };
            for (t, u) in [(0, 1), (1, 2)] {
                let (a, b) = (chain(t), chain(u));
                let mut expected: Option<(u32, u32)> = None;
                for &e in &a {
                    for &f in &b {
                        let goal = Goal { executed: &[], next: &[e, f] };
                        let effort = Effort { slices: 1, failures: 0, work: u64::MAX };
                        if let Answer::Yes { .. } = search.ask(&goal, 0, effort) {
                            let least = expected.unwrap_or((e, f));
                            expected = Some((least.0.min(e), least.1.min(f)));
                        }
                    }
                }
                let pointers = least(&needs, &[&a, &b], &mut 100_000);
                let expected = expected.map_or(Least::Nothing, |(e, f)| Least::Found(vec![e, f]));
                assert_eq!(pointers, expected, "seed {seed}\n{trace}");
                match pointers {
                    Least::Found(_) => found += 1,
                    _ => nothing += 1,
                }
            }
        }
        assert!(found > 100 && nothing > 10, "{found} {nothing}");
        let trace = foresee_testkit::trace! { T1: w(x), w(x), w(x); T2: r(x), w(y) };
        let needs = requirements(&trace);
        assert_eq!(least(&needs, &[&[0, 1], &[4]], &mut 2), Least::GaveUp);
        assert_eq!(least(&needs, &[&[0, 1], &[4]], &mut 9), Least::Nothing);
    }
}
