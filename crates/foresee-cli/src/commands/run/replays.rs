//! Schedules of predicted findings, and their confirmation in the program.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use foresee_capture::replay::{NotScheduled, Schedule, Steps};
use foresee_capture::store::LogTrace;
use foresee_predict::info::OBSERVED;
use foresee_trace::{Confirmation, Confirmed, Finding, FindingKind};

use super::{Run, under_signals};
use crate::output;
use crate::replayer::{self, Replayer};

/// The time limit of one attempt to confirm a finding.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Whether a finding has an order that can be replayed.
pub(super) fn is_replayable(finding: &Finding) -> bool {
    finding.kind == FindingKind::Predicted && finding.witness.is_some()
}

impl Run<'_> {
    /// Writes schedules and confirms findings, as far as that is asked. `process` is the number of the process among those
    /// that were captured, and `failed` how it failed.
    pub(super) fn replay(
        &self,
        trace: &LogTrace<'_>,
        process: usize,
        failed: Option<&str>,
        findings: &mut [Finding],
    ) -> anyhow::Result<()> {
        let args = self.args;
        if !args.confirm && args.schedules.is_none() {
            return Ok(());
        }
        if let Some(folder) = &args.schedules {
            let unusable = || format!("cannot make the folder {}", folder.display());
            std::fs::create_dir_all(folder).with_context(unusable)?;
        }
        let steps = match process {
            0 => Steps::of(trace),
            _ => Err(NotScheduled::Forked),
        };
        let steps = match steps {
            Ok(steps) => steps,
            Err(why) => {
                for finding in findings.iter_mut().filter(|finding| is_replayable(finding)) {
                    finding.confirmation = Some(not_forced(&why));
                }
                if process == 0 && args.schedules.is_some() {
                    output::note(&format!("no schedules were written: {why}"));
                }
                return Ok(());
            }
        };
        let complete = |schedule: &mut Schedule, finding: Option<&Finding>| {
            let command = &args.command;
            let checks = &args.analysis.check;
            replayer::complete(schedule, self.program, command, self.session, checks, finding);
            schedule.observed_end = failed.unwrap_or("").to_owned();
        };
        if let Some(folder) = &args.schedules {
            let mut observed = steps.observed();
            complete(&mut observed, None);
            self.write(folder, OBSERVED, &observed)?;
        }
        let replayer = Replayer {
            session: self.session,
            program: self.program,
            command: &args.command,
            trusted: &args.trust,
            memory: args.analysis.max_memory.saturating_mul(1 << 20),
            timeout: args.timeout.map_or(ATTEMPT, Duration::from_secs),
            is_silent: true,
            is_traced: false,
        };
        let deadline = Instant::now() + Duration::from_secs(args.confirm_time);
        for (i, finding) in findings.iter_mut().enumerate() {
            if !is_replayable(finding) {
                continue;
            }
            let Some(witness) = &finding.witness else { continue };
            let mut schedule = match steps.schedule(finding, witness) {
                Ok(schedule) => schedule,
                Err(why) => {
                    finding.confirmation = Some(not_forced(&why));
                    continue;
                }
            };
            complete(&mut schedule, Some(finding));
            finding.schedule = Some(schedule.to_string());
            if let Some(folder) = &args.schedules {
                self.write(folder, &(i + 1).to_string(), &schedule)?;
            }
            if !args.confirm {
                continue;
            }
            finding.confirmation = Some(if Instant::now() >= deadline {
                let how = format!("the {} seconds of --confirm-time were over", args.confirm_time);
                Confirmation { is: Confirmed::NotTried, how }
            } else {
                under_signals(|| replayer.replay(&schedule, Some(deadline)))?.label()
            });
        }
        Ok(())
    }

    /// Writes a schedule: `1.schedule` is that of the first finding, of the second run `1.run2.schedule`.
    fn write(&self, folder: &Path, name: &str, schedule: &Schedule) -> anyhow::Result<()> {
        let path = match self.number {
            1 => folder.join(format!("{name}.schedule")),
            run => folder.join(format!("{name}.run{run}.schedule")),
        };
        output::write_file(&path, &schedule.to_string())
    }
}

fn not_forced(why: &NotScheduled) -> Confirmation {
    Confirmation { is: Confirmed::NotForced, how: why.to_string() }
}
