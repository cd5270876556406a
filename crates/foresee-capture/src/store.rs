//! Converts the log of a process to a trace with names.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::sync::Arc;

use foresee_trace::{
    Batch, ErrorKind, Event, EventSource, FieldName, FileOrder, Names, Op, Position, ReadError,
    Remarks, ThreadId, TooManyNames, TraceInput,
};

use crate::captured::{Captured, FirstPass};
use crate::log::{Log, LogError, LogSource, Prior, Stats};
use crate::naming::Naming;
use crate::objects::Objects;
use crate::summary::Summary;
use crate::symbols::{Symbols, Tags, Variable};

pub use crate::private::Keep;

/// Why a log was not converted.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log is invalid.
    #[error(transparent)]
    Read(#[from] ReadError),
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
    /// Types of objects that specifications are about, as they name them.
    pub object_types: &'l [String],
    /// Libraries that may be without hooks; see [`Summary::new`].
    pub trusted: &'l [String],
    /// The accesses that are kept.
    pub keep: Keep,
    /// The approximate memory limit in bytes. The trace ends where more would be needed, with a warning.
    pub memory: usize,
}

/// The log of a process as a trace with names, to be read as often as needed.
pub struct LogTrace<'l> {
    conversion: LogConversion<'l>,
    title: String,
    /// What later passes over the log need.
    prior: Prior,
    objects: Arc<Objects>,
    captured: Captured,
    /// Further notes about the trace.
    pub notes: Vec<String>,
}

/// The result of one pass over a log.
struct Learnt {
    names: Names,
    remarks: Remarks,
    stats: Stats,
    pass: FirstPass,
    prior: Prior,
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
        let (objects, doubts) = self.objects()?;
        let mut learnt = self.learn(None, &objects, progress)?;
        if !learnt.prior.plan.is_empty() {
            learnt = self.learn(Some(learnt.prior), &objects, progress)?;
        }
        let Learnt { names, mut remarks, stats, mut pass, prior } = learnt;
        let summary = Summary::new(self.log, self.symbols, self.trusted);
        if let Some(reason) = summary.partial() {
            remarks.add_partial(&reason);
        }
        doubts.iter().for_each(|doubt| remarks.add_partial(doubt));
        let mut notes = vec![summary.line(self.log, &stats)];
        for name in &summary.nameless {
            notes
                .push(format!("{name} has no debugging information: places and types are unknown"));
        }
        notes.append(&mut remarks.warnings);
        for (name, _) in self.spec_vars {
            names.vars.lookup(name).into_iter().for_each(|var| pass.owners.keep(var));
        }
        if !self.object_types.is_empty() {
            let is_asked = |field: &FieldName<'_>| {
                self.object_types.iter().any(|meant| FieldName::is_named(field.of, meant))
            };
            let is_field = |name: &str| FieldName::all(name).iter().any(is_asked);
            let fields = names.vars.iter().filter(|(_, name)| is_field(name));
            fields.for_each(|(var, _)| pass.owners.keep(var));
        }
        let keep = if self.leaves_private_out() { self.keep } else { Keep::Everything };
        let mut captured = pass.finish(names, remarks, keep)?;
        if keep == Keep::Unsettled {
            captured.leave_out_unnoticed();
        }
        Ok(LogTrace { conversion: self, title, prior, objects, captured, notes })
    }

    /// Reads the log for the objects that specifications are about, and for what is not known of them.
    fn objects(&self) -> Result<(Arc<Objects>, Vec<String>), StoreError> {
        let mut doubts = Vec::new();
        if self.object_types.is_empty() {
            return Ok((Arc::default(), doubts));
        }
        let tags = Tags::new(self.object_types);
        let mut source = self.log.source_after(self.naming(Arc::default()).watching(), None)?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {}
        let mut objects = Objects::new(
            self.symbols,
            source.naming().take_collected(),
            |content| self.symbols.has_tagged(content, tags),
            &mut |doubt| doubts.push(doubt),
        );
        objects.idle = self.idle(source.names());
        Ok((Arc::new(objects), doubts))
    }

    /// The fields of objects of which the run touches none. What a specification names by itself is not among them.
    fn idle(&self, touched: &Names) -> HashSet<String> {
        let mut times: HashMap<&str, u32> = HashMap::new();
        let mut busy: HashSet<&str> = HashSet::new();
        for (name, _) in self.spec_vars {
            *times.entry(name).or_default() += 1;
            if touched.vars.lookup(name).is_some() {
                busy.extend(FieldName::all(name).iter().map(|field| field.object));
            }
        }
        let is_idle = |name: &&str| {
            let fields = FieldName::all(name);
            !fields.is_empty() && !fields.iter().any(|field| busy.contains(field.object))
        };
        let once = times.into_iter().filter(|&(_, times)| times == 1).map(|(name, _)| name);
        once.filter(is_idle).map(str::to_owned).collect()
    }

    fn naming(&self, objects: Arc<Objects>) -> Naming<'l> {
        Naming::new(self.symbols, self.spec_vars, self.object_types, objects)
    }

    fn learn(
        &self,
        prior: Option<Prior>,
        objects: &Arc<Objects>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Learnt, StoreError> {
        let mut source = self.source(prior.clone(), objects)?;
        let mut batch = Batch::default();
        let (mut has_more, mut events) = (source.next_batch(&mut batch)?, 0);
        // Even a process that did nothing had variables.
        let mut pass = FirstPass::new(self.initial_values(objects, source.names_mut(), &batch)?);
        while has_more {
            events += batch.events.len() as u64;
            progress(events);
            pass.see(&mut batch, source.names());
            has_more = source.next_batch(&mut batch)?;
        }
        let prior = prior.unwrap_or_else(|| source.learnt(|var| pass.owners.is_shared(var)));
        let (stats, remarks) = (source.stats(), source.remarks().clone());
        Ok(Learnt { names: take(source.names_mut()), remarks, stats, pass, prior })
    }

    /// Reads the log. Every reading after the same first pass yields the same events and names.
    fn source(
        &self,
        prior: Option<Prior>,
        objects: &Arc<Objects>,
    ) -> Result<LogSource<'l, Naming<'l>>, LogError> {
        let source = self.log.source_after(self.naming(Arc::clone(objects)), prior)?;
        // Names are copied when private variables are left out.
        let source = source.within(self.memory / 2);
        // Where objects are is not known before.
        if !self.leaves_private_out() || !self.object_types.is_empty() {
            return Ok(source);
        }
        let ends = |variable: &Variable| variable.address.saturating_add(variable.scalar.size);
        let wanted = self.spec_vars.iter().map(|(_, variable)| (variable.address, ends(variable)));
        Ok(source.briefly(wanted))
    }

    fn leaves_private_out(&self) -> bool {
        self.keep != Keep::Everything && !self.log.header.filtered
    }

    /// The initial values of the specifications' variables, as the first events.
    fn initial_values(
        &self,
        objects: &Objects,
        names: &mut Names,
        batch: &Batch,
    ) -> Result<Batch, TooManyNames> {
        let mut first = Batch::default();
        // They are not steps of any thread, but every event needs one.
        let thread = match batch.events.first() {
            Some(event) => event.thread(),
            None if self.spec_vars.is_empty() => ThreadId(0),
            None => names.thread("main")?,
        };
        let mut seen = HashSet::new();
        for (name, variable) in self.spec_vars {
            // Another spelling of the same variable.
            if seen.contains(&variable.address) || objects.idle.contains(name) {
                continue;
            }
            seen.insert(variable.address);
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
    /// Adds a reason why the trace is incomplete.
    pub fn add_partial(&mut self, reason: &str) {
        self.captured.add_partial(reason);
    }

    /// The position in the log of the record behind each event of the trace; `None` if the event is no step of its thread.
    pub(crate) fn positions(&self) -> Result<Vec<Option<u64>>, StoreError> {
        let mut source = self.conversion.source(Some(self.prior.clone()), &self.objects)?;
        let mut batch = Batch::default();
        let mut has_more = source.next_batch(&mut batch)?;
        let initial = self.conversion.initial_values(&self.objects, source.names_mut(), &batch)?;
        let mut kept = vec![None; initial.events.len()];
        let mut is_kept = self.captured.keeping(initial.events.len());
        while has_more {
            for (i, event) in batch.events.iter().enumerate() {
                if is_kept(event, &batch.pool) {
                    kept.push(match source.position(i) {
                        Position::Byte(at) => Some(at),
                        _ => None,
                    });
                }
            }
            has_more = source.next_batch(&mut batch)?;
        }
        Ok(kept)
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log {
        self.conversion.log
    }

    /// The names of its process.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.conversion.symbols
    }
}

impl TraceInput for LogTrace<'_> {
    fn name(&self) -> String {
        self.title.clone()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.captured.open(|| {
            let failed = |kind: ErrorKind, error: &dyn std::error::Error| {
                ReadError::new(kind, Position::Unknown, error.to_string())
            };
            let mut source = self
                .conversion
                .source(Some(self.prior.clone()), &self.objects)
                .map_err(|error| failed(ErrorKind::Syntax, &error))?;
            // The first events of the log come after the initial values.
            let mut first = Batch::default();
            let has_events = source.next_batch(&mut first)?;
            let initial = self
                .conversion
                .initial_values(&self.objects, source.names_mut(), &first)
                .map_err(|error| failed(ErrorKind::Limit, &error))?;
            let mut first = [Some(initial), has_events.then_some(first)].into_iter().flatten();
            Ok(move |batch: &mut Batch| match first.next() {
                Some(next) => {
                    *batch = next;
                    Ok(true)
                }
                None => source.next_batch(batch),
            })
        })
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        Ok(self.captured.names())
    }

    fn is_made_for_specs(&self) -> bool {
        true
    }
}
