//! Lifetimes: objects that are used after their end, ended twice, or used before they begin.
//!
//! | file | what it does |
//! |---|---|
//! | `objects` | what events declare about objects, and which variables belong to them |
//! | `lives` | violations in the observed order, and candidates for others |
//! | `language` | violations by the C11 memory model, which only relaxed atomics would prevent |
//!
//! For a use that was observed before the end of its object, the goal is the reverse: the end has
//! happened, and the use is next. Different lifetimes are different objects: an address that is
//! allocated again is not the one that was freed. The search is shared with all checks; it is not
//! from a paper.
//!
//! # What its silence means
//! Complete for the objects in the trace, if no candidate is undecided or not found: no reordering
//! of this run uses one of them too late or too early.

mod language;
mod lives;
mod objects;

use std::collections::{BTreeMap, HashSet};

use foresee_causality::judge::Seen;
use foresee_trace::{Detail, Event, Fact, Op, Role, Subject, Value, Verdict};

use super::attempt::{Budget, EXECUTED};
use super::lock_state::LockState;
use super::tally::Words;
use super::tries::{Candidate, Found, Tried, Try};
use super::{
    Check, CheckKind, Context, Description, MemoryModel, ObservedViolation, Options, Proposals,
};
use crate::analysis::{AnalysisError, Stat};
use crate::info::LIFETIME;
use crate::reorder::Wanted;
use lives::{Lives, Pair, Wrong, distinct, places};
use objects::{Objects, Said};

/// The number of pairs of events to try for a pair of places.
const TRIES: usize = 64;

/// The number of violations in the observed order that are reported.
const MOST_OBSERVED: usize = 100;

/// The check.
pub(super) const KIND: CheckKind =
    CheckKind { name: LIFETIME, new: |options| Box::new(Lifetimes::new(options)) };

/// Finds objects that can be used too late or too early.
struct Lifetimes {
    objects: Objects,
    /// Whether the trace has any such event.
    has_events: bool,
    /// Whether it has atomics that are not sequentially consistent.
    has_weak: bool,
}

impl Lifetimes {
    fn new(_: &Options) -> Lifetimes {
        Lifetimes { objects: Objects::default(), has_events: false, has_weak: false }
    }

    fn said(&self, context: &Context<'_>, event: u32) -> Option<(Said, u32)> {
        self.objects.said(&context.trace.events[event as usize], &context.trace.pool)
    }

    /// Describes a violation.
    fn describe_pair(&self, context: &Context<'_>, pair: &Pair, can: bool) -> Description {
        let Pair { wrong, object, first, second } = *pair;
        let name = self.objects.name(object);
        let ended = |event: u32| match self.said(context, event) {
            Some((Said::Ends(word), _)) => word,
            _ => "ended",
        };
        let (one, two) = (context.thread_of(first), context.thread_of(second));
        let did =
            |verb: &str, past: &str| if can { format!("can {verb}") } else { past.to_owned() };
        let has = if can { "has" } else { "had" };
        let (verdict, message, roles) = match wrong {
            Wrong::UsedAfterEnd => {
                let word = ended(first);
                let did = did("use", "used");
                let message = format!("{two} {did} {name} after {one} {has} {word} it");
                let roles = [(word, Role::End, first), ("used", Role::Use, second)];
                (Verdict::UseAfterEnd, message, roles)
            }
            Wrong::EndedTwice => {
                let word = ended(second);
                let message = format!("{name} was {word} twice, by {one} and by {two}");
                let roles = [("first", Role::End, first), ("again", Role::End, second)];
                (Verdict::EndedTwice, message, roles)
            }
            Wrong::UsedBeforeBegin => {
                let did = did("use", "used");
                let message = format!("{one} {did} {name} before {two} {has} initialised it");
                let roles = [("used", Role::Use, first), ("initialised", Role::Begin, second)];
                (Verdict::UseBeforeBegin, message, roles)
            }
        };
        let object = Subject::Object(name.to_owned());
        let mut details = vec![Detail::new("object", Fact::Subject(object.clone()))];
        let mut sites = Vec::new();
        for (label, role, event) in roles {
            details.push(Detail::new(label, Fact::Sites(vec![sites.len()])));
            details.push(Detail::new(format!("locks held ({label})"), Fact::LocksAt(sites.len())));
            sites.push(context.site(role, event));
        }
        let about = vec![object];
        Description { verdict, message, sites, about, details }
    }

    /// Describes a use that only relaxed atomics order before the end.
    fn describe_weak(&self, context: &Context<'_>, pair: &Pair) -> ObservedViolation {
        let mut description = self.describe_pair(context, pair, true);
        let by = "by the C11 memory model, since only relaxed atomics order the two";
        description.message = format!("{}: {by}", description.message);
        let model = Detail::new("memory_model", Fact::Text("c11".to_owned()));
        description.details.insert(0, model);
        ObservedViolation { event: pair.first.max(pair.second), description }
    }

    /// The pair of events of a try.
    fn pair_of(&self, context: &Context<'_>, found: &Found) -> Option<Pair> {
        let executed = found.by.executed.first().map(|wanted| wanted.event);
        let (begins, ends) = (
            |event: &u32| matches!(self.said(context, *event), Some((Said::Begins, _))),
            |event: &u32| matches!(self.said(context, *event), Some((Said::Ends(_), _))),
        );
        let (wrong, first, second) = match (executed, &found.by.next[..]) {
            (Some(end), &[use_]) if ends(&end) => (Wrong::UsedAfterEnd, end, use_),
            (Some(use_), &[begin]) if begins(&begin) => (Wrong::UsedBeforeBegin, use_, begin),
            (None, &[use_, begin]) if begins(&begin) => (Wrong::UsedBeforeBegin, use_, begin),
            _ => return None,
        };
        let (_, object) = self.said(context, first)?;
        Some(Pair { wrong, object, first, second })
    }
}

fn tries_of(pair: &Pair) -> Vec<Try> {
    let executed = vec![Wanted { event: pair.first, keeps_value: false }];
    let mut tries = vec![Try { executed, next: vec![pair.second] }];
    if pair.wrong == Wrong::UsedBeforeBegin {
        // Both being next suffices: the use may come first.
        tries.push(Try { executed: Vec::new(), next: vec![pair.first, pair.second] });
    }
    tries
}

impl Check for Lifetimes {
    fn kind(&self) -> &'static CheckKind {
        &KIND
    }

    fn words(&self) -> Words {
        Words {
            one: "use of an object out of order",
            many: "uses of objects out of order",
            candidates: "pairs of places",
        }
    }

    fn budgets(&self) -> &'static [Budget] {
        EXECUTED
    }

    fn event(&mut self, _: u32, event: &Event, _: &LockState) {
        self.has_events |= event.op() == Op::Event;
        self.has_weak |= event.op().weakens();
    }

    fn observed(
        &mut self,
        context: &Context<'_>,
        tried: &Tried,
    ) -> Result<Vec<ObservedViolation>, AnalysisError> {
        if !self.has_weak || context.options.memory_model != MemoryModel::C11 {
            return Ok(Vec::new());
        }
        let trace = context.trace;
        let found = tried.found.iter().filter_map(|found| self.pair_of(context, found));
        let known: HashSet<_> = found.map(|pair| places(trace, &pair)).collect();
        let pairs = distinct(trace, &language::unordered(context, &self.objects)?);
        let new = pairs.iter().filter(|pair| !known.contains(&places(trace, pair)));
        Ok(new.take(MOST_OBSERVED).map(|pair| self.describe_weak(context, pair)).collect())
    }

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError> {
        let trace = context.trace;
        if self.has_events {
            self.objects = Objects::new(&trace.events, &trace.pool, &trace.names);
        }
        if self.objects.len() == 0 {
            let why = "no event of the trace begins, uses or ends an object";
            return Ok(Proposals { nothing: Some(why.to_owned()), ..Proposals::default() });
        }
        let Lives { observed, possible, impossible, ended } =
            Lives::new(trace, &self.objects, &context.uninstrumented(), context.requirements)?;
        let mut groups: BTreeMap<_, Vec<&Pair>> = BTreeMap::new();
        for pair in &possible {
            groups.entry(places(trace, pair)).or_default().push(pair);
        }
        let mut proposals = Proposals::default();
        let observed = distinct(trace, &observed);
        for pair in &observed {
            // An observed violation is not predicted.
            groups.remove(&places(trace, pair));
        }
        let settled = distinct(trace, &impossible);
        let settled = settled.iter().filter(|pair| !groups.contains_key(&places(trace, pair)));
        proposals.tally.by_order += settled.count() as u64;
        for (_, mut pairs) in groups {
            pairs.sort_by_key(|pair| (pair.first.abs_diff(pair.second), pair.first));
            let is_complete = pairs.len() <= TRIES;
            let tries = pairs.iter().take(TRIES).flat_map(|pair| tries_of(pair)).collect();
            proposals.candidates.push(Candidate { tries, is_complete, ..Candidate::default() });
        }
        for pair in observed.iter().take(MOST_OBSERVED) {
            let description = self.describe_pair(context, pair, false);
            proposals
                .observed
                .push(ObservedViolation { event: pair.first.max(pair.second), description });
        }
        proposals.stats = vec![
            ("objects", Stat::Count(self.objects.len() as u64)),
            ("lives_ended", Stat::Count(ended)),
        ];
        Ok(proposals)
    }

    /// Checks that both events are of one object, by name.
    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        _: &[u64],
        _: &Seen<'_>,
    ) -> Result<(), String> {
        let pair =
            self.pair_of(context, found).ok_or("it is not a pair of events of one object")?;
        let trace = context.trace;
        let name = |event: u32| {
            let event = &trace.events[event as usize];
            match event.op() {
                Op::Event => match trace.pool.values(event).first()? {
                    Value::Str(sym) => Some(trace.names.syms.get(*sym).to_owned()),
                    other => Some(format!("{other:?}")),
                },
                _ => Some(trace.names.vars.get(event.var()).to_owned()),
            }
        };
        let (Some(one), Some(two)) = (name(pair.first), name(pair.second)) else {
            return Err("an event has no object".to_owned());
        };
        if one != two && !one.starts_with(&two) && !two.starts_with(&one) {
            return Err(format!("{one} is not {two}"));
        }
        Ok(())
    }

    fn describe(&self, context: &Context<'_>, found: &Found) -> Description {
        let (verdict, message) = (Verdict::UseAfterEnd, String::new());
        let (sites, about, details) = (Vec::new(), Vec::new(), Vec::new());
        match self.pair_of(context, found) {
            Some(pair) => self.describe_pair(context, &pair, true),
            // `confirm` has rejected it.
            None => Description { verdict, message, sites, about, details },
        }
    }
}

#[cfg(test)]
mod tests;
