//! Findings: a program has ten places, not three million candidates.
//!
//! Breakable reads of one variable at one source location are one finding, with the first of them
//! as the example.

use std::collections::BTreeMap;

use foresee_trace::{Detail, Fact, LocId, Role, Site, Subject, Trace, VarId, Verdict, location};

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
    pub(super) fn details(&self, trace: &Trace, sites: &[Site]) -> Vec<Detail> {
        let of_role = |role: Role| match sites.iter().position(|site| site.role == role) {
            Some(site) => Fact::Sites(vec![site]),
            None => Fact::InitialValue,
        };
        let is_read = matches!(self.example.reader, Reader::Event(_));
        let mut details = vec![Detail::new("variable", Fact::Subject(self.subject(trace)))];
        let mut add = |label: &str, fact: Fact| details.push(Detail::new(label, fact));
        if is_read {
            add("read", of_role(Role::Read));
        }
        add("observed", of_role(Role::ObservedWrite));
        add("instead", of_role(Role::OtherWrite));
        let form = match (self.example.form, self.example.saw) {
            (Form::Missing, _) => "the observed write has not happened yet",
            (Form::Overwritten, None) => "the initial value has been overwritten",
            (Form::Overwritten, Some(_)) => "the observed write has been overwritten",
        };
        add("form", Fact::Text(form.to_owned()));
        if is_read {
            add("reads at this place", Fact::Count(self.reads));
        }
        add("other writes they could see", Fact::Count(self.challengers));
        let known = self.written_at.iter().filter(|at| **at != Some(LocId::NONE));
        let places: Vec<_> = known.map(|at| at.and_then(|at| location(at, &trace.names))).collect();
        if !places.is_empty() {
            let has_more = self.written_at.len() >= super::MOST_LOCATIONS;
            add("written", Fact::Writes { places, has_more });
        }
        details
    }
}
