//! One job, and what its result depends on.

use std::ops::Range;

use foresee_predict::checks::CandidatePart;
use foresee_predict::session::Settings;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The version of foresee, on which every result depends. Where it is built from sources, a digest of them is part of it.
pub const VERSION: &str = env!("FORESEE_VERSION");

/// Raised when results are stored in another way.
const FORM: u32 = 5;

/// A trace or a specification, by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// Its content.
    pub digest: Digest,
    /// What the user knows it by.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// One trace, and what is to be answered of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The version of foresee that asks, and must answer.
    pub foresee: String,
    /// The trace.
    pub trace: Blob,
    /// Its format, unless that is recognised by the content.
    pub input_format: Option<String>,
    /// Whether what no execution could have produced is repaired.
    pub repair: bool,
    /// The specifications.
    pub specs: Vec<Blob>,
    /// The checks, by name.
    pub checks: Vec<String>,
    /// Whether to look for whatever goes wrong without a specification.
    pub is_default: bool,
    /// Which of the session's questions to answer.
    pub questions: Range<usize>,
    /// How to search.
    pub settings: Settings,
    /// If only these candidates are to be decided, for a job that answers the questions.
    pub candidates: Option<CandidatePart>,
    /// The keys of jobs that have decided candidates of this one.
    pub decided_by: Vec<Digest>,
}

impl Job {
    /// The name of its result: the digest of everything that the result depends on. That is not what the trace is called, nor
    /// how many cores there are, nor whether others have decided candidates.
    pub fn key(&self) -> Digest {
        let mut asked = self.clone();
        asked.trace.name.clear();
        asked.decided_by.clear();
        asked.settings.limits.cores = 1;
        asked.settings.is_alone = false;
        // Writing to memory cannot fail, and everything in a job has a form in JSON.
        let text = serde_json::to_string(&(FORM, &asked)).unwrap_or_default();
        Digest::of(text.as_bytes())
    }

    /// The jobs that decide a part of its candidates each.
    pub fn parts(&self, of: u32) -> impl Iterator<Item = Job> {
        let part = move |number| Job {
            candidates: Some(CandidatePart { number, of }),
            decided_by: Vec::new(),
            ..self.clone()
        };
        (0..of).map(part)
    }

    /// What it asks, for messages.
    pub fn question(&self) -> String {
        match (self.specs.as_slice(), self.is_default, self.checks.as_slice()) {
            ([spec], ..) => spec.name.clone(),
            (_, true, _) => "default checks".to_owned(),
            (_, false, []) => "checks".to_owned(),
            (_, false, checks) => checks.join(", "),
        }
    }
}
