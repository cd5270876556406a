//! Verdicts on candidates that were reached elsewhere.
//!
//! Searches for candidates take most of the time of a check, and none depends on another. The same holds for the reads that
//! nondeterminism looks at, and for the bindings of a property. So several processes may each
//! [decide](crate::session::Session::decide) a part of them, and another one that [knows](crate::session::Session::know)
//! their verdicts does everything else as if they were its own: it proposes the same candidates, counts, confirms and
//! reports. That is why the number of parts cannot change an answer, and why a part that is lost costs nothing but time.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::tries::Candidate;
use crate::nondeterminism::DecidedReads;
use crate::settled::SettledBindings;

/// A part of the candidates of each check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidatePart {
    /// Which part, from 0.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

impl CandidatePart {
    /// Whether it has a candidate. They are dealt out like cards, since neighbours are often equally hard.
    pub(crate) fn has(self, candidate: usize) -> bool {
        candidate % self.of.max(1) as usize == self.number as usize
    }
}

/// Verdicts on some candidates of the checks of one trace, on some reads, and on some bindings of properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// By the name of the check.
    checks: BTreeMap<String, OfCheck>,
    /// Parts of the search for reads that could see another write.
    reads: Vec<DecidedReads>,
    /// Parts of the searches for bindings, by search and property.
    bindings: BTreeMap<String, Vec<SettledBindings>>,
}

/// Verdicts on some candidates of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfCheck {
    /// What tells these candidates from others: verdicts on others are worth nothing.
    candidates: u64,
    verdicts: Vec<(u32, Verdict)>,
}

/// The verdict on a candidate: which of its tries, and how that ended.
pub(crate) type Verdict = (usize, Attempt);

impl Decided {
    /// Adds the verdicts of other parts.
    pub(crate) fn add(&mut self, other: Decided) {
        for (check, more) in other.checks {
            let all = self.checks.entry(check).or_default();
            if all.candidates != more.candidates {
                *all = OfCheck { candidates: more.candidates, verdicts: Vec::new() };
            }
            all.verdicts.extend(more.verdicts);
        }
        for more in other.reads {
            if self.reads.iter().all(|known| more.goes_with(known)) {
                self.reads.push(more);
            }
        }
        for (search, more) in other.bindings {
            let all = self.bindings.entry(search).or_default();
            for more in more {
                if all.iter().all(|known| more.goes_with(known)) {
                    all.push(more);
                }
            }
        }
    }

    /// What is known of the bindings in a search for a property; all of it is about the same bindings.
    pub(crate) fn bindings(&self, search: &str) -> &[SettledBindings] {
        self.bindings.get(search).map_or(&[], Vec::as_slice)
    }

    /// What is known of these reads.
    pub(crate) fn reads(&self, of: u64) -> &[DecidedReads] {
        // All of them are about the same.
        match self.reads.first() {
            Some(first) if first.of == of => &self.reads,
            _ => &[],
        }
    }

    /// What is known of these candidates, by their places in the list.
    pub(crate) fn of(&self, check: &str, candidates: &[Candidate]) -> HashMap<usize, Verdict> {
        let Some(known) = self.checks.get(check) else { return HashMap::new() };
        if known.candidates != fingerprint(candidates) {
            return HashMap::new();
        }
        let is_sound = |(at, (by, _)): &&(u32, Verdict)| {
            candidates.get(*at as usize).is_some_and(|candidate| *by < candidate.tries.len())
        };
        let known = known.verdicts.iter().filter(is_sound);
        known.map(|(at, verdict)| (*at as usize, verdict.clone())).collect()
    }
}

/// Distinguishes lists of candidates. Another compiler may give other numbers, which costs time and nothing else.
fn fingerprint(candidates: &[Candidate]) -> u64 {
    let mut hasher = DefaultHasher::new();
    candidates.len().hash(&mut hasher);
    for candidate in candidates {
        (candidate.key, candidate.tries.len()).hash(&mut hasher);
        for by in &candidate.tries {
            by.next.hash(&mut hasher);
            by.executed.len().hash(&mut hasher);
            by.executed.iter().for_each(|wanted| wanted.event.hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// Asks for the verdicts on a part of the candidates, and for nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Deciding {
    pub(crate) part: CandidatePart,
    into: Arc<Mutex<Decided>>,
}

impl Deciding {
    pub(crate) fn new(part: CandidatePart) -> Deciding {
        Deciding { part, into: Arc::default() }
    }

    /// Keeps the verdicts on some candidates of a list.
    pub(crate) fn keep(
        &self,
        check: &str,
        candidates: &[Candidate],
        verdicts: impl IntoIterator<Item = (usize, Verdict)>,
    ) {
        let verdicts = verdicts.into_iter();
        let verdicts =
            verdicts.filter_map(|(at, verdict)| Some((u32::try_from(at).ok()?, verdict)));
        let kept = OfCheck { candidates: fingerprint(candidates), verdicts: verdicts.collect() };
        let mut into = self.into.lock().unwrap_or_else(PoisonError::into_inner);
        into.checks.insert(check.to_owned(), kept);
    }

    /// Keeps what was decided of some reads.
    pub(crate) fn keep_reads(&self, reads: DecidedReads) {
        self.into.lock().unwrap_or_else(PoisonError::into_inner).reads.push(reads);
    }

    /// Keeps the verdicts on some bindings in a search for a property.
    pub(crate) fn keep_bindings(&self, search: String, bindings: SettledBindings) {
        let mut into = self.into.lock().unwrap_or_else(PoisonError::into_inner);
        into.bindings.entry(search).or_default().push(bindings);
    }

    /// Everything that was kept.
    pub(crate) fn take(&self) -> Decided {
        std::mem::take(&mut self.into.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
