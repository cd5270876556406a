//! The results of all candidates, and the statement that follows from them.

use foresee_trace::Outcome;

use crate::analysis::Stat;

/// The condition of every statement: a thread that reads something else may do anything.
const CONDITION: &str = "in whatever order the threads run, as long as every thread reads what it \
                         read in this run";
/// The same if threads tried to take locks: one that fails where it succeeded, or the reverse, may do anything as well.
const CONDITION_WITH_ATTEMPTS: &str = "in whatever order the threads run, as long as every thread reads what it read in this run \
     and every attempt to take a lock ends as it did";

/// The results of the candidates of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchStats {
    /// Proved impossible: the locks held exclude each other.
    pub(crate) by_locks: u64,
    /// Proved impossible: one event requires the other.
    pub(crate) by_order: u64,
    /// Found, with a confirmed witness.
    pub(crate) found: u64,
    /// Not found by exhaustive searches.
    pub(crate) not_found: u64,
    /// Given up.
    pub(crate) undecided: u64,
    /// Not tried: too many candidates, or no time left.
    pub(crate) not_tried: u64,
    /// Not found, but possible if some read sees another value.
    pub(crate) conditional: u64,
    /// Whether the impossible candidates may include more of these.
    pub(crate) is_more_conditional: bool,
    /// Impossible as long as every read sees what it saw; other values were not tried.
    pub(crate) not_asked: u64,
    /// Whether time ran out.
    pub(crate) is_late: bool,
    /// Whether threads tried to take locks without waiting for them forever.
    pub(crate) has_attempts: bool,
    /// Why nothing is proved even if every candidate is decided.
    pub(crate) caveat: Option<&'static str>,
}

/// The terms of a check's statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// The singular: `race`.
    pub(crate) one: &'static str,
    /// The plural.
    pub(crate) many: &'static str,
    /// The candidates: `pairs of places`.
    pub(crate) candidates: &'static str,
}

impl SearchStats {
    /// The number of candidates.
    pub(crate) fn candidates(&self) -> u64 {
        self.by_locks
            + self.by_order
            + self.found
            + self.not_found
            + self.undecided
            + self.not_tried
            + self.conditional
            + self.not_asked
    }

    /// Whether every candidate that was not found is impossible as long as every read sees what it saw.
    fn is_searched(&self) -> bool {
        self.not_found + self.undecided + self.not_tried == 0
    }

    fn is_settled(&self) -> bool {
        self.is_searched() && self.conditional + self.not_asked == 0
    }

    /// Whether every candidate that was not found is proved impossible, and there are no others.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_settled() && self.caveat.is_none()
    }

    /// How exhaustive the search was. A result without findings is complete only as a proof.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            _ if self.is_complete() => Outcome::Exhausted,
            _ if self.is_late => Outcome::TimeLimit,
            SearchStats { undecided: 1.., .. } | SearchStats { not_tried: 1.., .. } => {
                Outcome::StateLimit
            }
            _ => Outcome::Window,
        }
    }

    /// The findings, and what the absence of others means.
    pub(crate) fn statement(&self, words: Words) -> String {
        let Words { one, many, candidates } = words;
        let is_complete = self.is_complete();
        let open = self.open(candidates);
        let condition = if self.has_attempts { CONDITION_WITH_ATTEMPTS } else { CONDITION };
        match self.found {
            0 if is_complete => format!("no {one} is possible {condition}"),
            0 if self.is_conditional() => {
                format!("no {one} is possible {condition}; {}", self.hanging())
            }
            0 => format!("no {one} found, which proves nothing: {open}"),
            n => {
                let found = if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
                match is_complete {
                    true => format!("{found}; no other is possible {condition}"),
                    false if self.is_conditional() => {
                        format!("{found}; no other is possible {condition}; {}", self.hanging())
                    }
                    false => format!("{found}; there may be more: {open}"),
                }
            }
        }
    }

    /// Whether all remaining candidates depend on values that reads see.
    fn is_conditional(&self) -> bool {
        self.conditional + self.not_asked > 0 && self.is_searched() && self.caveat.is_none()
    }

    fn hanging(&self) -> String {
        match (self.conditional, self.not_asked) {
            (0, n) => {
                format!("whether {n} would be possible if reads saw other values was not tried")
            }
            (n, _) if self.is_more_conditional => {
                format!("{n} or more would be possible if reads saw other values")
            }
            (1, _) => "1 would be possible if a read saw another value".to_owned(),
            (n, _) => format!("{n} would be possible if reads saw other values"),
        }
    }

    fn open(&self, candidates: &str) -> String {
        if let Some(caveat) = self.caveat
            && self.is_searched()
        {
            return match self.conditional + self.not_asked {
                0 => caveat.to_owned(),
                _ => format!("{caveat}; {}", self.hanging()),
            };
        }
        let parts = [
            (self.not_found, "searched without a result"),
            (self.undecided, "given up"),
            (self.not_tried, "not tried"),
        ];
        let hanging = match self.conditional + self.not_asked {
            0 => String::new(),
            _ => format!("; {}", self.hanging()),
        };
        let told = parts.iter().filter(|(n, _)| *n > 0);
        let were = |n: u64| if n == 1 { "was" } else { "were" };
        let told: Vec<String> = told.map(|&(n, what)| format!("{n} {} {what}", were(n))).collect();
        if told.is_empty() {
            return self.hanging();
        }
        format!("of the {candidates}, {}{hanging}", told.join(", "))
    }

    /// The counts, in the order in which to show them.
    pub(crate) fn stats(&self) -> Vec<(&'static str, Stat)> {
        [
            ("candidates", self.candidates()),
            ("impossible_by_locks", self.by_locks),
            ("impossible_by_order", self.by_order),
            ("found", self.found),
            ("not_found", self.not_found),
            ("undecided", self.undecided),
            ("not_tried", self.not_tried),
        ]
        .into_iter()
        .chain((self.conditional > 0).then_some(("conditional", self.conditional)))
        .chain((self.not_asked > 0).then_some(("not_tried_with_other_values", self.not_asked)))
        .map(|(name, n)| (name, Stat::Count(n)))
        .collect()
    }
}
