//! Traces and questions become jobs.
//!
//! The checks of a trace are one job, and each specification is one: what changes makes only its own jobs anew. Either can be
//! split into parts, each with some of the checks or of the properties; and where there are more parts than these, jobs that
//! decide some of a check's candidates, or of a property's bindings, come before the one that answers.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foresee_predict::info;
use foresee_predict::session::Settings;

use crate::digest::Digest;
use crate::job::{Blob, Job, VERSION};
use crate::perform::{Blobs, Failed, session};

/// A specification that has been read.
#[derive(Clone, Debug)]
pub struct SpecSource {
    /// What the user knows it by.
    pub name: String,
    /// As it was written.
    pub text: String,
}

/// What is asked of each of some traces.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// The specifications.
    pub specs: Vec<SpecSource>,
    /// The checks; together with no specification, none stands for the default ones.
    pub checks: Vec<String>,
    /// The format of the traces, unless it is recognised by the content.
    pub input_format: Option<String>,
    /// Whether to repair what no execution could have produced.
    pub repair: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There are no traces for some questions.
    #[error("there are no traces to check")]
    NoTraces,
    /// A check needs a specification.
    #[error("--check {0} needs a specification: give one with --spec FILE")]
    NeedsSpec(String),
    /// A question cannot be asked.
    #[error(transparent)]
    Question(#[from] Failed),
    /// There is no such format.
    #[error(transparent)]
    Format(#[from] foresee_formats::UnknownFormat),
}

/// A job, or why there is none.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What the user knows the trace by.
    pub trace: String,
    /// What is asked.
    pub question: String,
    /// The job, unless the trace cannot be read.
    pub job: Result<Job, Failed>,
    /// In how many parts its candidates are decided before; 0 if the job does that itself.
    pub candidate_parts: u32,
}

/// All jobs of a batch.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The jobs; those of a trace follow each other.
    pub jobs: Vec<Planned>,
    /// Where their contents are.
    pub blobs: LocalBlobs,
}

impl Plan {
    /// Plans all questions about all traces. Each job is split into `parts`, as far as there is something to split.
    pub fn new(groups: &[Questions], settings: &Settings, parts: usize) -> Result<Plan, PlanError> {
        let mut plan = Plan::default();
        for group in groups {
            if let Some(format) = &group.input_format {
                foresee_formats::by_name(format)?;
            }
            // Specifications that nothing is checked against would be passed over.
            if group.traces.is_empty() {
                return Err(PlanError::NoTraces);
            }
            let asked = plan.ask(group, settings, parts)?;
            for path in &group.traces {
                let trace = path.display().to_string();
                let blob = plan.blobs.add_trace(path);
                for (question, candidate_parts) in &asked {
                    let job = blob.clone().map(|trace| Job { trace, ..question.clone() });
                    let (trace, question) = (trace.clone(), question.question());
                    let candidate_parts = *candidate_parts;
                    plan.jobs.push(Planned { trace, question, job, candidate_parts });
                }
            }
        }
        if plan.jobs.is_empty() {
            return Err(PlanError::NoTraces);
        }
        Ok(plan)
    }

    /// The jobs for each trace of a group, without the trace, and in how many parts the candidates of each are decided.
    fn ask(
        &mut self,
        group: &Questions,
        settings: &Settings,
        parts: usize,
    ) -> Result<Vec<(Job, u32)>, PlanError> {
        let checks = group.checks.iter().map(|check| info::present_name(check).to_owned());
        let (with_specs, alone): (Vec<String>, Vec<String>) =
            checks.partition(|check| info::needs_spec(check));
        if let (Some(check), []) = (with_specs.first(), group.specs.as_slice()) {
            return Err(PlanError::NeedsSpec(check.clone()));
        }
        let nobody = Blob { digest: Digest::of(b""), name: String::new(), bytes: 0 };
        let mut jobs = Vec::new();
        let mut add = |specs: Vec<Blob>,
                       checks: &[String],
                       is_default,
                       all: Range<usize>,
                       has_candidates: &dyn Fn(usize) -> bool| {
            let ranges = split(all, parts);
            let more = u32::try_from(parts.div_ceil(ranges.len().max(1))).unwrap_or(u32::MAX);
            for questions in ranges {
                let candidate_parts = match more > 1 && questions.clone().all(has_candidates) {
                    true => more.min(MOST_CANDIDATE_PARTS),
                    false => 0,
                };
                let job = Job {
                    foresee: VERSION.to_owned(),
                    trace: nobody.clone(),
                    input_format: group.input_format.clone(),
                    repair: group.repair,
                    specs: specs.clone(),
                    checks: checks.to_vec(),
                    is_default,
                    questions,
                    settings: settings.clone(),
                    candidates: None,
                    decided_by: Vec::new(),
                };
                jobs.push((job, candidate_parts));
            }
        };
        let mut specs = Vec::new();
        for source in &group.specs {
            let read = [(source.name.as_str(), source.text.clone())];
            let one = session(settings, 1, &read, &with_specs, false)?;
            let has_regions = !one.atomics().is_empty();
            specs.push((self.blobs.add_text(source), read, one, has_regions));
        }
        // Specifications that declare atomic regions ask for a check, which looks at all of them together.
        let declaring = || specs.iter().filter(|(.., has_regions)| *has_regions);
        let texts: Vec<_> = declaring().flat_map(|(_, read, ..)| read.clone()).collect();
        let is_default = group.specs.is_empty() && alone.is_empty();
        let checks = session(settings, 1, &texts, &alone, is_default)?;
        let blobs = declaring().map(|(blob, ..)| blob.clone()).collect();
        let all = 0..checks.built_in_questions();
        add(blobs, &alone, is_default, all, &|question| checks.has_candidates(question));
        for (blob, _, one, _) in &specs {
            let questions = one.built_in_questions()..one.questions();
            let has_bindings = |question| one.has_candidates(question);
            add(vec![blob.clone()], &with_specs, false, questions, &has_bindings);
        }
        Ok(jobs)
    }
}

/// Each part reads the trace, so there is no use in very many.
const MOST_CANDIDATE_PARTS: u32 = 1024;

/// A range in as many parts of about the same size as it has room for; nothing has none.
fn split(all: Range<usize>, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, all.len().max(1));
    let at = |part: usize| all.start + all.len() * part / parts;
    let ranges = (0..parts).map(|part| at(part)..at(part + 1));
    ranges.filter(|range| !range.is_empty()).collect()
}

/// Contents of this machine: traces in files, specifications in memory.
#[derive(Clone, Debug, Default)]
pub struct LocalBlobs {
    files: HashMap<Digest, LocalFile>,
    /// What has been added, by path: several groups of questions may be about one trace.
    added: HashMap<PathBuf, Result<Blob, Failed>>,
    texts: HashMap<Digest, String>,
}

/// A file, and what it was like when its digest was taken.
#[derive(Clone, Debug)]
struct LocalFile {
    path: PathBuf,
    bytes: u64,
    changed: Option<SystemTime>,
}

impl LocalBlobs {
    /// Adds a trace.
    pub fn add_trace(&mut self, path: &Path) -> Result<Blob, Failed> {
        if let Some(added) = self.added.get(path) {
            return added.clone();
        }
        let added = self.read_trace(path);
        self.added.insert(path.to_owned(), added.clone());
        added
    }

    fn read_trace(&mut self, path: &Path) -> Result<Blob, Failed> {
        let cannot = |error| Failed(format!("cannot read it: {error}"));
        let about = fs::metadata(path).map_err(cannot)?;
        if !about.is_file() {
            return Err(Failed(
                "it is not a regular file, and a batch reads traces again".to_owned(),
            ));
        }
        let (digest, bytes) = Digest::of_file(path).map_err(cannot)?;
        let changed = about.modified().ok();
        self.files.insert(digest, LocalFile { path: path.to_owned(), bytes, changed });
        Ok(Blob { digest, name: path.display().to_string(), bytes })
    }

    /// Adds a specification.
    pub fn add_text(&mut self, source: &SpecSource) -> Blob {
        let digest = Digest::of(source.text.as_bytes());
        self.texts.insert(digest, source.text.clone());
        Blob { digest, name: source.name.clone(), bytes: source.text.len() as u64 }
    }

    fn file(&self, blob: &Blob) -> Result<&LocalFile, Failed> {
        let unknown = || Failed(format!("{} is not here", blob.name));
        self.files.get(&blob.digest).ok_or_else(unknown)
    }
}

impl Blobs for LocalBlobs {
    fn trace(&self, blob: &Blob) -> Result<PathBuf, Failed> {
        Ok(self.file(blob)?.path.clone())
    }

    fn text(&self, blob: &Blob) -> Result<String, Failed> {
        let unknown = || Failed(format!("{} is not here", blob.name));
        self.texts.get(&blob.digest).cloned().ok_or_else(unknown)
    }

    fn ensure_same(&self, blob: &Blob) -> Result<(), Failed> {
        let file = self.file(blob)?;
        let about = fs::metadata(&file.path);
        let is_same = about
            .is_ok_and(|about| about.len() == file.bytes && about.modified().ok() == file.changed);
        let changed = || Failed("it has changed since the batch began: run it again".to_owned());
        is_same.then_some(()).ok_or_else(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_everything_once() {
        for (start, end) in [(0, 0), (0, 1), (3, 10), (5, 6)] {
            for parts in 1..12 {
                let ranges = split(start..end, parts);
                assert!(ranges.len() <= parts && ranges.iter().all(|range| !range.is_empty()));
                let all: Vec<usize> = ranges.into_iter().flatten().collect();
                assert_eq!(all, (start..end).collect::<Vec<_>>());
            }
        }
    }
}
