//! Programs that use the `foresee` crate: each recorder hands its trace over when it is dropped.

use foresee_formats::TraceFile;
use foresee_formats::recorded::Recorded;
use foresee_report::Parts;
use foresee_trace::{EventSource, ReadError, TraceInput};

use super::parts::Part;
use super::{Failed, Reports, Run};
use crate::output;

/// A recording, under the name of the program that made it.
struct Recording<'r> {
    file: &'r TraceFile,
    title: String,
}

impl TraceInput for Recording<'_> {
    fn name(&self) -> String {
        self.title.clone()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        TraceInput::open(self.file)
    }
}

impl Run<'_> {
    /// Reports on every recording of the program; returns the failure if none of them is of the process that failed.
    pub(super) fn report_recorded<'f>(
        &self,
        found: &[Recorded],
        failed: Option<Failed<'f>>,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<Option<Failed<'f>>> {
        let mut traces = Vec::new();
        for recorded in found {
            match &recorded.trace {
                Ok(file) => traces.push((recorded, file)),
                Err(why) => {
                    let Recorded { process, number, .. } = recorded;
                    let what = format!("{}: recording {number} of process {process}", self.name);
                    output::note(&format!("{what} is lost: {why}"));
                    told.note(3);
                }
            }
        }
        let open = |i: usize| {
            let (recorded, file) = traces[i];
            let label = format!("recording {} of process {}", recorded.number, recorded.process);
            let title = match i {
                0 => self.name.to_owned(),
                _ => format!("{} ({label})", self.name),
            };
            let trace = Recording { file, title };
            Ok(Part { label, process: recorded.process, trace, notes: Vec::new() })
        };
        self.report_parts(traces.len(), open, Parts::Recordings, failed, told)
    }
}
