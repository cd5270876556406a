//! The places in the source that a finding is about, with their threads.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::display::Name;
use crate::event::{Event, Op, Pool, TargetKind};
use crate::ids::LocId;
use crate::location::Location;
use crate::names::Names;
use crate::stacks::StackId;
use crate::words::words;

words! {
    /// What an event has to do with a finding.
    ///
    /// ```
    /// assert_eq!(foresee_trace::Role::Access.word(), "access");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Role {
        /// One of two accesses that are not ordered.
        Access = "access",
        /// The first access of a region, or of two that belong together.
        First = "first",
        /// The access of another thread that comes between them.
        Between = "in-between",
        /// One of several accesses that come between them, any of which would do.
        AnyBetween = "in-between",
        /// The second access.
        Second = "second",
        /// One end of a conflict in a longer cycle of conflicts.
        Conflict = "conflict",
        /// What a thread asks for and cannot get.
        Request = "request",
        /// Where a thread took what it never gives back.
        Kept = "kept",
        /// A wait that nothing ends.
        Wait = "wait",
        /// The notification that comes too early, or not at all.
        Notification = "notification",
        /// Where a thread waits that has nothing to do with the cause.
        AlsoWaits = "also-waits",
        /// A read that could see another write.
        Read = "read",
        /// The write that it saw.
        ObservedWrite = "observed-write",
        /// A write that it could see instead.
        OtherWrite = "other-write",
        /// An object begins to be usable.
        Begin = "begin",
        /// An object is used.
        Use = "use",
        /// An object is freed, closed or otherwise ended.
        End = "end",
        /// The step that violates a property.
        Violation = "violation",
        /// A step on the way there.
        Step = "step",
        /// The write that a variable of a violated property has its value from.
        State = "state",
        /// The relaxed atomic write that seems to hand something over.
        RelaxedWrite = "relaxed-write",
        /// The relaxed atomic read that sees it.
        RelaxedRead = "relaxed-read",
        /// A read that has to see another value than it saw.
        Condition = "condition",
        /// The instruction or call by which a program failed.
        Failure = "failure",
        /// The last step seen of a thread.
        LastSeen = "last-seen",
    }
}

impl Role {
    /// Whether two findings that differ in this site are different bugs. The others depend on the
    /// schedule: which of many writes is the example, or which thread happened to wait as well.
    pub fn identifies(self) -> bool {
        !matches!(
            self,
            Role::AnyBetween
                | Role::Notification
                | Role::AlsoWaits
                | Role::ObservedWrite
                | Role::OtherWrite
                | Role::Step
                | Role::State
                | Role::RelaxedWrite
                | Role::RelaxedRead
                | Role::Condition
                | Role::LastSeen
        )
    }
}

/// What an event is about: a variable, a lock, another thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Which of these.
    pub kind: TargetKind,
    /// Its name in the trace.
    pub name: String,
}

impl Target {
    /// What an event is about, unless it is about its own thread.
    pub fn of(event: &Event, names: &Names) -> Option<Target> {
        let name = event.target_name(names)?.to_owned();
        Some(Target { kind: event.op().target_kind(), name })
    }
}

/// A thread, and how it came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteThread {
    /// Its name in the trace.
    pub name: String,
    /// The fork that started it, if the trace has it and it was looked for.
    pub forked: Option<Fork>,
}

impl SiteThread {
    /// `forked by T1 at a.c:9`, or `running from the start`.
    pub fn origin(&self) -> String {
        match &self.forked {
            Some(fork) => format!("forked by {}{}", fork.by, at(fork.location.as_ref())),
            None => "running from the start".to_owned(),
        }
    }
}

/// How a thread was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The thread that started it.
    pub by: String,
    /// The event.
    pub event: u64,
    /// Where in the source.
    pub location: Option<Location>,
    /// The calls that led there, innermost first, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Location>,
}

/// A lock that is held, and where it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// Its name in the trace.
    pub name: String,
    /// Whether other readers may hold it as well.
    pub shared: bool,
    /// The event that took it.
    pub event: u64,
    /// Where in the source.
    pub location: Option<Location>,
    /// The calls that led there, innermost first, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Location>,
}

impl fmt::Display for HeldLock {
    /// `m (shared), taken by event 3 at a.c:9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = if self.shared { " (shared)" } else { "" };
        let place = at(self.location.as_ref());
        write!(f, "{}{shared}, taken by event {}{place}", Name(&self.name), self.event)
    }
}

/// An event that a finding is about.
///
/// ```
/// use foresee_trace::{Role, Site};
///
/// let site = Site::new(Role::Access, Some(7));
/// assert!(site.op.is_none(), "the event has not been looked up");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// What it has to do with the finding.
    pub role: Role,
    /// Its index in the trace. A program's failure has none.
    pub event: Option<u64>,
    /// What is done; nothing as long as the event has not been looked up.
    pub op: Option<Op>,
    /// To what.
    pub target: Option<Target>,
    /// The event as traces write it: `w(x)`. Values are left out where they are not known, as of
    /// an event that is still to come.
    pub step: String,
    /// The thread.
    pub thread: Option<SiteThread>,
    /// Where in the source, and then the calls that led there, innermost first. Traces without call stacks have one frame at
    /// most. Functions that were inlined are part of the frame that they were inlined into.
    pub frames: Vec<Location>,
    /// The locks that the thread holds just before it, in the order in which they were taken;
    /// nothing as long as they have not been looked up.
    pub locks: Option<Vec<HeldLock>>,
}

impl Site {
    /// An event that has not been looked up yet.
    pub fn new(role: Role, event: Option<u64>) -> Site {
        let (op, target, step, thread) = (None, None, String::new(), None);
        Site { role, event, op, target, step, thread, frames: Vec::new(), locks: None }
    }

    /// An event of a trace.
    pub fn of(role: Role, index: u64, event: &Event, names: &Names, pool: &Pool) -> Site {
        let mut site = Site::new(role, Some(index));
        site.look_up(event, names, pool);
        site
    }

    /// Learns what the event is, all but the locks held and how its thread came to be.
    pub fn look_up(&mut self, event: &Event, names: &Names, pool: &Pool) {
        self.op = Some(event.op());
        self.target = Target::of(event, names);
        self.step = event.describe(names, pool).to_string();
        let name = names.threads.get(event.thread()).to_owned();
        self.thread = Some(SiteThread { name, forked: None });
        self.frames = location(event.loc(), names).into_iter().collect();
    }

    /// Forgets what was read or written, which is open until the event happens.
    pub fn without_values(&mut self, event: &Event, names: &Names, pool: &Pool) {
        if event.op() != Op::Event {
            let event = event.with_values(&[], &mut Pool::default());
            self.step = event.describe(names, pool).to_string();
        }
    }

    /// The innermost frame.
    pub fn location(&self) -> Option<&Location> {
        self.frames.first()
    }

    /// The name of its thread.
    pub fn thread_name(&self) -> &str {
        self.thread.as_ref().map_or("", |thread| &thread.name)
    }
}

impl fmt::Display for Site {
    /// `event 7, w(x) of T1 at a.c:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(event) = self.event {
            write!(f, "event {event}, ")?;
        }
        write!(f, "{} of {}{}", self.step, self.thread_name(), at(self.location()))
    }
}

/// The place of an event, if the trace has it.
pub fn location(loc: LocId, names: &Names) -> Option<Location> {
    Location::parse(names.locs.get(loc))
}

/// The places of the calls in a stack, innermost first; as far as the trace has them.
pub fn calls(stack: StackId, names: &Names) -> Vec<Location> {
    names.stacks.calls(stack).filter_map(|at| location(at, names)).collect()
}

/// ` at a.c:3`, or nothing.
pub(crate) fn at(location: Option<&Location>) -> String {
    match location {
        Some(location) => format!(" at {}", Name(&location.to_string())),
        None => String::new(),
    }
}
