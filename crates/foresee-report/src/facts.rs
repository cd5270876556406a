//! The details of findings as JSON objects.

use serde::Serialize;

use foresee_trace::{
    Blocked, Detail, Fact, OtherRead, Point, Region, Remedy, RingEdge, StillToCome,
    SwappedSections, Wants,
};

use crate::json::{JsonFrame, JsonLock, JsonSubject, frames, is_false, lock, subject};

/// Something to know about a finding. Which fields there are follows from `kind`.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Fact"))]
pub(crate) struct JsonFact<'a> {
    /// What the fact is about, as in the text report.
    label: &'a str,
    /// What sort of fact it is.
    kind: &'static str,
    /// An explanation in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// A thing with a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<JsonSubject<'a>>,
    /// A value, as the std format writes it. Missing if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    /// Indices of events: those that led to a violation, or the one that wrote the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<u64>,
    /// Positions in the finding's `sites`, from 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<JsonRegion<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<JsonRemedy<'a>>,
    /// The threads that wait for each other, each for the next one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ring: Vec<JsonRingEdge<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<JsonBlocked<'a>>,
    /// The lock that a thread keeps when it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<JsonLock<'a>>,
    /// Critical sections that were observed in the opposite order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    swapped: Vec<JsonSwapped<'a>>,
    /// Events that were observed but have not happened yet, by thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    still_to_come: Vec<JsonStillToCome<'a>>,
    /// Reads that see another write than in the trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<JsonOtherRead<'a>>,
    /// Where a variable is written. An empty list stands for its initial value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<Vec<JsonFrame<'a>>>,
    /// Whether there are more places.
    #[serde(skip_serializing_if = "is_false")]
    has_more: bool,
}

/// An event, and where in the source it is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Point"))]
struct JsonPoint<'a> {
    event: u64,
    frames: Vec<JsonFrame<'a>>,
}

/// Part of a thread that should be atomic.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Region"))]
struct JsonRegion<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    thread: &'a str,
    begin: JsonPoint<'a>,
    /// Missing if it lasts to the end of the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<JsonPoint<'a>>,
}

/// A lock to hold from one event to another.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Remedy"))]
struct JsonRemedy<'a> {
    /// A lock that the other threads hold already. If it is missing, they must take one as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<&'a str>,
    /// The other threads.
    threads: &'a [String],
    from: u64,
    to: u64,
}

/// A thread of a ring, and what it waits for.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "RingEdge"))]
struct JsonRingEdge<'a> {
    thread: &'a str,
    /// The lock, which the next thread holds. Missing if it waits for the end of that thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<&'a str>,
}

/// A thread that cannot go on. The fact's label is its name, and its site is where it waits.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Blocked"))]
struct JsonBlocked<'a> {
    /// What it waits for. Missing if it merely stands before an event that may not happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    wants: Option<JsonSubject<'a>>,
    /// Whether it would share the lock.
    #[serde(skip_serializing_if = "is_false")]
    to_share: bool,
    /// Whether it takes the lock back at the end of a wait.
    #[serde(skip_serializing_if = "is_false")]
    after_wait: bool,
    /// The locks it holds that others wait for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has: Vec<JsonLock<'a>>,
    /// The other locks it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_has: Vec<JsonLock<'a>>,
    /// The thread that holds what it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<JsonHolder<'a>>,
    /// Whether it gives up after some time.
    #[serde(skip_serializing_if = "is_false")]
    is_timed: bool,
    /// Whether it has no part in the cause and only waits as well.
    #[serde(skip_serializing_if = "is_false")]
    is_besides: bool,
}

/// A thread that holds a lock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Holder"))]
struct JsonHolder<'a> {
    thread: &'a str,
    lock: JsonLock<'a>,
}

/// Two critical sections of a lock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "SwappedSections"))]
struct JsonSwapped<'a> {
    lock: &'a str,
    /// The section that comes first in the witness.
    first: JsonTaken<'a>,
    /// The one that comes next.
    second: JsonTaken<'a>,
}

/// A thread that takes a lock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Taken"))]
struct JsonTaken<'a> {
    thread: &'a str,
    event: u64,
}

/// Events of a thread that have not happened yet.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "StillToCome"))]
struct JsonStillToCome<'a> {
    thread: &'a str,
    /// The first of them.
    event: u64,
    /// How many there are.
    count: u64,
}

/// A read that sees another write than in the trace.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "OtherRead"))]
struct JsonOtherRead<'a> {
    event: u64,
    thread: &'a str,
    variable: &'a str,
    /// The write that it sees. Missing if that is the initial value.
    #[serde(skip_serializing_if = "Option::is_none")]
    sees: Option<u64>,
    /// The write that it saw in the trace. Missing if that was the initial value.
    #[serde(skip_serializing_if = "Option::is_none")]
    saw: Option<u64>,
}

/// One detail of a finding.
pub(crate) fn fact<'a>(detail: &'a Detail) -> JsonFact<'a> {
    let plain = JsonFact { label: &detail.label, kind: detail.fact.kind(), ..JsonFact::default() };
    match &detail.fact {
        Fact::Text(text) => JsonFact { text: Some(text), ..plain },
        Fact::Count(count) => JsonFact { count: Some(*count), ..plain },
        Fact::Subject(of) => JsonFact { subject: Some(subject(of)), ..plain },
        Fact::Value(value) => JsonFact { value: Some(value), ..plain },
        Fact::State { value, since } => {
            JsonFact { value: value.as_deref(), events: since.iter().copied().collect(), ..plain }
        }
        Fact::Events(events) => JsonFact { events: events.clone(), ..plain },
        Fact::Sites(sites) => JsonFact { sites: sites.clone(), ..plain },
        Fact::LocksAt(site) | Fact::ThreadOf(site) | Fact::LastSeen(site) | Fact::Place(site) => {
            JsonFact { sites: vec![*site], ..plain }
        }
        Fact::InitialValue => plain,
        Fact::Conflict(ends) => JsonFact { sites: ends.to_vec(), ..plain },
        Fact::Region(of) => JsonFact { region: Some(region(of)), ..plain },
        Fact::Remedy(Remedy { lock, threads, from, to }) => {
            let remedy = JsonRemedy { lock: lock.as_deref(), threads, from: *from, to: *to };
            JsonFact { remedy: Some(remedy), ..plain }
        }
        Fact::Ring(edges) => {
            let edge = |edge: &'a RingEdge| JsonRingEdge {
                thread: &edge.thread,
                lock: edge.lock.as_deref(),
            };
            JsonFact { ring: edges.iter().map(edge).collect(), ..plain }
        }
        Fact::Blocked(of) => JsonFact { sites: vec![of.site], blocked: Some(blocked(of)), ..plain },
        Fact::Keeps { lock: kept, .. } => JsonFact { lock: Some(lock(kept)), ..plain },
        Fact::SwappedSections(all) => {
            JsonFact { swapped: all.iter().map(swapped).collect(), ..plain }
        }
        Fact::StillToCome(all) => {
            let of_thread = |one: &'a StillToCome| JsonStillToCome {
                thread: &one.thread,
                event: one.event,
                count: one.count,
            };
            JsonFact { still_to_come: all.iter().map(of_thread).collect(), ..plain }
        }
        Fact::OtherReads(all) => JsonFact { reads: all.iter().map(other_read).collect(), ..plain },
        Fact::Writes { places, has_more } => {
            let places = places.iter().map(|place| frames(place.as_ref())).collect();
            JsonFact { places, has_more: *has_more, ..plain }
        }
    }
}

fn region(Region { name, thread, begin, end }: &Region) -> JsonRegion<'_> {
    JsonRegion { name: name.as_deref(), thread, begin: point(begin), end: end.as_ref().map(point) }
}

fn point(Point { event, location }: &Point) -> JsonPoint<'_> {
    JsonPoint { event: *event, frames: frames(location.as_ref()) }
}

fn blocked(of: &Blocked) -> JsonBlocked<'_> {
    let thing = |kind, name| Some(JsonSubject { kind, name });
    JsonBlocked {
        wants: match &of.wants {
            Wants::Lock(name) | Wants::Shared(name) | Wants::LockAgain(name) => thing("lock", name),
            Wants::End(name) => thing("thread", name),
            Wants::Other(name) => thing("name", name),
            Wants::Event => None,
        },
        to_share: matches!(of.wants, Wants::Shared(_)),
        after_wait: matches!(of.wants, Wants::LockAgain(_)),
        has: of.has.iter().map(lock).collect(),
        also_has: of.also_has.iter().map(lock).collect(),
        held_by: of.held_by.as_ref().map(|(thread, held)| JsonHolder { thread, lock: lock(held) }),
        is_timed: of.is_timed,
        is_besides: of.is_besides,
    }
}

fn swapped(SwappedSections { lock, first, second }: &SwappedSections) -> JsonSwapped<'_> {
    let [first, second] =
        [first, second].map(|(thread, event)| JsonTaken { thread, event: *event });
    JsonSwapped { lock, first, second }
}

fn other_read(OtherRead { event, thread, variable, sees, saw }: &OtherRead) -> JsonOtherRead<'_> {
    JsonOtherRead { event: *event, thread, variable, sees: *sees, saw: *saw }
}
