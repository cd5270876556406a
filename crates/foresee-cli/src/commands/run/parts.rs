//! Processes that recorded themselves, and what is reported on all of them together.

use anyhow::Context;
use foresee_capture::failure;
use foresee_formats::{Native, copy};
use foresee_predict::info::PROGRAM_FAILURE;
use foresee_report::{Parts, Report};
use foresee_trace::TraceInput;

use super::{Failed, Reports, Run, numbered};
use crate::commands::check;

/// One of several traces of a run.
pub(super) struct Part<T> {
    /// What it is called beside the others.
    pub(super) label: String,
    pub(super) process: u32,
    pub(super) trace: T,
    /// What is to be known about it.
    pub(super) notes: Vec<String>,
}

const NO_REPLAY: &str = "no schedule was written and nothing was confirmed: only programs built with `foresee cc` or \
     `foresee c++` can follow a schedule";

pub(super) fn unusable(title: &str) -> String {
    format!("{title}: the log cannot be made a trace")
}

impl Run<'_> {
    /// What a trace is called in its report, by its number: the first has the name of the program.
    pub(super) fn title(&self, i: usize, label: &str) -> String {
        match i {
            0 => self.name.to_owned(),
            _ => format!("{} ({label})", self.name),
        }
    }

    /// Stores a trace in the native format if that was asked for: that of the second process as `trace.2.fse`.
    pub(super) fn keep(&self, i: usize, trace: &dyn TraceInput) -> anyhow::Result<()> {
        let Some(path) = &self.args.keep else { return Ok(()) };
        let of_run = if self.number == 1 { path } else { &self.numbered(path) };
        let number = (i + 1).to_string();
        let path = if i == 0 { of_run } else { &numbered(of_run, &number) };
        let unusable = || unusable(&trace.name());
        let mut source = trace.open().with_context(unusable)?;
        copy(&mut *source, path, &Native).with_context(unusable)
    }

    /// Reports on traces, which `open` opens by number; returns the failure if none of them is of the process that failed.
    pub(super) fn report_parts<'f, T: TraceInput>(
        &self,
        count: usize,
        open: impl Fn(usize) -> anyhow::Result<Part<T>>,
        of: Parts,
        mut failed: Option<Failed<'f>>,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<Option<Failed<'f>>> {
        let Run { args, session, name, .. } = *self;
        let mut parts = Vec::new();
        for i in 0..count {
            let Part { label, process, trace, notes } = open(i)?;
            self.keep(i, &trace)?;
            if let Some(to) = &args.to {
                self.publish(to, None, &trace, told)?;
                continue;
            }
            let mut examined = told.time.examine(count - i, session, &trace)?;
            let is_last = i + 1 == count;
            let is_it = |failed: &mut Failed<'_>| failed.ended.process == process || is_last;
            if let Some(failed) = failed.take_if(is_it) {
                let what = (name, failed.how);
                let finding = failure::finding(PROGRAM_FAILURE, what, failed.ended, None);
                examined.report.put_first(vec![finding]);
            }
            let warnings = &mut examined.report.remarks.warnings;
            warnings.splice(0..0, notes);
            if args.confirm || args.schedules.is_some() {
                warnings.push(NO_REPLAY.to_owned());
            }
            let tests = check::tests(&trace, &examined)?;
            if args.runs == 1 && count == 1 {
                let status = check::tell(&args.analysis, examined, &tests, &mut told.to)?;
                told.note(status);
                return Ok(failed);
            }
            parts.push((label, Report::of(examined, &tests)));
        }
        if let Some(mut merged) = foresee_report::merge(parts, of) {
            if count > 1 {
                merged.name = format!("{name} ({count} {})", of.words()[1]);
            }
            told.put(self.recording.seed, merged)?;
        }
        Ok(failed)
    }
}
