//! Every analysis and check, in one list.
//!
//! Whatever depends on which analysis speaks is decided by this list: help texts, suppressions, what
//! holds of filtered traces and of notes, and whether an answer is complete. No other file spells a
//! name.

use foresee_trace::{Outcome, Space};

/// Monitors the observed run.
pub const OBSERVED: &str = "observed";
/// Asks whether a verdict depends on the schedule.
pub const MONITORABILITY: &str = "monitorability";
/// Searches the lattice of all runs with the same causality.
pub const LATTICE: &str = "lattice";
/// Looks for patterns in all runs with the same causality.
pub const PATTERN: &str = "pattern";
/// Looks for patterns where critical sections swap.
pub const SLICED: &str = "sliced";
/// Looks for violations in correct reorderings.
pub const CORRECT: &str = "correct";
/// Checks for races.
pub const RACE: &str = "race";
/// Checks for deadlocks.
pub const DEADLOCK: &str = "deadlock";
/// Checks regions that were declared atomic.
pub const ATOMICITY: &str = "atomicity";
/// Checks regions that look as if they were meant to be atomic.
pub const LIKELY_ATOMICITY: &str = "likely-atomicity";
/// Checks the lifetimes of objects.
pub const LIFETIME: &str = "lifetime";
/// Counts what could have been ordered otherwise.
pub const CAUSALITY: &str = "causality";
/// Looks for reads that could have seen another write.
pub const NONDETERMINISM: &str = "nondeterminism";

/// Not an analysis: how the program that was run ended.
pub const PROGRAM_FAILURE: &str = "program-failure";

/// Not an analysis: one of the jobs of a batch, which was not answered.
pub const BATCH: &str = "batch";

/// Not an analysis: asks for every search that a specification gets by default.
pub const SPEC: &str = "spec";

/// When an analysis leaves the answer to another analysis of the same property, so that its own
/// outcome does not make the answer incomplete.
#[derive(Clone, Copy, Debug)]
pub enum Deferral {
    /// It answers for itself.
    Never,
    /// It never covers more than the observed run.
    Always,
    /// After these outcomes.
    After(&'static [Outcome]),
}

/// What there is to know about an analysis.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisInfo {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// What its findings and its silence promise.
    pub guarantees: &'static str,
    /// The reorderings that it covers; `None` if it judges the observed order alone.
    pub space: Option<Space>,
    /// Whether it needs a specification.
    pub needs_spec: bool,
    /// Whether it needs the trace once more when it has been read, so that the trace is kept.
    pub needs_trace: bool,
    /// Whether it makes claims about runs that were not observed.
    pub predicts: bool,
    /// Whether it is one of [`CHECKS`](crate::checks::CHECKS), whose findings can be suppressed.
    pub is_check: bool,
    /// Whether it can be requested with `--check`.
    pub is_selectable: bool,
    /// Whether it runs if nothing was requested.
    pub is_default: bool,
    /// When another analysis of the same property answers for it.
    pub defers: Deferral,
}

/// A search for violations of a specification.
const SEARCH: AnalysisInfo = AnalysisInfo {
    name: "",
    about: "",
    guarantees: "",
    space: Some(Space::Maz),
    needs_spec: true,
    needs_trace: false,
    predicts: true,
    is_check: false,
    is_selectable: false,
    is_default: false,
    defers: Deferral::Never,
};

/// A check that needs no specification.
const CHECK: AnalysisInfo = AnalysisInfo {
    space: Some(Space::Correct),
    needs_spec: false,
    needs_trace: true,
    is_check: true,
    is_selectable: true,
    ..SEARCH
};

/// Every analysis and check, in the order in which they are listed for users.
pub const ALL: &[AnalysisInfo] = &[
    AnalysisInfo {
        name: OBSERVED,
        about: "whether the observed run violates a property",
        guarantees: "exact for the observed run; says nothing about other runs",
        space: None,
        predicts: false,
        defers: Deferral::Always,
        ..SEARCH
    },
    AnalysisInfo {
        name: MONITORABILITY,
        about: "whether the verdict on a property depends on the schedule",
        guarantees: "monitorable: every order that the execution left open has the same verdict; \
                     schedule-dependent: a confirmed order has another verdict; anything else is \
                     unknown",
        space: Some(Space::Notes),
        needs_trace: true,
        is_selectable: true,
        // Unless it was requested, it is a warning, and answers nothing.
        defers: Deferral::After(&[Outcome::Window]),
        ..SEARCH
    },
    AnalysisInfo {
        name: LATTICE,
        about: "whether a run with the same causality violates a property",
        guarantees: "each violation is a confirmed run; if none is reported and the lattice was \
                     exhausted, no run with this causality violates the property",
        ..SEARCH
    },
    AnalysisInfo {
        name: PATTERN,
        about: "whether a run with the same causality matches a pattern",
        guarantees: "each match is a confirmed run; if none is reported and the answer is complete, \
                     no run with this causality matches the pattern",
        ..SEARCH
    },
    AnalysisInfo {
        name: SLICED,
        about: "whether a run in which critical sections swap matches a pattern",
        guarantees: "each match is a confirmed run; if none is reported, nothing is ruled out",
        space: Some(Space::Sliced),
        // It never covers all there is, and a filtered trace is known to lack what it needs.
        defers: Deferral::After(&[Outcome::Window, Outcome::OrderUnknown]),
        ..SEARCH
    },
    AnalysisInfo {
        name: CORRECT,
        about: "whether a correct reordering violates a property",
        guarantees: "each violation is a confirmed run; if none is reported and the search was \
                     exhausted, no correct reordering violates the property",
        space: Some(Space::Correct),
        // A filtered trace is known to lack what it needs.
        defers: Deferral::After(&[Outcome::OrderUnknown]),
        ..SEARCH
    },
    AnalysisInfo {
        name: RACE,
        about: "which accesses to one variable could come at once",
        guarantees: "each race is shown by a replayed reordering in which both accesses are next; that \
                     none is possible is said only if locks or needs rule out every pair of accesses",
        is_default: true,
        ..CHECK
    },
    AnalysisInfo {
        name: DEADLOCK,
        about: "which threads could wait for each other forever",
        guarantees: "each deadlock is a confirmed run after which every thread of a ring is about to \
                     take a lock, or to join a thread, that the next one keeps, after which a thread is \
                     about to take a lock that another one had when it ended, or after which a thread \
                     waits and no thread of the run can notify it any more; an observed one is a thread \
                     that the run leaves waiting for what no thread can give it; that none is possible is \
                     said only if all are proved impossible and no thread was left waiting",
        is_default: true,
        ..CHECK
    },
    AnalysisInfo {
        name: ATOMICITY,
        about: "regions that are meant to be atomic and can be disturbed",
        guarantees: "the observed order is judged exactly; each prediction is a confirmed run with a \
                     cycle of conflicts; if none is reported, none is possible only where every region \
                     is proved to be protected by a lock",
        is_default: true,
        ..CHECK
    },
    AnalysisInfo {
        name: LIKELY_ATOMICITY,
        about: "a value read in one section of a lock and written in the next, and what can come between",
        guarantees: "each finding is a confirmed run in which another thread writes in between; that it \
                     should not is a guess; if none is reported, none is possible only where every such \
                     pair is proved to be safe",
        ..CHECK
    },
    AnalysisInfo {
        name: LIFETIME,
        about: "objects that can be used after they are freed or closed, or before they are initialised",
        guarantees: "each prediction is a confirmed run in which the object has ended, or not yet begun, \
                     when it is used; if none is reported and the answer is complete, no reordering of \
                     the run has one, of the objects that the trace speaks of",
        is_default: true,
        ..CHECK
    },
    AnalysisInfo {
        name: CAUSALITY,
        about: "how much of the observed order could have been otherwise",
        guarantees: "exact: a pair is counted as free if and only if its events are unordered by \
                     the Mazurkiewicz causality; if none is free, the observed run is the only one",
        needs_spec: false,
        predicts: false,
        is_selectable: true,
        ..SEARCH
    },
    AnalysisInfo {
        name: NONDETERMINISM,
        about: "which reads could have seen another write",
        guarantees: "exact up to undecided candidates, which are counted: a read is reported with \
                     a confirmed run in which everything before it sees what it saw; if none is \
                     reported, every read sees the same write in every correct reordering",
        space: Some(Space::Correct),
        needs_spec: false,
        needs_trace: true,
        is_selectable: true,
        ..SEARCH
    },
    AnalysisInfo {
        name: PROGRAM_FAILURE,
        about: "whether the program that was run failed, was killed or hung",
        guarantees: "exact for the run that was made; says nothing about other runs",
        space: None,
        needs_spec: false,
        predicts: false,
        ..SEARCH
    },
];

impl AnalysisInfo {
    /// The analysis of this name.
    pub fn of(name: &str) -> Option<&'static AnalysisInfo> {
        ALL.iter().find(|info| info.name == name)
    }

    /// Whether its claims hold for runs with the same causality, about which a filtered trace says
    /// everything.
    pub fn keeps_causality(&self) -> bool {
        !matches!(self.space, Some(Space::Sliced | Space::Correct))
    }

    /// Whether its claims hold if the order of the trace is only that in which events were noted.
    pub fn holds_for_notes(&self) -> bool {
        matches!(self.space, None | Some(Space::Notes))
    }

    /// Whether its claims include the observed run, so that a report need not list that separately.
    pub fn covers_observed(&self) -> bool {
        self.predicts && !self.holds_for_notes()
    }

    /// Whether it leaves the answer to another analysis of the same property after this outcome.
    pub fn defers_after(&self, outcome: Outcome) -> bool {
        match self.defers {
            Deferral::Never => false,
            Deferral::Always => true,
            Deferral::After(outcomes) => outcomes.contains(&outcome),
        }
    }
}

/// Everything that `--check` accepts: [`SPEC`], and the analyses that can be requested.
pub fn selectable() -> impl Iterator<Item = &'static str> {
    let analyses = ALL.iter().filter(|info| info.is_selectable).map(|info| info.name);
    std::iter::once(SPEC).chain(analyses)
}

/// Names that were in use once, and what they are called now. Both are accepted.
const FORMER_NAMES: &[(&str, &str)] = &[("order", LIFETIME)];

/// The present name of an analysis that may be called by a former one.
pub fn present_name(name: &str) -> &str {
    FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, present)| present)
}

/// Whether what `--check` accepts by this name is about a specification.
pub fn needs_spec(name: &str) -> bool {
    name == SPEC || AnalysisInfo::of(name).is_some_and(|info| info.needs_spec)
}

/// Whether this is the name of a check.
pub fn is_check(name: &str) -> bool {
    AnalysisInfo::of(name).is_some_and(|info| info.is_check)
}

/// Whether what the analysis of this name claims holds for runs with the same causality.
pub fn keeps_causality(name: &str) -> bool {
    AnalysisInfo::of(name).is_some_and(AnalysisInfo::keeps_causality)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ANALYSES;
    use crate::checks::CHECKS;

    #[test]
    fn analyses_are_told_apart_and_described() {
        for (i, info) in ALL.iter().enumerate() {
            assert!(![info.name, info.about, info.guarantees].contains(&""), "{info:?}");
            assert!(ALL[..i].iter().all(|other| other.name != info.name), "{}", info.name);
            assert!(info.is_selectable || !info.is_default && !info.is_check, "{}", info.name);
            assert_ne!(info.name, SPEC);
        }
    }

    #[test]
    fn former_names_lead_to_analyses_and_are_not_taken() {
        for (former, present) in FORMER_NAMES {
            assert!(AnalysisInfo::of(present).is_some() && AnalysisInfo::of(former).is_none());
            assert_eq!(present_name(former), *present);
            assert_eq!(present_name(present), *present);
        }
    }

    #[test]
    fn what_can_be_requested_can_be_made() {
        let checks: Vec<&str> = CHECKS.iter().map(|kind| kind.name).collect();
        let listed: Vec<&str> = ALL.iter().filter(|i| i.is_check).map(|info| info.name).collect();
        assert_eq!(checks, listed);
        let others = ALL.iter().filter(|i| i.is_selectable && !i.is_check && !i.needs_spec);
        let others: Vec<&str> = others.map(|info| info.name).collect();
        assert_eq!(ANALYSES.iter().map(|kind| kind.name).collect::<Vec<_>>(), others);
    }
}
