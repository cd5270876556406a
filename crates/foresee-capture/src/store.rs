//! Converts the log of a process to a trace with names, in a file.

use std::io;
use std::path::{Path, PathBuf};

use foresee_formats::{Output, create};
use foresee_trace::{
    Batch, Event, EventSink, EventSource, Names, Op, ReadError, Remarks, ThreadId, TooManyNames,
};

use crate::log::{Log, LogError, Plan};
use crate::naming::Naming;
use crate::private::Owners;
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
pub struct Told<'l> {
    /// The log.
    pub log: &'l Log,
    /// The names of its process; see [`crate::naming::symbols_of`].
    pub symbols: &'l Symbols,
    /// Variables of specifications, with their names there.
    pub spelt: &'l [(String, Variable)],
    /// Libraries that may be without hooks; see [`Summary::new`].
    pub trusted: &'l [String],
    /// Whether variables that only one thread accesses are kept.
    pub keeps_private: bool,
    /// How many bytes may be taken, about. The trace ends where more would be needed, and says so.
    pub memory: usize,
}

impl Told<'_> {
    /// Writes the trace to `path`, in the native format. `scratch` is a directory for temporary
    /// files; `progress` is called with the number of events so far. Returns notes about the trace.
    pub fn store(
        &self,
        path: &Path,
        scratch: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<String>, StoreError> {
        if self.keeps_private || self.log.header.filtered {
            return Ok(self.write(path, progress)?.notes);
        }
        // Everything is named once, and then copied without what turns out to be private.
        let all = scratch.join("everything.fse");
        let written = self.write(&all, progress)?;
        let Written { notes, names, remarks, mut owners } = written;
        for (name, _) in self.spelt {
            names.vars.lookup(name).into_iter().for_each(|var| owners.keep(var));
        }
        let shared = owners.shared(&names)?;
        let mut source = foresee_formats::open(&all, None)?.source;
        let mut sink = Sink::create(path)?;
        sink.begin(&remarks)?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            match &shared {
                None => sink.write(&batch, &names)?,
                Some(shared) => {
                    shared.narrow(&mut batch);
                    sink.write(&batch, &shared.names)?;
                }
            }
        }
        sink.finish(shared.as_ref().map_or(&names, |shared| &shared.names), &remarks)?;
        // Its directory is removed anyway.
        let _ = std::fs::remove_file(&all);
        Ok(notes)
    }

    fn write(&self, path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Written, StoreError> {
        self.write_by(None, path, progress)
    }

    /// Writes the whole log. Only then is it known where order must be kept because of unseen
    /// writes: if there are any, it is written again according to a `plan`.
    fn write_by(
        &self,
        plan: Option<Plan>,
        path: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Written, StoreError> {
        let is_planned = plan.is_some();
        let mut source = self.log.planned(Naming::new(self.symbols, self.spelt), plan)?;
        // Names are copied when what is private is left out.
        source = source.within(self.memory / 2);
        if !self.keeps_private && !self.log.header.filtered {
            let ends = |variable: &Variable| variable.address.saturating_add(variable.scalar.size);
            let wanted = self.spelt.iter().map(|(_, variable)| (variable.address, ends(variable)));
            source = source.briefly(wanted);
        }
        let mut sink = Sink::create(path)?;
        sink.begin(source.remarks())?;
        let mut owners = Owners::default();
        let mut batch = Batch::default();
        let (mut has_more, mut events) = (source.next_batch(&mut batch)?, 0);
        // Even a process that did nothing had variables.
        let first = self.initial_values(source.names_mut(), &batch)?;
        sink.write(&first, source.names())?;
        while has_more {
            owners.see(&batch, source.names());
            sink.write(&batch, source.names())?;
            events += batch.events.len() as u64;
            progress(events);
            has_more = source.next_batch(&mut batch)?;
        }
        if !is_planned && let Some(plan) = source.plan(|var| owners.is_shared(var)) {
            return self.write_by(Some(plan), path, progress);
        }
        let summary = Summary::new(self.log, self.symbols, self.trusted);
        let mut remarks = source.remarks().clone();
        if let Some(reason) = summary.partial() {
            remarks.add_partial(&reason);
        }
        sink.finish(source.names(), &remarks)?;
        let mut notes = vec![summary.line(self.log, &source.stats())];
        for name in &summary.nameless {
            notes
                .push(format!("{name} has no debugging information: places and types are unknown"));
        }
        notes.append(&mut remarks.warnings);
        Ok(Written { notes, names: std::mem::take(source.names_mut()), remarks, owners })
    }

    /// The initial values of the specifications' variables, as the first events.
    fn initial_values(&self, names: &mut Names, batch: &Batch) -> Result<Batch, TooManyNames> {
        let mut first = Batch::default();
        // They are not steps of any thread, but every event needs one.
        let thread = match batch.events.first() {
            Some(event) => event.thread(),
            None if self.spelt.is_empty() => ThreadId(0),
            None => names.thread("main")?,
        };
        let mut seen = Vec::new();
        for (name, variable) in self.spelt {
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

/// A written trace, and what was learnt along the way.
struct Written {
    notes: Vec<String>,
    names: Names,
    remarks: Remarks,
    owners: Owners,
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
