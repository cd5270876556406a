//! What helps people to understand a finding, as data.
//!
//! Reports show a line for each [`Detail`]: its label, and the text of its [`Fact`]. The text is
//! made from the fact and the finding's sites when the report is written.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::display::Name;
use crate::finding::Subject;
use crate::location::Location;
use crate::site::{HeldLock, Site, at};

/// A labelled fact about a finding.
///
/// ```
/// use foresee_trace::{Detail, Fact};
///
/// let detail = Detail::new("context switches", Fact::Count(3));
/// assert_eq!((detail.label.as_str(), detail.text(&[]).as_str()), ("context switches", "3"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// What the fact is about: `first access`, `remedy`, the name of a thread.
    pub label: String,
    /// What there is to know.
    pub fact: Fact,
}

impl Detail {
    /// A fact under a label.
    pub fn new(label: impl Into<String>, fact: Fact) -> Detail {
        Detail { label: label.into(), fact }
    }

    /// The fact in words, for a finding with these sites.
    ///
    /// ```
    /// use foresee_trace::{Detail, Fact};
    ///
    /// let state = Fact::State { value: Some("3".to_owned()), since: Some(7) };
    /// assert_eq!(Detail::new("count", state).text(&[]), "3 since event 7");
    /// ```
    pub fn text(&self, sites: &[Site]) -> String {
        self.fact.text(sites)
    }
}

/// Something to know about a finding. A number of a site is its place in [`Finding::sites`].
///
/// ```
/// use foresee_trace::Fact;
///
/// assert_eq!(Fact::Events(vec![3, 5]).text(&[]), "3, 5");
/// ```
///
/// [`Finding::sites`]: crate::Finding::sites
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// An explanation in words.
    Text(String),
    /// How many.
    Count(u64),
    /// A thing by its name.
    Subject(Subject),
    /// A value, as traces write it.
    Value(String),
    /// The value of a variable, unless it is not known, and the event that wrote it, unless the
    /// variable had it from the start.
    State {
        /// The value, as traces write it.
        value: Option<String>,
        /// The event that wrote it.
        since: Option<u64>,
    },
    /// Events, in the order in which they matter.
    Events(Vec<u64>),
    /// Events of the finding.
    Sites(Vec<usize>),
    /// The locks held at a site.
    LocksAt(usize),
    /// How the thread of a site was started.
    ThreadOf(usize),
    /// The value that a variable has before any write.
    InitialValue,
    /// One site comes before another, with which it conflicts.
    Conflict([usize; 2]),
    /// Part of a thread that should be atomic.
    Region(Region),
    /// What would prevent the violation.
    Remedy(Remedy),
    /// Threads that wait for each other, each for the next one.
    Ring(Vec<RingEdge>),
    /// What a thread waits for, and what it has meanwhile.
    Blocked(Blocked),
    /// A thread ends without giving back a lock.
    Keeps {
        /// The lock.
        lock: HeldLock,
        /// Whether it has ended in the observed run, and not only in the predicted one.
        has_ended: bool,
    },
    /// Critical sections that were observed in the opposite order.
    SwappedSections(Vec<SwappedSections>),
    /// Events that were observed but have not happened yet.
    StillToCome(Vec<StillToCome>),
    /// Reads that see another write than in the trace.
    OtherReads(Vec<OtherRead>),
    /// Where a variable is written; `None` stands for its initial value.
    Writes {
        /// The places.
        places: Vec<Option<Location>>,
        /// Whether there are more.
        has_more: bool,
    },
    /// Where the thread of a site was last seen.
    LastSeen(usize),
    /// The place of a site.
    Place(usize),
}

/// An event, and where in the source it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its index in the trace.
    pub event: u64,
    /// Where in the source.
    pub location: Option<Location>,
}

impl fmt::Display for Point {
    /// `event 3 at a.c:9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}{}", self.event, at(self.location.as_ref()))
    }
}

/// Part of a thread that should be atomic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub thread: String,
    /// Its first event.
    pub begin: Point,
    /// Its last event; none if it lasts to the end of the trace.
    pub end: Option<Point>,
}

impl Region {
    /// `` the region `transfer` of T1 ``, or `a region of T1`.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("the region `{name}` of {}", self.thread),
            None => format!("a region of {}", self.thread),
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` of {}", self.thread)?,
            None => f.write_str(&self.title())?,
        }
        write!(f, ", from {} to ", self.begin)?;
        match &self.end {
            Some(end) => write!(f, "{end}"),
            None => write!(f, "the end of the trace"),
        }
    }
}

/// A lock to hold over some events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// A lock that the other threads hold already; else they must take one, too.
    pub lock: Option<String>,
    /// The other threads.
    pub threads: Vec<String>,
    /// The event before which to take it ...
    pub from: u64,
    /// ... and the one after which to give it back.
    pub to: u64,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lock {
            Some(lock) => write!(f, "hold {lock}")?,
            None => write!(f, "hold a lock, which {} must also take,", list(&self.threads))?,
        }
        write!(f, " from event {} to event {}", self.from, self.to)
    }
}

/// One of the threads of a ring, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingEdge {
    /// The thread.
    pub thread: String,
    /// The lock, which the next thread holds; `None` if it waits for the end of the next thread.
    pub lock: Option<String>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wants {
    /// A lock for itself.
    Lock(String),
    /// A lock that it would share.
    Shared(String),
    /// A lock that it gave up for the time of a wait.
    LockAgain(String),
    /// The end of a thread.
    End(String),
    /// Anything else, by its name.
    Other(String),
    /// It stands before an event that may not happen.
    Event,
}

/// A thread that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The site of the event that it cannot do.
    pub site: usize,
    /// What it waits for.
    pub wants: Wants,
    /// The locks it holds that others wait for.
    pub has: Vec<HeldLock>,
    /// The other locks it holds.
    pub also_has: Vec<HeldLock>,
    /// The thread that has what it wants, and the lock.
    pub held_by: Option<(String, HeldLock)>,
    /// Whether it gives up after some time.
    pub is_timed: bool,
    /// Whether others are stuck for a reason of their own, and it only waits besides.
    pub is_besides: bool,
}

impl Blocked {
    /// A thread that waits at the event of a site, and holds nothing.
    pub fn new(site: usize, wants: Wants) -> Blocked {
        let (has, also_has, held_by) = (Vec::new(), Vec::new(), None);
        Blocked { site, wants, has, also_has, held_by, is_timed: false, is_besides: false }
    }

    fn text(&self, sites: &[Site]) -> String {
        let mut text = String::new();
        if !self.has.is_empty() {
            text += &format!("has {}; ", join(&self.has, "; "));
        }
        if !self.also_has.is_empty() {
            text += &format!("also has {}; ", join(&self.also_has, "; "));
        }
        text += &match &self.wants {
            Wants::Lock(name) | Wants::Other(name) => format!("waits for {name}, "),
            Wants::Shared(name) => format!("waits to share {name}, "),
            Wants::LockAgain(name) => format!("waits to take {name} back at the end of a wait, "),
            Wants::End(name) => format!("waits for the end of {name}, "),
            Wants::Event => "stands before ".to_owned(),
        };
        if let Some(site) = sites.get(self.site) {
            let event = site.event.map_or(String::new(), |event| format!("event {event}"));
            text += &format!("{event}{}", at(site.location()));
        }
        if let Some((thread, lock)) = &self.held_by {
            let place = at(lock.location.as_ref());
            text += &format!(", which {thread} has, taken by event {}{place}", lock.event);
        }
        text + if self.is_timed { ", for some time" } else { "" }
            + if self.is_besides { " as well" } else { "" }
    }
}

/// Two critical sections of a lock, in the order of the witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwappedSections {
    /// The lock.
    pub lock: String,
    /// The thread that takes it first, and the event by which it does.
    pub first: (String, u64),
    /// The thread that takes it next, which it was observed to do before.
    pub second: (String, u64),
}

impl fmt::Display for SwappedSections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SwappedSections { lock, first: (one, other), second: (two, index) } = self;
        write!(
            f,
            "{} takes {} at event {other} before {} does at event {index}",
            Name(one),
            Name(lock),
            Name(two)
        )
    }
}

/// Events of a thread that have not happened yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StillToCome {
    /// The thread.
    pub thread: String,
    /// The first of them.
    pub event: u64,
    /// How many there are.
    pub count: u64,
}

impl fmt::Display for StillToCome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "one event")?,
            count => write!(f, "{count} events")?,
        }
        write!(f, " of {} from event {} on", Name(&self.thread), self.event)
    }
}

/// A read that sees another write than in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherRead {
    /// The read.
    pub event: u64,
    /// The thread.
    pub thread: String,
    /// The variable.
    pub variable: String,
    /// The write that it sees; `None` for the initial value.
    pub sees: Option<u64>,
    /// The write that it saw in the trace.
    pub saw: Option<u64>,
}

impl fmt::Display for OtherRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = |write: Option<u64>| match write {
            Some(write) => format!("what event {write} wrote"),
            None => "its initial value".to_owned(),
        };
        write!(
            f,
            "the last read of {} here, event {}, finds in {} {}, not {}",
            Name(&self.thread),
            self.event,
            Name(&self.variable),
            writer(self.sees),
            writer(self.saw)
        )
    }
}

/// The number of facts of one kind that a line lists individually.
const LISTED: usize = 5;

impl Fact {
    /// The word for its kind in JSON reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Fact::Text(_) => "text",
            Fact::Count(_) => "count",
            Fact::Subject(_) => "subject",
            Fact::Value(_) => "value",
            Fact::State { .. } => "state",
            Fact::Events(_) => "events",
            Fact::Sites(_) => "sites",
            Fact::LocksAt(_) => "locks",
            Fact::ThreadOf(_) => "thread",
            Fact::InitialValue => "initial-value",
            Fact::Conflict(_) => "conflict",
            Fact::Region(_) => "region",
            Fact::Remedy(_) => "remedy",
            Fact::Ring(_) => "ring",
            Fact::Blocked(_) => "blocked",
            Fact::Keeps { .. } => "keeps",
            Fact::SwappedSections(_) => "swapped-sections",
            Fact::StillToCome(_) => "still-to-come",
            Fact::OtherReads(_) => "other-reads",
            Fact::Writes { .. } => "writes",
            Fact::LastSeen(_) => "last-seen",
            Fact::Place(_) => "place",
        }
    }

    /// It in words, for a finding with these sites.
    pub fn text(&self, sites: &[Site]) -> String {
        let site = |index: &usize| sites.get(*index).map_or_else(String::new, Site::to_string);
        match self {
            Fact::Text(text) | Fact::Value(text) => text.clone(),
            Fact::Count(count) => count.to_string(),
            Fact::Subject(subject) => Name(subject.name()).to_string(),
            Fact::State { value, since } => {
                let value = value.as_deref().unwrap_or("unknown");
                match since {
                    Some(event) => format!("{value} since event {event}"),
                    None => format!("{value} from the start"),
                }
            }
            Fact::Events(events) => join(events, ", "),
            Fact::Sites(indices) => indices.iter().map(site).collect::<Vec<_>>().join("; "),
            Fact::LocksAt(index) => {
                match sites.get(*index).and_then(|site| site.locks.as_deref()) {
                    None | Some([]) => "no lock".to_owned(),
                    Some(locks) => join(locks, "; "),
                }
            }
            Fact::ThreadOf(index) => {
                let thread = sites.get(*index).and_then(|site| site.thread.as_ref());
                thread.map_or_else(String::new, |thread| thread.origin())
            }
            Fact::InitialValue => "the initial value".to_owned(),
            Fact::Conflict([from, to]) => format!("{}, and then {}", site(from), site(to)),
            Fact::Region(region) => region.to_string(),
            Fact::Remedy(remedy) => remedy.to_string(),
            Fact::Ring(edges) => ring(edges),
            Fact::Blocked(blocked) => blocked.text(sites),
            Fact::Keeps { lock, has_ended } => {
                format!("has {lock}, and {}", if *has_ended { "has ended" } else { "ends" })
            }
            Fact::SwappedSections(all) => first_few(all),
            Fact::StillToCome(all) => first_few(all),
            Fact::OtherReads(all) => first_few(all),
            Fact::Writes { places, has_more } => {
                let place = |place: &Option<Location>| match place {
                    Some(place) => place.to_string(),
                    None => "initially".to_owned(),
                };
                let all: Vec<String> = places.iter().map(place).collect();
                format!("{}{}", all.join(", "), if *has_more { ", …" } else { "" })
            }
            Fact::LastSeen(index) => match place_of(sites, *index) {
                Some(place) => format!("last seen at {place}"),
                None => "last seen at an unknown place".to_owned(),
            },
            Fact::Place(index) => {
                place_of(sites, *index).map_or_else(String::new, Location::to_string)
            }
        }
    }
}

fn place_of(sites: &[Site], index: usize) -> Option<&Location> {
    sites.get(index).and_then(Site::location)
}

fn join(all: &[impl fmt::Display], separator: &str) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// `T1 and T2`, each once.
fn list(names: &[String]) -> String {
    let mut names = names.to_vec();
    names.dedup();
    names.join(" and ")
}

/// The first few, and how many there are besides.
fn first_few(all: &[impl fmt::Display]) -> String {
    let text = join(&all[..all.len().min(LISTED)], "; ");
    match all.len().checked_sub(LISTED) {
        Some(more @ 1..) => format!("{text}; and {more} more"),
        _ => text,
    }
}

/// `T1 ─ m ─▶ T2 ─ l ─▶ T1`.
fn ring(edges: &[RingEdge]) -> String {
    let mut text = String::new();
    for RingEdge { thread, lock } in edges {
        text += &format!("{thread} ─ {} ─▶ ", lock.as_deref().unwrap_or("join"));
    }
    text + edges.first().map_or("", |edge| &edge.thread)
}
