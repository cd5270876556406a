//! Statistics and statement for the lattices of one property.

use foresee_spec::observe::EvalWarnings;
use foresee_trace::Outcome;
use serde::{Deserialize, Serialize};

use super::explore::Searched;
use super::level::Count;
use super::predict::{Prediction, ViolatingRuns};
use crate::analysis::{Analysed, Conclusion, Stat};
use crate::candidates::MAX_CANDIDATES;
use crate::info::LATTICE;

/// What the search of one lattice came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatticeVerdict {
    pub(super) steps: u64,
    /// The problems with values.
    pub(super) troubles: EvalWarnings,
    /// `None` if the observed run fails already, so that there is nothing to predict.
    pub(super) found: Option<Found>,
}

/// How large a lattice is, or several of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    /// The level from which on it is larger than what was searched.
    pub(super) first_cut_off: Option<usize>,
    pub(super) cuts: u64,
    pub(super) levels: u64,
    pub(super) widest: u64,
    pub(super) widest_bytes: u64,
    /// How many runs there are in the latest one.
    pub(super) runs: Option<Count>,
    /// How many of them violate the property.
    pub(super) violating: Option<String>,
}

impl Size {
    fn add(&mut self, other: &Size) {
        self.first_cut_off = self.first_cut_off.or(other.first_cut_off);
        self.cuts += other.cuts;
        self.levels = self.levels.max(other.levels);
        self.widest = self.widest.max(other.widest);
        self.widest_bytes = self.widest_bytes.max(other.widest_bytes);
        self.runs.clone_from(&other.runs);
        self.violating = other.violating.clone().or(self.violating.take());
    }
}

/// What was found in a lattice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    pub(super) outcome: Outcome,
    pub(super) size: Size,
    pub(super) is_violated: bool,
    /// The runs that show it, if they were looked for and could be.
    pub(super) shown: Option<ViolatingRuns>,
}

impl Found {
    pub(super) fn new(found: &Searched) -> Found {
        Found {
            outcome: found.outcome,
            size: Size {
                first_cut_off: found.first_cut_off,
                cuts: found.cuts,
                levels: found.levels as u64,
                widest: found.widest as u64,
                widest_bytes: found.widest_bytes as u64,
                runs: found.runs.clone(),
                violating: None,
            },
            is_violated: found.violation.is_some(),
            shown: None,
        }
    }
}

/// Statistics of the lattices of one property.
#[derive(Default)]
pub(super) struct SearchStats {
    pub(super) predictions: Vec<Prediction>,
    /// How many bindings the parameters have, for a property with parameters.
    pub(super) bindings: Option<u64>,
    pub(super) lattices: u64,
    /// How many of them have a violating run.
    pub(super) violated: u64,
    pub(super) observed: u64,
    pub(super) steps: u64,
    pub(super) size: Size,
    pub(super) outcome: Option<Outcome>,
    pub(super) trouble: Option<String>,
    /// The problems with values.
    pub(super) troubles: EvalWarnings,
    pub(super) notes: Vec<String>,
    /// Why no run could have violated the property, in which case no finding means nothing.
    pub(super) vacuous: Option<String>,
}

impl SearchStats {
    /// Adds the verdict of a search.
    pub(super) fn add(&mut self, verdict: &LatticeVerdict) {
        self.steps += verdict.steps;
        self.troubles.add(&verdict.troubles);
        let Some(found) = &verdict.found else {
            self.observed += 1;
            return;
        };
        self.violated += u64::from(found.is_violated);
        self.lattices += 1;
        self.size.add(&found.size);
        if found.outcome != Outcome::Exhausted || self.outcome.is_none() {
            self.outcome = Some(found.outcome);
        }
    }

    /// All of it, for a report.
    pub(super) fn analysed(&self, property: &str) -> Analysed {
        let is_silent = self.observed == 0 && self.violated == 0 && self.trouble.is_none();
        // An incomplete search is stated.
        let is_all = self.outcome.is_none_or(|outcome| outcome == Outcome::Exhausted);
        let nothing = is_silent && (self.steps == 0 || is_all && self.vacuous.is_some());
        let outcome = match self.outcome {
            _ if nothing => Outcome::NothingRelevant,
            Some(Outcome::Exhausted) if !self.notes.is_empty() => Outcome::UnknownValues,
            Some(outcome) => outcome,
            // Every violation was observed, so there is nothing to predict.
            None => Outcome::Exhausted,
        };
        let mut stats = vec![("relevant_events", Stat::Count(self.steps))];
        if let Some(bindings) = self.bindings {
            stats.push(("bindings", Stat::Count(bindings)));
        }
        if self.lattices > 0 {
            stats.push(("states", Stat::Count(self.size.cuts)));
            stats.push(("levels", Stat::Count(self.size.levels)));
            stats.push(("widest_level", Stat::Count(self.size.widest)));
            stats.push(("widest_level_bytes", Stat::Count(self.size.widest_bytes)));
        }
        // A sum of the runs of different bindings would mean nothing.
        if self.lattices == 1 {
            stats.extend(self.size.runs.as_ref().map(|runs| match runs {
                Count::Exact(n) => ("runs", Stat::Text(n.to_string())),
                Count::About(digits) => ("runs_about", Stat::Text(format!("10^{digits:.0}"))),
            }));
            stats.extend(self.size.violating.clone().map(|n| ("violating_runs", Stat::Text(n))));
        }
        Analysed {
            name: LATTICE,
            property: Some(property.to_owned()),
            outcome,
            conclusion: Conclusion::Other,
            statement: self.statement(outcome),
            notes: self.notes.clone(),
            stats,
        }
    }

    fn statement(&self, outcome: Outcome) -> String {
        let found = match self.violated {
            0 if self.observed > 0 => "the observed run violates it already".to_owned(),
            0 => "no violation".to_owned(),
            1 => "violated in another run with the same causality".to_owned(),
            n if n > MAX_CANDIDATES as u64 => format!(
                "violated in other runs with the same causality, for {n} bindings, of which \
                 {MAX_CANDIDATES} are shown"
            ),
            n => format!("violated in other runs with the same causality, for {n} bindings"),
        };
        let cut_off = self.size.first_cut_off.unwrap_or(0);
        let covered = match outcome {
            Outcome::Exhausted if self.lattices == 0 => String::new(),
            Outcome::Exhausted => "; every run with this causality was covered".to_owned(),
            Outcome::NothingRelevant => {
                let why = "no event of the trace concerns this property";
                let vacuous = self.vacuous.clone().filter(|_| self.steps > 0);
                return vacuous.unwrap_or_else(|| why.to_owned());
            }
            Outcome::UnknownValues => {
                "; every run with this causality was covered, but values were missing".to_owned()
            }
            Outcome::EventLimit => format!(
                " in the first {} relevant events; the others were not looked at",
                self.steps
            ),
            Outcome::Window => format!(
                " among the {} cuts nearest to the observed run; the window left runs out from \
                 level {cut_off} on",
                self.size.cuts
            ),
            Outcome::MemoryLimit => format!(
                " among {} cuts; there was no memory for level {cut_off}: allow more with \
                 --max-memory, or follow fewer cuts with --window",
                self.size.cuts
            ),
            _ => match &self.trouble {
                Some(trouble) => format!("; the search was given up: {trouble}"),
                None => {
                    format!(
                        " among {} cuts; the search was given up at level {cut_off}",
                        self.size.cuts
                    )
                }
            },
        };
        found + &covered
    }
}
