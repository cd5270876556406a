//! Converts the log of a process to a trace with names.

use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

use foresee_formats::{Output, create};
use foresee_trace::{
    Batch, ErrorKind, Event, EventSink, EventSource, FileOrder, Names, Op, Position, ReadError,
    Remarks, ThreadId, TooManyNames, Trace, TraceInput,
};

use crate::log::{Log, LogError, LogSource, Plan, Stats};
use crate::naming::Naming;
use crate::private::{Owners, Shared};
use crate::summary::Summary;
use crate::symbols::{Symbols, Variable};

/// Why a log was not converted.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log is invalid.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, #[source] io::Error),
    /// The program has too many names.
    #[error(transparent)]
    Names(#[from] TooManyNames),
}

/// The conversion of a log to a trace.
pub struct LogConversion<'l> {
    /// The log.
    pub log: &'l Log,
    /// The names of its process; see [`crate::naming::symbols_of`].
    pub symbols: &'l Symbols,
    /// Variables of specifications, with their names there.
    pub spec_vars: &'l [(String, Variable)],
    /// Libraries that may be without hooks; see [`Summary::new`].
    pub trusted: &'l [String],
    /// Whether variables that only one thread accesses are kept.
    pub keeps_private: bool,
    /// The approximate memory limit in bytes. The trace ends where more would be needed, with a warning.
    pub memory: usize,
}

/// The maximum number of events kept in memory when a log is first read, so that it is read only once.
const KEPT_EVENTS: usize = 4 << 20;

/// The log of a process as a trace with names, to be read as often as needed.
pub struct LogTrace<'l> {
    conversion: LogConversion<'l>,
    title: String,
    /// How order is kept for the sake of writes that no hook saw.
    plan: Option<Plan>,
    /// What remains without private variables, if anything is left out.
    shared: Option<Shared>,
    /// The names, before anything is left out.
    names: Names,
    remarks: Remarks,
    /// The trace, if it is short.
    trace: Option<Trace>,
    /// Further notes about the trace.
    pub notes: Vec<String>,
}

/// The result of one pass over a log.
struct Learnt {
    names: Names,
    remarks: Remarks,
    stats: Stats,
    owners: Owners,
    plan: Option<Plan>,
    trace: Option<Trace>,
}

impl<'l> LogConversion<'l> {
    /// Reads the log once for what must be known before its conversion: its names, and which
    /// variables are private to a thread. Only then is it known where order must be kept because
    /// of writes that no hook saw: if there are any, the log is read again. `title` is the name of
    /// the trace; `progress` gets the number of events so far.
    pub fn read(
        self,
        title: String,
        progress: &mut dyn FnMut(u64),
    ) -> Result<LogTrace<'l>, StoreError> {
        let mut plan = None;
        let mut learnt = self.learn(None, progress)?;
        if let Some(found) = learnt.plan.take() {
            learnt = self.learn(Some(found.clone()), progress)?;
            plan = Some(found);
        }
        let Learnt { names, mut remarks, stats, mut owners, mut trace, .. } = learnt;
        let summary = Summary::new(self.log, self.symbols, self.trusted);
        if let Some(reason) = summary.partial() {
            remarks.add_partial(&reason);
        }
        let mut notes = vec![summary.line(self.log, &stats)];
        for name in &summary.nameless {
            notes
                .push(format!("{name} has no debugging information: places and types are unknown"));
        }
        notes.append(&mut remarks.warnings);
        let mut shared = None;
        if self.leaves_private_out() {
            for (name, _) in self.spec_vars {
                names.vars.lookup(name).into_iter().for_each(|var| owners.keep(var));
            }
            shared = owners.shared(&names)?;
        }
        if let Some(trace) = &mut trace {
            let (events, pool) = (take(&mut trace.events), take(&mut trace.pool));
            let mut batch = Batch { events, pool };
            trace.names = match &shared {
                None => names.clone(),
                Some(shared) => {
                    shared.narrow(&mut batch);
                    shared.names.clone()
                }
            };
            (trace.events, trace.pool) = (batch.events, batch.pool);
            trace.remarks = remarks.clone();
        }
        Ok(LogTrace { conversion: self, title, plan, shared, names, remarks, trace, notes })
    }

    fn learn(
        &self,
        plan: Option<Plan>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Learnt, StoreError> {
        let is_planned = plan.is_some();
        let mut source = self.source(plan)?;
        let mut owners = Owners::default();
        let mut batch = Batch::default();
        let (mut has_more, mut events) = (source.next_batch(&mut batch)?, 0);
        // Even a process that did nothing had variables.
        let mut first = self.initial_values(source.names_mut(), &batch)?;
        let mut trace = Trace::default();
        trace.push_batch(&mut first);
        let mut trace = Some(trace);
        while has_more {
            owners.see(&batch, source.names());
            events += batch.events.len() as u64;
            progress(events);
            trace = trace.filter(|trace| trace.events.len() + batch.events.len() <= KEPT_EVENTS);
            if let Some(trace) = &mut trace {
                trace.push_batch(&mut batch);
            }
            has_more = source.next_batch(&mut batch)?;
        }
        let plan = if is_planned { None } else { source.plan(|var| owners.is_shared(var)) };
        let (stats, remarks) = (source.stats(), source.remarks().clone());
        Ok(Learnt { names: take(source.names_mut()), remarks, stats, owners, plan, trace })
    }

    /// Reads the log. Every reading with the same plan yields the same events and names.
    fn source(&self, plan: Option<Plan>) -> Result<LogSource<'l, Naming<'l>>, LogError> {
        let source = self.log.planned(Naming::new(self.symbols, self.spec_vars), plan)?;
        // Names are copied when private variables are left out.
        let source = source.within(self.memory / 2);
        if !self.leaves_private_out() {
            return Ok(source);
        }
        let ends = |variable: &Variable| variable.address.saturating_add(variable.scalar.size);
        let wanted = self.spec_vars.iter().map(|(_, variable)| (variable.address, ends(variable)));
        Ok(source.briefly(wanted))
    }

    fn leaves_private_out(&self) -> bool {
        !self.keeps_private && !self.log.header.filtered
    }

    /// The initial values of the specifications' variables, as the first events.
    fn initial_values(&self, names: &mut Names, batch: &Batch) -> Result<Batch, TooManyNames> {
        let mut first = Batch::default();
        // They are not steps of any thread, but every event needs one.
        let thread = match batch.events.first() {
            Some(event) => event.thread(),
            None if self.spec_vars.is_empty() => ThreadId(0),
            None => names.thread("main")?,
        };
        let mut seen = Vec::new();
        for (name, variable) in self.spec_vars {
            // Another spelling of the same variable.
            if seen.contains(&variable.address) {
                continue;
            }
            seen.push(variable.address);
            let bits = self.symbols.initial(variable.address, variable.scalar.size);
            let Some(value) = bits.and_then(|bits| variable.scalar.value(bits)) else { continue };
            let var = names.vars.intern(name)?;
            let init = Event::new(thread, Op::Init).with_target(var.0);
            first.events.push(init.with_values(&[value], &mut first.pool));
        }
        Ok(first)
    }
}

impl LogTrace<'_> {
    /// Writes the trace to a file, in the native format.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let mut sink = Sink::create(path)?;
        sink.begin(&self.remarks)?;
        let mut source = self.open()?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            sink.write(&batch, source.names())?;
        }
        sink.finish(source.names(), &self.remarks)
    }

    fn all_names(&self) -> &Names {
        self.shared.as_ref().map_or(&self.names, |shared| &shared.names)
    }
}

impl TraceInput for LogTrace<'_> {
    fn name(&self) -> String {
        self.title.clone()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        if let Some(trace) = &self.trace {
            return Ok(Box::new(trace.source()));
        }
        let damaged = |error: LogError| {
            ReadError::new(ErrorKind::Syntax, Position::Unknown, error.to_string())
        };
        let source = self.conversion.source(self.plan.clone()).map_err(damaged)?;
        Ok(Box::new(Stream { trace: self, source, held: None, has_begun: false, names: None }))
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        Ok((self.all_names().clone(), self.remarks.order))
    }

    fn is_made_for_specs(&self) -> bool {
        true
    }
}

/// The events of a long log, read once more.
struct Stream<'l> {
    trace: &'l LogTrace<'l>,
    source: LogSource<'l, Naming<'l>>,
    /// The first events of the log, which come after the initial values.
    held: Option<Batch>,
    has_begun: bool,
    /// Present once a caller has asked to add names.
    names: Option<Names>,
}

impl Stream<'_> {
    /// The next events, before anything is left out.
    fn next_of_log(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            let mut held = Batch::default();
            let has_more = self.source.next_batch(&mut held)?;
            let first = self.trace.conversion.initial_values(self.source.names_mut(), &held);
            *batch = first.map_err(|error| {
                ReadError::new(ErrorKind::Limit, Position::Unknown, error.to_string())
            })?;
            self.held = has_more.then_some(held);
            return Ok(true);
        }
        if let Some(held) = self.held.take() {
            *batch = held;
            return Ok(true);
        }
        self.source.next_batch(batch)
    }
}

impl EventSource for Stream<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        while self.next_of_log(batch)? {
            if let Some(shared) = &self.trace.shared {
                shared.narrow(batch);
            }
            if !batch.events.is_empty() {
                return Ok(true);
            }
        }
        batch.clear();
        Ok(false)
    }

    fn names(&self) -> &Names {
        self.names.as_ref().unwrap_or_else(|| self.trace.all_names())
    }

    fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_with(|| self.trace.all_names().clone())
    }

    fn position(&self, _: usize) -> Position {
        Position::Unknown
    }

    fn remarks(&self) -> &Remarks {
        &self.trace.remarks
    }
}

/// A trace file that is named in its errors.
struct Sink<'p> {
    path: &'p Path,
    output: Output,
}

impl<'p> Sink<'p> {
    fn create(path: &'p Path) -> Result<Sink<'p>, StoreError> {
        let failed = |error| StoreError::Write(path.to_owned(), error);
        let output = create(path, &foresee_formats::Native).map_err(failed)?;
        Ok(Sink { path, output })
    }

    fn begin(&mut self, remarks: &Remarks) -> Result<(), StoreError> {
        self.output.begin(remarks).map_err(|error| self.failed(error))
    }

    fn write(&mut self, batch: &Batch, names: &Names) -> Result<(), StoreError> {
        self.output.write_batch(batch, names).map_err(|error| self.failed(error))
    }

    fn finish(&mut self, names: &Names, remarks: &Remarks) -> Result<(), StoreError> {
        self.output.finish(names, remarks).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::Write(self.path.to_owned(), error)
    }
}
