//! Programs that use the `foresee` crate: each recorder hands its trace over when it is dropped.

use foresee_formats::TraceFile;
use foresee_formats::recorded::Recorded;
use foresee_report::Parts;

use super::parts::Part;
use super::{Failed, Reports, Run};
use crate::output;

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
                Ok(path) => traces.push((recorded, path)),
                Err(why) => {
                    let Recorded { process, number, .. } = recorded;
                    let what = format!("{}: recording {number} of process {process}", self.name);
                    output::note(&format!("{what} is lost: {why}"));
                    told.note(3);
                }
            }
        }
        let open = |i: usize| {
            let (Recorded { process, number, .. }, path) = traces[i];
            let label = format!("recording {number} of process {process}");
            // It is called after the program, not after a file that is about to be removed.
            let trace = TraceFile::new(self.title(i, &label)).copied_to(path.clone());
            Ok(Part { label, process: *process, trace, notes: Vec::new() })
        };
        self.report_parts(traces.len(), open, Parts::Recordings, failed, told)
    }
}
