//! All jobs of a plan, and one report on them.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use foresee_predict::checks::Decided;
use foresee_predict::info::BATCH;
use foresee_predict::{Analysed, Conclusion};
use foresee_report::{Merger, Parts, Report};
use foresee_trace::Outcome;

use crate::cache::Cache;
use crate::digest::Digest;
use crate::job::{Blob, Job};
use crate::parts::join;
use crate::perform::{Answer, Blobs, Failed, perform};
use crate::plan::{LocalBlobs, Plan, Planned};
use crate::queue::{Queue, QueueError};
use crate::shard::Shard;

/// How far a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of different jobs.
    pub jobs: usize,
    /// How many have a result, or have failed.
    pub done: usize,
    /// How many results were there from the start.
    pub cached: usize,
    /// How many have failed.
    pub failed: usize,
}

/// What a batch came to.
#[derive(Clone, Debug)]
pub struct Done {
    /// The merged report. A job that failed makes it incomplete.
    pub report: Report,
    /// What should be known of the specifications, each once with the first trace that it was said of; no more than some.
    pub warnings: Vec<String>,
    /// How many jobs there were.
    pub progress: Progress,
    /// The results that the report rests on.
    pub keys: HashSet<Digest>,
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A shard has nothing to do.
    #[error("shard {0} has no job: there are only {1}")]
    EmptyShard(Shard, usize),
    /// No job could be done.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Has all jobs of a shard done that have no result yet, and merges the results.
pub fn run(
    plan: &Plan,
    shard: Shard,
    cache: &Cache,
    queue: &dyn Queue,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, BatchError> {
    let jobs = plan.jobs.iter().enumerate().filter(|(number, _)| shard.has(*number));
    let jobs: Vec<Asked<'_>> = jobs.map(|(_, planned)| Asked::new(planned)).collect();
    if jobs.is_empty() {
        return Err(BatchError::EmptyShard(shard, plan.jobs.len()));
    }
    let mut different: HashSet<Digest> = HashSet::new();
    let mut rounds = Rounds::default();
    for asked in &jobs {
        if let Some((key, job)) = asked.job()
            && different.insert(key)
            && !cache.has(key)
        {
            rounds.add(key, job, asked.planned.candidate_parts, cache);
        }
    }
    let unreadable = jobs.iter().filter(|asked| asked.job().is_none()).count();
    let Rounds { decide, answer, both } = rounds;
    let cached = different.len() - answer.len() - both.len();
    let mut now = Progress {
        jobs: different.len() + decide.len() + unreadable,
        done: cached + unreadable,
        cached,
        failed: unreadable,
    };
    progress(now);
    let mut failed: HashMap<Digest, Failed> = HashMap::new();
    let blobs = WithResults { blobs: &plan.blobs, cache };
    let first = [decide, both].concat();
    let decides = |key: &Digest| !different.contains(key);
    for round in [&first, &answer] {
        let wanted: Vec<&Job> = round.iter().map(|(_, job)| job).collect();
        let ended = queue.perform(&wanted, &blobs, &mut |number, performed| {
            let key = round[number].0;
            match performed {
                Ok(answer) => cache
                    .put(key, answer)
                    .map_err(|error| QueueError(cannot_store(cache, &error)))?,
                // The job that it was to help does everything itself.
                Err(_) if decides(&key) => {}
                Err(why) => {
                    failed.insert(key, why);
                    now.failed += 1;
                }
            }
            now.done += 1;
            progress(now);
            Ok(())
        });
        if let Err(error) = ended {
            if now.done == unreadable {
                return Err(error.into());
            }
            // What is done stays done, and the rest is listed.
            for (key, _) in first.iter().chain(&answer) {
                if !decides(key) && !cache.has(*key) {
                    failed.entry(*key).or_insert_with(|| Failed(error.to_string()));
                }
            }
            now.failed = unreadable + failed.len();
            break;
        }
    }
    let mut told = Told { plan, cache, failed, warnings: Vec::new(), warned: HashSet::new() };
    let report = told.merge(&jobs);
    Ok(Done { report, warnings: told.warnings, progress: now, keys: different })
}

fn cannot_store(cache: &Cache, error: &std::io::Error) -> String {
    format!("cannot store a result in {}: {error}", cache.folder().display())
}

/// Jobs that have no result yet, with their keys.
#[derive(Default)]
struct Rounds {
    /// Those that decide candidates of others ...
    decide: Vec<(Digest, Job)>,
    /// ... which answer in the second round.
    answer: Vec<(Digest, Job)>,
    /// Those that do both.
    both: Vec<(Digest, Job)>,
}

impl Rounds {
    fn add(&mut self, key: Digest, job: &Job, parts: u32, cache: &Cache) {
        let mut job = job.clone();
        for part in job.parts(parts).collect::<Vec<_>>() {
            let key = part.key();
            job.decided_by.push(key);
            if !cache.has(key) {
                self.decide.push((key, part));
            }
        }
        let round = if parts == 0 { &mut self.both } else { &mut self.answer };
        round.push((key, job));
    }
}

/// Contents of this machine, with the results of earlier jobs.
struct WithResults<'b> {
    blobs: &'b LocalBlobs,
    cache: &'b Cache,
}

impl Blobs for WithResults<'_> {
    fn trace(&self, blob: &Blob) -> Result<PathBuf, Failed> {
        self.blobs.trace(blob)
    }

    fn text(&self, blob: &Blob) -> Result<String, Failed> {
        self.blobs.text(blob)
    }

    fn decided(&self, key: Digest) -> Option<Decided> {
        self.cache.get(key)?.decided
    }

    fn ensure_same(&self, blob: &Blob) -> Result<(), Failed> {
        self.blobs.ensure_same(blob)
    }
}

/// A job with its key.
struct Asked<'p> {
    planned: &'p Planned,
    key: Option<Digest>,
}

impl<'p> Asked<'p> {
    fn new(planned: &'p Planned) -> Asked<'p> {
        Asked { planned, key: planned.job.as_ref().ok().map(Job::key) }
    }

    fn job(&self) -> Option<(Digest, &'p Job)> {
        Some((self.key?, self.planned.job.as_ref().ok()?))
    }
}

/// Whether two jobs of a trace are parts of one.
fn is_part(a: &Job, b: &Job) -> bool {
    (&a.specs, &a.checks, a.is_default) == (&b.specs, &b.checks, b.is_default)
}

/// The results, as they are told.
struct Told<'b> {
    plan: &'b Plan,
    cache: &'b Cache,
    failed: HashMap<Digest, Failed>,
    warnings: Vec<String>,
    /// What has been said, of whichever trace.
    warned: HashSet<String>,
}

/// How many warnings are shown: a specification that does not fit is told soon enough.
const MOST_WARNINGS: usize = 20;

impl Told<'_> {
    /// One report on all jobs.
    fn merge(&mut self, jobs: &[Asked<'_>]) -> Report {
        // Several groups of questions may be about one trace.
        let mut traces: Vec<Vec<&Asked<'_>>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut asked_before: HashSet<(&str, Digest)> = HashSet::new();
        for asked in jobs {
            // Several of them may ask the same.
            if asked.key.is_some_and(|key| !asked_before.insert((&asked.planned.trace, key))) {
                continue;
            }
            let place = *places.entry(&asked.planned.trace).or_insert(traces.len());
            match traces.get_mut(place) {
                Some(of_trace) => of_trace.push(asked),
                None => traces.push(vec![asked]),
            }
        }
        let mut merger = Merger::new(Parts::Traces(traces.len()));
        for of_trace in &traces {
            let label = &of_trace[0].planned.trace;
            let mut questions: Vec<Vec<Report>> = Vec::new();
            let mut last: Option<&Job> = None;
            let mut lost = Vec::new();
            for asked in of_trace {
                let answer = match asked.job() {
                    Some((key, job)) => self.answer(key, job).map(|answer| (job, answer)),
                    None => Err(asked
                        .planned
                        .job
                        .as_ref()
                        .err()
                        .cloned()
                        .unwrap_or(Failed(String::new()))),
                };
                match answer {
                    Ok((job, answer)) => {
                        self.warn(label, answer.warnings);
                        if !last.is_some_and(|last| is_part(last, job)) {
                            questions.push(Vec::new());
                        }
                        last = Some(job);
                        if let Some(parts) = questions.last_mut() {
                            parts.push(answer.report);
                        }
                    }
                    Err(why) => lost.push(not_answered(asked.planned, &why)),
                }
            }
            let mut report = join(questions).unwrap_or_default();
            report.analysed.append(&mut lost);
            merger.add(label, report);
        }
        let mut report = merger.finish().unwrap_or_default();
        report.name = match traces.as_slice() {
            [one] => one[0].planned.trace.clone(),
            all => format!("{} traces", all.len()),
        };
        report
    }

    fn warn(&mut self, trace: &str, warnings: Vec<String>) {
        for warning in warnings {
            if self.warnings.len() < MOST_WARNINGS && self.warned.insert(warning.clone()) {
                self.warnings.push(format!("{trace}:\n{warning}"));
            }
        }
    }

    /// A result. One that was there and cannot be read is computed here.
    fn answer(&self, key: Digest, job: &Job) -> Result<Answer, Failed> {
        if let Some(why) = self.failed.get(&key) {
            return Err(why.clone());
        }
        match self.cache.get(key) {
            Some(answer) => Ok(answer),
            None => perform(job, &self.plan.blobs, job.settings.limits.cores),
        }
    }
}

/// What is said of a job that has no answer. Of a message with many lines, as mistakes in a specification have, those that
/// say what is wrong are enough: the pictures of the source are for the one who asks again, of one trace.
fn not_answered(planned: &Planned, why: &Failed) -> Analysed {
    let errors: Vec<&str> = why.0.lines().filter(|line| line.starts_with("error")).collect();
    let why = match errors.as_slice() {
        [] => why.0.lines().next().unwrap_or_default().to_owned(),
        errors => errors.join("; "),
    };
    Analysed {
        name: BATCH,
        property: Some(format!("{} ({})", planned.trace, planned.question)),
        outcome: Outcome::NotAnswered,
        conclusion: Conclusion::Other,
        statement: format!("not answered: {why}"),
        notes: Vec::new(),
        stats: Vec::new(),
    }
}
