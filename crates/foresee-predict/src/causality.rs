//! How much of the observed order could have been different.
//!
//! Prediction is about runs other than the observed one. One pass with constant memory decides
//! whether there are any: two neighbouring steps of the file that are unordered could have happened
//! the other way round, and if every step is ordered before its neighbour the whole order is
//! forced, because orders are transitive.

use foresee_causality::{Clocks, Epoch, Order};
use foresee_trace::{Flow, Outcome};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Pass, Stat};
use crate::info::CAUSALITY;

/// Counts the neighbouring steps that could have swapped.
///
/// # Guarantees
/// Exact for the Mazurkiewicz order, in memory that depends on the number of threads, variables
/// and locks alone.
#[derive(Debug)]
pub struct Concurrency {
    clocks: Clocks,
    previous: Option<Epoch>,
    steps: u64,
    switches: u64,
    free: u64,
    first_free: Option<u64>,
    handovers: u64,
}

impl Concurrency {
    /// Before the first event.
    pub fn new() -> Self {
        Concurrency {
            clocks: Clocks::new(Order::Mazurkiewicz),
            previous: None,
            steps: 0,
            switches: 0,
            free: 0,
            first_free: None,
            handovers: 0,
        }
    }

    fn statement(&self) -> String {
        match (self.steps, self.first_free) {
            (0, _) => "the trace is empty: there is nothing to reorder".to_owned(),
            (_, None) => "every step had to come after the one before it: no other run has this \
                          causality, so whatever holds of the observed run holds of all"
                .to_owned(),
            (_, Some(first)) => format!(
                "{} of {} neighbouring steps of different threads could have swapped, the first \
                 at event {first}: other runs with this causality exist, and a property that \
                 held in the observed one may fail in them",
                self.free, self.switches
            ),
        }
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Concurrency::new()
    }
}

impl Analysis for Concurrency {
    fn name(&self) -> &'static str {
        CAUSALITY
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        for (i, event) in batch.events.iter().enumerate() {
            if !Order::is_step(event) {
                continue;
            }
            let stamp = self.clocks.event(event)?;
            self.steps += 1;
            self.handovers += self.clocks.causes().len() as u64;
            if let Some(previous) = self.previous.filter(|p| p.thread != stamp.thread) {
                self.switches += 1;
                if !self.clocks.knows(&stamp, previous) {
                    self.free += 1;
                    self.first_free.get_or_insert(first + i as u64);
                }
            }
            self.previous = Some(stamp.epoch());
        }
        self.clocks.forget_old(&[]);
        Ok(Flow::Continue)
    }

    fn bytes(&self) -> usize {
        self.clocks.bytes()
    }

    fn finish(&mut self, _: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        Ok(vec![Analysed {
            name: CAUSALITY,
            property: None,
            outcome: if self.steps == 0 { Outcome::NothingRelevant } else { Outcome::Exhausted },
            conclusion: Conclusion::Other,
            statement: self.statement(),
            notes: Vec::new(),
            stats: vec![
                ("steps", Stat::Count(self.steps)),
                ("switches", Stat::Count(self.switches)),
                ("free_switches", Stat::Count(self.free)),
                ("handovers", Stat::Count(self.handovers)),
            ],
        }])
    }
}
