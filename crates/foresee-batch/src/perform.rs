//! Does a job.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use foresee_formats::TraceFile;
use foresee_predict::checks::Decided;
use foresee_predict::session::{Listener, Session, SessionError, Settings, Specification};
use foresee_report::{Report, Tests};
use foresee_spec::Diagnostic;
use foresee_support::causes::sentence;
use foresee_trace::Mode;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::job::{Blob, Job, VERSION};

/// Where the contents are that jobs name.
pub trait Blobs {
    /// A file with a trace.
    fn trace(&self, blob: &Blob) -> Result<PathBuf, Failed>;

    /// The text of a specification.
    fn text(&self, blob: &Blob) -> Result<String, Failed>;

    /// What the job with this key has decided, if that is known here.
    fn decided(&self, key: Digest) -> Option<Decided> {
        let _ = key;
        None
    }

    /// Fails if the file of a trace is no longer the one that the blob names.
    fn ensure_same(&self, blob: &Blob) -> Result<(), Failed> {
        let _ = blob;
        Ok(())
    }
}

/// Why a job has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// The answer of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The report.
    pub report: Report,
    /// What should be known of the specifications, rendered.
    pub warnings: Vec<String>,
    /// What it has decided, in place of a report, if only that was asked.
    pub decided: Option<Decided>,
}

/// What became of a job.
pub type Performed = Result<Answer, Failed>;

/// Does a job. Whatever goes wrong with it, a mistake of foresee included, is its own failure.
pub fn perform(job: &Job, blobs: &dyn Blobs, cores: usize) -> Performed {
    let performed = catch_unwind(AssertUnwindSafe(|| answer(job, blobs, cores)));
    performed.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Failed(format!(
            "internal error, so nothing is claimed here: {text}. Please report this mistake of \
             foresee, with the trace"
        )))
    })
}

fn answer(job: &Job, blobs: &dyn Blobs, cores: usize) -> Performed {
    if job.foresee != VERSION {
        return Err(Failed(format!(
            "the job is for foresee {}, and this is {VERSION}",
            job.foresee
        )));
    }
    let specs = job.specs.iter().map(|blob| Ok((blob.name.as_str(), blobs.text(blob)?)));
    let specs = specs.collect::<Result<Vec<_>, Failed>>()?;
    let mut session = session(&job.settings, cores, &specs, &job.checks, job.is_default)?;
    session.answer_only(job.questions.clone());
    let format = job.input_format.as_deref().map(foresee_formats::by_name).transpose();
    let format = format.map_err(|error| Failed(error.to_string()))?;
    let mode = if job.repair { Mode::Repair } else { Mode::Reject };
    let file = TraceFile::new(&job.trace.name).in_format(format).with_mode(mode);
    let file = file.copied_to(blobs.trace(&job.trace)?);
    let mut listener = Warnings::default();
    if let Some(part) = job.candidates {
        let decided = session.decide(part, &file, &mut listener).map_err(|error| failed(&error))?;
        blobs.ensure_same(&job.trace)?;
        let (report, warnings) = (Report::default(), Vec::new());
        return Ok(Answer { report, warnings, decided: Some(decided) });
    }
    let decided = job.decided_by.iter().filter_map(|&key| blobs.decided(key));
    decided.for_each(|decided| session.know(decided));
    let examined = session.run(&file, &mut listener).map_err(|error| failed(&error))?;
    let tests = Tests::marked_in(&file, &examined).map_err(|error| failed(&error.into()))?;
    let report = Report::of(examined, &tests);
    blobs.ensure_same(&job.trace)?;
    Ok(Answer { report, warnings: listener.0, decided: None })
}

/// A session with these questions.
pub(crate) fn session(
    settings: &Settings,
    cores: usize,
    specs: &[(&str, String)],
    checks: &[String],
    is_default: bool,
) -> Result<Session, Failed> {
    let mut settings = settings.clone();
    settings.limits.cores = cores.max(1);
    // Others run beside it.
    settings.is_alone = false;
    let mut session = Session::new(settings);
    for (name, text) in specs {
        let spec = Specification::new(name, text).map_err(|bad| Failed(bad.to_string()))?;
        session.add_spec(spec);
    }
    for check in checks {
        session.add_check(check).map_err(|error| Failed(error.to_string()))?;
    }
    if is_default {
        session.add_default_checks();
    }
    Ok(session)
}

/// An error with all its causes, and what helps.
fn failed(error: &SessionError) -> Failed {
    let mut text = sentence(error);
    if let SessionError::Read(read) | SessionError::Stored(read) = error
        && let Some(help) = read.help()
    {
        text += &format!(" (help: {help})");
    }
    Failed(text)
}

/// Collects what should be known of specifications.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Listener for Warnings {
    fn warning(&mut self, spec: &Specification, diagnostics: &[Diagnostic]) {
        self.0.push(foresee_spec::render(diagnostics, &spec.name, &spec.text, false));
    }

    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// How large a result may be before it is compressed.
const MOST_BYTES: usize = 256 << 20;

/// A stored result.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<P> {
    foresee: String,
    key: Digest,
    performed: P,
}

/// A stored result that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the stored result cannot be used: {0}")]
pub struct BadAnswer(String);

/// A result as it is stored: JSON, compressed, with a checksum.
pub fn encode(key: Digest, performed: &Performed) -> Result<Vec<u8>, BadAnswer> {
    let bad = |error: &dyn std::fmt::Display| BadAnswer(error.to_string());
    let stored = Stored { foresee: VERSION.to_owned(), key, performed };
    let json = serde_json::to_vec(&stored).map_err(|error| bad(&error))?;
    if json.len() > MOST_BYTES {
        return Err(BadAnswer(format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    let mut out = Vec::new();
    let written = zstd::Encoder::new(&mut out, 1).and_then(|mut encoder| {
        encoder.include_checksum(true)?;
        std::io::Write::write_all(&mut encoder, &json)?;
        encoder.finish().map(drop)
    });
    written.map_err(|error| bad(&error))?;
    Ok(out)
}

/// Reads a result that was stored under this key.
pub fn decode(key: Digest, bytes: &[u8]) -> Result<Performed, BadAnswer> {
    let bad = |error: &dyn std::fmt::Display| BadAnswer(error.to_string());
    let decoder = zstd::Decoder::new(bytes).map_err(|error| bad(&error))?;
    let mut json = Vec::new();
    let read = decoder.take(MOST_BYTES as u64 + 1).read_to_end(&mut json);
    read.map_err(|error| bad(&error))?;
    if json.len() > MOST_BYTES {
        return Err(BadAnswer(format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    let stored: Stored<Performed> = serde_json::from_slice(&json).map_err(|error| bad(&error))?;
    if stored.key != key {
        return Err(BadAnswer("it belongs to another job".to_owned()));
    }
    if stored.foresee != VERSION {
        let other = &stored.foresee;
        return Err(BadAnswer(format!("foresee {other} wrote it, and this is {VERSION}")));
    }
    Ok(stored.performed)
}
