//! Findings: a program has ten places, not three million candidates.
//!
//! Breakable reads of one variable at one source location are one finding, with the first of them
//! as the example.

use std::collections::BTreeMap;

use foresee_trace::{LocId, Role, Site, Subject, Trace, VarId, Verdict};

use super::{Broken, Form, Reader};

/// What makes breakable reads one finding: the variable and the place, or its final value.
type Key = (VarId, Option<LocId>);

fn key(trace: &Trace, one: &Broken) -> Key {
    match one.reader {
        Reader::Event(read) => {
            let event = &trace.events[read as usize];
            (event.var(), Some(event.loc()))
        }
        Reader::Final(variable) => (VarId(variable), None),
    }
}

/// The reads of one variable at one place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) variable: VarId,
    /// The first of them in the trace, which is the example.
    pub(super) example: Broken,
    pub(super) reads: u64,
    /// How many writes they could see instead, read by read.
    pub(super) challengers: u64,
    /// Where some of those were written; nothing is the initial value.
    pub(super) written_at: Vec<Option<LocId>>,
}

/// Groups breakable reads, which come in the order of the trace.
pub(super) fn places(trace: &Trace, broken: Vec<Broken>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut known: BTreeMap<Key, usize> = BTreeMap::new();
    for one in broken {
        let key = key(trace, &one);
        let variable = key.0;
        let place = *known.entry(key).or_insert(places.len());
        if place == places.len() {
            places.push(Place {
                variable,
                example: one.clone(),
                reads: 0,
                challengers: 0,
                written_at: Vec::new(),
            });
        }
        let place = &mut places[place];
        place.reads += 1;
        place.challengers += one.challengers;
        for at in one.written_at {
            if !place.written_at.contains(&at) && place.written_at.len() < super::MOST_LOCATIONS {
                place.written_at.push(at);
            }
        }
    }
    places
}

/// An event with its thread, and where in the source it is.
fn site(trace: &Trace, role: Role, index: u64) -> Site {
    Site::of(role, index, &trace.events[index as usize], &trace.names, &trace.pool)
}

fn describe_event(trace: &Trace, index: u64) -> String {
    site(trace, Role::Step, index).to_string()
}

fn told_write(trace: &Trace, write: Option<u64>) -> String {
    write.map_or("the initial value".to_owned(), |write| describe_event(trace, write))
}

impl Place {
    /// Whether a breakable read is one of them.
    pub(super) fn has(&self, trace: &Trace, one: &Broken) -> bool {
        key(trace, one) == key(trace, &self.example)
    }

    /// What goes wrong.
    pub(super) fn verdict(&self) -> Verdict {
        match self.example.reader {
            Reader::Event(_) => Verdict::OtherWrite,
            Reader::Final(_) => Verdict::OtherFinalValue,
        }
    }

    /// The variable.
    pub(super) fn subject(&self, trace: &Trace) -> Subject {
        Subject::Variable(trace.names.vars.get(self.variable).to_owned())
    }

    /// The read, the write that it saw and the one that it could see instead. An initial value has
    /// no site.
    pub(super) fn sites(&self, trace: &Trace) -> Vec<Site> {
        let read = match self.example.reader {
            Reader::Event(read) => Some(read),
            Reader::Final(_) => None,
        };
        let all = [
            (Role::Read, read),
            (Role::ObservedWrite, self.example.saw),
            (Role::OtherWrite, self.example.challenger),
        ];
        let sites = all.into_iter().filter_map(|(role, event)| Some((role, event?)));
        sites.map(|(role, event)| site(trace, role, event)).collect()
    }

    /// What happens, in one sentence.
    pub(super) fn message(&self, trace: &Trace) -> String {
        let variable = trace.names.vars.get(self.variable);
        let instead = told_write(trace, self.example.challenger);
        match self.example.reader {
            Reader::Event(_) => format!(
                "a read of {variable} could see another write: {instead}; everything before it \
                 sees what it saw"
            ),
            Reader::Final(_) => format!(
                "the final value of {variable} could be that of another write: {instead}, after \
                 the same events with every read as observed"
            ),
        }
    }

    /// Names and values that help to understand it.
    pub(super) fn details(&self, trace: &Trace) -> Vec<(String, String)> {
        let mut details =
            vec![("variable".to_owned(), { trace.names.vars.get(self.variable).to_owned() })];
        let mut add = |name: &str, value: String| details.push((name.to_owned(), value));
        if let Reader::Event(read) = self.example.reader {
            add("read", describe_event(trace, read));
        }
        add("observed", told_write(trace, self.example.saw));
        add("instead", told_write(trace, self.example.challenger));
        add(
            "form",
            match (self.example.form, self.example.reader) {
                (Form::Missing, _) => "the observed write has not happened yet",
                (Form::Overwritten, _) if self.example.saw.is_none() => {
                    "the initial value has been overwritten"
                }
                (Form::Overwritten, _) => "the observed write has been overwritten",
            }
            .to_owned(),
        );
        if let Reader::Event(_) = self.example.reader {
            add("reads at this place", self.reads.to_string());
        }
        add("other writes they could see", self.challengers.to_string());
        let known = |at: &Option<LocId>| *at != Some(LocId::NONE);
        let written: Vec<_> = self
            .written_at
            .iter()
            .filter(|at| known(at))
            .map(|at| at.map_or("initially", |at| trace.names.locs.get(at)))
            .collect();
        if !written.is_empty() {
            let more = self.written_at.len() >= super::MOST_LOCATIONS;
            add("written", format!("{}{}", written.join(", "), if more { ", …" } else { "" }));
        }
        details
    }
}
