//! The steps of a run's threads, and orders of its events as schedules.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use foresee_rt::format::replay::{counts, is_failure};
use foresee_rt::format::{Access, RUN, Tag};
use foresee_trace::{Finding, Verdict, Witness};

use super::{Flag, Line, Place, Schedule, ScheduleThread, Step, moved};
use crate::log::{Log, What};
use crate::store::{LogTrace, StoreError};
use crate::symbols::Symbols;

/// The maximum number of records of a run whose orders are made schedules.
const MOST_RECORDS: u64 = 8 << 20;

/// Why an order cannot be a schedule.
#[derive(Debug, thiserror::Error)]
pub enum NotScheduled {
    /// The run is too long.
    #[error("the run has {0} steps, and replay is for at most {MOST_RECORDS}")]
    TooLong(u64),
    /// The recording leaves steps out.
    #[error("the recording leaves out steps, so that they cannot be counted")]
    Filtered,
    /// It happens in a forked process.
    #[error(
        "it is about a process that the program forked, or that became another program by `exec`; replay controls only the first process"
    )]
    Forked,
    /// The log cannot be read again.
    #[error(transparent)]
    Log(#[from] StoreError),
}

/// A step of a thread: a record of its log.
#[derive(Clone, Copy)]
struct Raw {
    at: u64,
    pc: u64,
    value: Option<u64>,
    tag: u8,
    is_late: bool,
}

struct Thread {
    number: u32,
    parent: usize,
    before: u32,
    children: u32,
    steps: Vec<Raw>,
}

impl Raw {
    /// Whether it is an attempt that failed, or a wait that timed out. The program does something else then, and the reason
    /// need not be in the trace.
    fn fails(&self) -> bool {
        self.is_late || is_failure(self.tag)
    }
}

/// What a thread asked for: the thread, the number of its next step, the tag and the return address of the request.
type Request = (usize, usize, u8, u64);

/// The steps of a run.
pub struct Steps<'l> {
    log: &'l Log,
    symbols: &'l Symbols,
    threads: Vec<Thread>,
    by_number: HashMap<u32, usize>,
    /// The thread and the number of the step behind each event.
    events: Vec<Option<(usize, usize)>>,
    /// What was requested and never given: thread, number of the thread's next step, tag and return address, by event.
    requests: HashMap<u64, Request>,
    /// The threads that the trace joins, by event.
    joined: HashMap<(usize, usize), usize>,
    /// How to recognise operations in another build.
    lines: OnceCell<HashMap<(u64, u8), Line>>,
}

/// The tag of an access, as the runtime compares it.
pub(super) fn tag_of(access: Access, size: usize) -> u8 {
    let size = match size {
        1 | 2 | 4 | 8 => size.trailing_zeros() as u8,
        _ => RUN,
    };
    (access as u8) << 3 | size
}

/// Addresses differ from run to run.
fn is_address(value: u64) -> bool {
    (0x5000_0000_0000..0x8000_0000_0000).contains(&value)
}

impl<'l> Steps<'l> {
    /// Reads the steps of a trace.
    pub fn of(trace: &'l LogTrace<'l>) -> Result<Steps<'l>, NotScheduled> {
        let (log, symbols) = (trace.log(), trace.symbols());
        if log.records > MOST_RECORDS {
            return Err(NotScheduled::TooLong(log.records));
        }
        if log.header.filtered || log.header.free_running {
            return Err(NotScheduled::Filtered);
        }
        if log.header.forked_from.is_some() {
            return Err(NotScheduled::Forked);
        }
        let mut steps = Steps {
            log,
            symbols,
            threads: Vec::new(),
            by_number: HashMap::new(),
            events: Vec::new(),
            requests: HashMap::new(),
            joined: HashMap::new(),
            lines: OnceCell::new(),
        };
        let requests = steps.read().map_err(StoreError::from)?;
        let mut places: HashMap<u64, (usize, usize)> = HashMap::new();
        for (i, thread) in steps.threads.iter().enumerate() {
            places.extend(thread.steps.iter().enumerate().map(|(n, step)| (step.at, (i, n))));
        }
        for (event, at) in trace.positions()?.into_iter().enumerate() {
            steps.events.push(at.and_then(|at| places.get(&at).copied()));
            if let Some(&request) = at.and_then(|at| requests.get(&at)) {
                steps.requests.insert(event as u64, request);
            }
        }
        Ok(steps)
    }

    fn read(&mut self) -> Result<HashMap<u64, Request>, crate::log::LogError> {
        let mut requests = HashMap::new();
        let mut records = self.log.raw()?;
        while let Some(record) = records.next_record()? {
            let (tag, value) = match record.what {
                What::Access(access, size) => {
                    let tag = tag_of(access, size);
                    let value = (tag & 7 != RUN).then_some(record.value);
                    (tag, value.filter(|&value| !is_address(value)))
                }
                What::Sync(tag) => (tag as u8, None),
                What::Skipped(_) => continue,
            };
            // The first record is that of the thread that runs `main`, or has it been started.
            let me = match self.by_number.get(&record.thread) {
                Some(&me) => me,
                None if self.threads.is_empty() => self.add(record.thread, 0, 0),
                // Started by other means: its steps are not controlled.
                None => continue,
            };
            let what = match record.what {
                What::Sync(tag) => Some(tag),
                _ => None,
            };
            if matches!(what, Some(Tag::Request | Tag::RequestEnd | Tag::RequestSem)) {
                let next = self.threads[me].steps.len();
                requests.insert(record.at, (me, next, tag, record.pc));
            }
            if what.is_some_and(|tag| !tag.is_step()) {
                continue;
            }
            if what == Some(Tag::Fork) {
                let before = self.threads[me].children;
                self.threads[me].children += 1;
                self.add(record.value as u32, me, before);
            }
            if what == Some(Tag::Join)
                && let Some(&other) = self.by_number.get(&(record.value as u32))
            {
                self.joined.insert((me, self.threads[me].steps.len()), other);
            }
            let is_late = what == Some(Tag::WaitEnd) && record.value & 1 != 0;
            let step = Raw { at: record.at, pc: record.pc, value, tag, is_late };
            self.threads[me].steps.push(step);
        }
        Ok(requests)
    }

    fn add(&mut self, number: u32, parent: usize, before: u32) -> usize {
        let at = self.threads.len();
        self.threads.push(Thread { number, parent, before, children: 0, steps: Vec::new() });
        self.by_number.insert(number, at);
        at
    }

    /// The schedule of the observed order.
    pub fn observed(&self) -> Schedule {
        let mut plan = Plan::new(self);
        (0..self.events.len() as u64).for_each(|event| plan.event(event, false));
        plan.finish()
    }

    /// The same, and then what threads asked for and never got: the program was stuck there.
    pub fn observed_to_requests(&self) -> Schedule {
        let mut plan = Plan::new(self);
        (0..self.events.len() as u64).for_each(|event| plan.event(event, false));
        let mut stuck: Vec<u64> = self.requests.keys().copied().collect();
        stuck.sort_unstable();
        stuck.into_iter().for_each(|event| plan.request(event));
        plan.violates();
        plan.finish()
    }

    /// The schedule of the order that shows a finding.
    pub fn schedule(&self, finding: &Finding, witness: &Witness) -> Result<Schedule, NotScheduled> {
        let mut plan = Plan::new(self);
        for (i, event) in witness.run().enumerate() {
            plan.event(event, witness.changed_reads.contains(&event));
            if i == witness.violated_at && witness.next.is_empty() {
                plan.violates();
            }
        }
        match finding.verdict {
            Verdict::LockCycle
            | Verdict::Stall
            | Verdict::EndlessWait
            | Verdict::LockNeverReleased
            | Verdict::Stuck => witness.next.iter().for_each(|&event| plan.request(event)),
            _ => plan.meet(&witness.next),
        }
        if !witness.next.is_empty() {
            plan.violates();
        }
        Ok(plan.finish())
    }

    fn place(&self, pc: u64) -> Place {
        let place = self.log.place(pc);
        match place.module {
            None if pc == 0 => Place::None,
            None => Place::Library("unknown".to_owned(), pc),
            Some(0) => Place::Program(pc.wrapping_sub(self.log.modules[0].base)),
            Some(module) => {
                let module = &self.log.modules[module];
                let name = module.path.file_name().unwrap_or_default().to_string_lossy();
                let name = if name.is_empty() { "kernel".into() } else { name };
                Place::Library(name.into_owned(), pc.wrapping_sub(module.base))
            }
        }
    }
}

/// A step in a schedule in the making: thread, number, tag and return address if it is no step of the log, and what else is said
/// of it.
type Listed = (usize, usize, Option<(u8, u64)>, Vec<Flag>);

/// A schedule in the making.
struct Plan<'s, 'l> {
    steps: &'s Steps<'l>,
    /// The thread, the number, and the step itself if it is not in the log.
    listed: Vec<Listed>,
    /// How many steps of each thread are listed or before a listed one.
    done: Vec<usize>,
    comments: HashMap<u64, String>,
}

impl<'s, 'l> Plan<'s, 'l> {
    fn new(steps: &'s Steps<'l>) -> Self {
        let done = vec![0; steps.threads.len()];
        Plan { steps, listed: Vec::new(), done, comments: HashMap::new() }
    }

    /// Lists a step, unless it is already.
    fn step(&mut self, thread: usize, number: usize, flags: Vec<Flag>) {
        if number < self.done[thread] {
            return;
        }
        // A thread must have ended before it can be joined.
        if let Some(&other) = self.steps.joined.get(&(thread, number)) {
            let last = self.steps.threads[other].steps.last();
            if last.is_some_and(|step| step.tag == Tag::ThreadEnd as u8) {
                self.step(other, self.steps.threads[other].steps.len() - 1, Vec::new());
            }
        }
        let before = self.done[thread]..number;
        let failed = before.filter(|&n| self.steps.threads[thread].steps[n].fails());
        self.listed.extend(failed.map(|n| (thread, n, None, Vec::new())));
        self.done[thread] = number + 1;
        self.listed.push((thread, number, None, flags));
    }

    fn event(&mut self, event: u64, is_changed: bool) {
        let known = self.steps.events.get(event as usize).copied().flatten();
        if let Some((thread, number)) = known {
            self.step(thread, number, if is_changed { vec![Flag::Terminal] } else { Vec::new() });
        }
    }

    /// Brings threads to these events at once, and then lets them happen.
    fn meet(&mut self, events: &[u64]) {
        let known = |&event: &u64| self.steps.events.get(event as usize).copied().flatten();
        let known: Vec<(usize, usize)> = events.iter().filter_map(known).collect();
        for &(thread, number) in &known {
            if let Some(before) = number.checked_sub(1) {
                self.step(thread, before, Vec::new());
            }
        }
        for (thread, number) in known {
            self.step(thread, number, vec![Flag::Terminal]);
        }
    }

    /// A thread asks for something that it does not get.
    fn request(&mut self, event: u64) {
        let (thread, number, tag, pc) = match self.steps.requests.get(&event) {
            Some(&request) => request,
            None => {
                let known = self.steps.events.get(event as usize).copied().flatten();
                let Some((thread, number)) = known else { return };
                let step = self.steps.threads[thread].steps[number];
                let tag = match Tag::from_code(step.tag) {
                    Some(Tag::Acquire | Tag::AcquireShared) => Tag::Request,
                    Some(Tag::Join) => Tag::RequestEnd,
                    Some(Tag::SemWait) => Tag::RequestSem,
                    _ => return,
                };
                (thread, number, tag as u8, step.pc)
            }
        };
        if let Some(before) = number.checked_sub(1) {
            self.step(thread, before, Vec::new());
        }
        self.listed.push((thread, number, Some((tag, pc)), Vec::new()));
    }

    fn violates(&mut self) {
        if let Some((.., flags)) = self.listed.last_mut() {
            flags.push(Flag::Violation);
        }
    }

    fn comment(&mut self, pc: u64) -> String {
        let (log, symbols) = (self.steps.log, self.steps.symbols);
        let text = || symbols.place(log.place(pc).address.wrapping_sub(1)).to_string();
        match pc {
            0 => String::new(),
            _ => self.comments.entry(pc).or_insert_with(text).clone(),
        }
    }

    fn finish(mut self) -> Schedule {
        let listed = std::mem::take(&mut self.listed);
        let threads = self.steps.threads.iter().map(|thread| ScheduleThread {
            parent: thread.parent,
            before: thread.before,
            name: self.steps.log.thread_name(thread.number),
        });
        let mut schedule = Schedule { threads: threads.collect(), ..Schedule::default() };
        let steps = self.steps;
        let known = steps.lines.get_or_init(|| {
            let all = steps.threads.iter().flat_map(|thread| &thread.steps);
            let all = all.map(|step| (step.pc, step.tag)).collect();
            moved::lines(&all, steps.log, steps.symbols)
        });
        let mut described = BTreeSet::new();
        for (thread, number, ..) in &listed {
            let Some(raw) = steps.threads[*thread].steps.get(*number) else { continue };
            if let (Place::Program(at), Some(line)) =
                (steps.place(raw.pc), known.get(&(raw.pc, raw.tag)))
                && described.insert((at, raw.tag))
            {
                schedule.lines.push((at, line.clone()));
            }
        }
        // Where each thread's previous stretch ended.
        let mut ended = vec![0; self.steps.threads.len()];
        for (i, (thread, number, made, flags)) in listed.iter().enumerate() {
            let (thread, number) = (*thread, *number);
            let steps = &self.steps.threads[thread].steps;
            let raw = steps.get(number);
            let (tag, pc) = made.unwrap_or_else(|| raw.map_or((0, 0), |raw| (raw.tag, raw.pc)));
            let is_last = listed.get(i + 1).is_none_or(|next| next.0 != thread);
            let fails = made.is_none() && raw.is_some_and(Raw::fails);
            let since = (is_last || fails).then(|| {
                let all = steps[ended[thread].min(number)..number].iter();
                let like =
                    all.filter(|step| step.pc == pc && counts(tag, step.tag)).count() as u64 + 1;
                ended[thread] = if made.is_some() { number } else { number + 1 };
                like
            });
            let mut flags = flags.clone();
            if made.is_none() && raw.is_some_and(|raw| raw.is_late) {
                flags.push(Flag::Timeout);
            }
            let value = if made.is_some() { None } else { raw.and_then(|raw| raw.value) };
            let comment = self.comment(pc);
            let place = self.steps.place(pc);
            let number = number as u64;
            schedule.steps.push(Step { thread, number, tag, place, value, since, flags, comment });
        }
        schedule
    }
}
