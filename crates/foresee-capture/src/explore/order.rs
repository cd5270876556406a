//! The order of a run as a schedule that `foresee replay` takes.

use foresee_explore::program::{Ending, Execution, RunError, Schedule};

use super::{Native, names};
use crate::log::Log;
use crate::naming::symbols_of;
use crate::private::Keep;
use crate::replay::{self, Steps};
use crate::store::LogConversion;

/// The memory for the conversion of one run's log.
const MEMORY: usize = 1 << 30;

impl Native {
    /// Runs the program once more under a schedule, and returns its order of steps. For a deadlock, the last steps are those at
    /// which threads must block. What the order shows and what it is an order of, the caller adds.
    ///
    /// # Errors
    /// If the program cannot be run, does not follow the schedule, or its log cannot be read.
    pub fn order(
        &mut self,
        schedule: &Schedule,
    ) -> Result<(replay::Schedule, Execution), RunError> {
        let out = self.run_and_keep(schedule).and_then(|execution| {
            if let Some((step, why)) = &execution.diverged {
                return Err(RunError(format!(
                    "step {step} of the schedule was not possible: {why}"
                )));
            }
            let order = self.order_of_log(execution.ending == Ending::Deadlock)?;
            Ok((order, execution))
        });
        names::clear(&self.logs());
        out
    }

    fn order_of_log(&self, is_stuck: bool) -> Result<replay::Schedule, RunError> {
        let failed = |why: &dyn std::fmt::Display| {
            RunError(format!("the log of a run cannot be read: {why}"))
        };
        let tails = crate::log::find(&self.logs()).map_err(|why| failed(&why))?;
        let Some(tail) = tails.first() else { return Err(failed(&"there is none")) };
        let log = Log::open(tail).map_err(|why| failed(&why))?;
        let symbols = symbols_of(&log);
        let conversion = LogConversion {
            log: &log,
            symbols: &symbols,
            spec_vars: &[],
            object_types: &[],
            trusted: &[],
            keep: Keep::Everything,
            memory: MEMORY,
        };
        let trace = conversion.read(String::new(), &mut |_| {}).map_err(|why| failed(&why))?;
        let steps = Steps::of(&trace).map_err(|why| failed(&why))?;
        Ok(if is_stuck { steps.observed_to_requests() } else { steps.observed() })
    }
}
