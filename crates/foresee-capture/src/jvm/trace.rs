//! The log of a process as a trace, to be read as often as needed.

use std::sync::Arc;

use foresee_support::count::count;
use foresee_trace::{Batch, EventSource, FileOrder, Names, ReadError, TraceInput};

use super::JvmLog;
use super::events::{JvmSource, damaged};
use super::objects::Objects;
use crate::captured::{Captured, FirstPass};
use crate::private::Keep;
use crate::store::StoreError;

/// The approximate size of a variable in bytes in all tables that have an entry for it.
const VARIABLE: usize = 256;

/// The trace of a process.
pub struct JvmTrace<'l> {
    log: &'l JvmLog,
    objects: Arc<Objects>,
    title: String,
    captured: Captured,
    most: usize,
    /// Further notes about the trace.
    pub notes: Vec<String>,
}

impl<'l> JvmTrace<'l> {
    /// Reads the log once for what must be known beforehand: its names, and which variables only one thread uses.
    pub fn read(
        log: &'l JvmLog,
        title: String,
        keep: Keep,
        memory: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<JvmTrace<'l>, StoreError> {
        let objects = Arc::new(Objects::read(log).map_err(damaged)?);
        let most = (memory / 2 / VARIABLE).max(1);
        let mut source = JvmSource::new(log, &objects, most)?;
        source.compare();
        let mut pass = FirstPass::new(Batch::default());
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            progress(source.events);
            pass.see(&mut batch, source.names());
        }
        source.watched.iter().for_each(|&var| pass.owners.keep(var));
        let (events, left) = (source.events, source.left());
        let names = std::mem::take(source.names_mut());
        let mut remarks = source.remarks().clone();
        if left > 0 && remarks.cut_short.is_none() && left == log.dictionary.threads.len() {
            remarks.cut_short = Some("all its threads were cut off".to_owned());
        }
        let captured = pass.finish(names, remarks, keep)?;
        let java = &log.dictionary.java;
        let threads = count(log.dictionary.threads.len(), "thread");
        let note = format!("captured {} of {threads} (Java {java})", count(events, "event"));
        let mut notes = vec![note];
        if log.dictionary.has_locals {
            notes.push(
                "accesses of objects that only one thread could reach are left out".to_owned(),
            );
        }
        Ok(JvmTrace { log, objects, title, captured, most, notes })
    }
}

impl TraceInput for JvmTrace<'_> {
    fn name(&self) -> String {
        self.title.clone()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.captured.open(|| {
            let mut source = JvmSource::new(self.log, &self.objects, self.most)?;
            Ok(move |batch: &mut Batch| source.next_batch(batch))
        })
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        Ok(self.captured.names())
    }

    fn is_made_for_specs(&self) -> bool {
        true
    }
}
