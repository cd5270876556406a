//! How a program that records itself hands its traces to `foresee run`, which names a folder for them in the environment.
//!
//! A recording has a file from its beginning: `PROCESS-NUMBER.recording`, which is empty. At its end that is replaced by the
//! trace, `PROCESS-NUMBER.fse`, or contains the reason why there is none. So a process that ends too early, however it does,
//! is not taken for one that recorded nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

use foresee_trace::Trace;

use crate::{CopyError, Native, copy};

/// The variable of the environment that names the folder for logs and recordings.
pub const FOLDER: &str = "FORESEE_CAPTURE";

const UNFINISHED: &str = "recording";
const FINISHED: &str = "fse";

/// A recording that `foresee run` waits for.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Begins a recording, if the program was started by `foresee run`.
    pub fn begin() -> Option<Unfinished> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let folder = PathBuf::from(env::var_os(FOLDER)?);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}.{UNFINISHED}", process::id()));
        fs::File::create_new(&path).ok()?;
        Some(Unfinished(path))
    }

    /// Hands the trace over.
    pub fn finish(self, trace: &Trace) -> Result<(), CopyError> {
        copy(&mut trace.source(), &self.0.with_extension(FINISHED), &Native)?;
        let failed = |error| CopyError::Write(self.0.clone(), error);
        fs::remove_file(&self.0).map_err(failed)
    }

    /// Says why there is no trace.
    pub fn fail(self, why: &str) -> io::Result<()> {
        fs::write(self.0, why)
    }
}

/// A recording of a process that has ended.
#[derive(Debug)]
pub struct Recorded {
    /// The process.
    pub process: u32,
    /// Its number among those of the process, from 1.
    pub number: u32,
    /// The file of the trace, or why there is none.
    pub trace: Result<PathBuf, String>,
}

/// All recordings in a folder, by process and number.
pub fn find(folder: &Path) -> io::Result<Vec<Recorded>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let (Some(stem), Some(ending)) = (path.file_stem(), path.extension()) else { continue };
        let numbers = stem.to_str().and_then(|stem| stem.split_once('-'));
        let numbers = numbers.map(|(process, number)| (process.parse(), number.parse()));
        let Some((Ok(process), Ok(number))) = numbers else { continue };
        let trace = match ending.to_str() {
            Some(FINISHED) => Ok(path),
            // A trace beside it is complete: the process ended before it could remove this file.
            Some(UNFINISHED) if path.with_extension(FINISHED).exists() => continue,
            Some(UNFINISHED) => Err(match fs::read_to_string(&path)? {
                why if why.is_empty() => {
                    "the process ended before all clones of the recorder were dropped".to_owned()
                }
                why => why,
            }),
            _ => continue,
        };
        found.push(Recorded { process, number, trace });
    }
    found.sort_by_key(|recorded| (recorded.process, recorded.number));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_found_whether_it_ended_or_not() {
        let folder = tempfile::tempdir().expect("there is room");
        let begin = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, "").expect("there is room");
            Unfinished(path)
        };
        begin("7-2.recording").finish(&Trace::default()).expect("there is room");
        begin("7-10.recording").fail("too many events").expect("there is room");
        begin("7-1.recording");
        begin("12.tail");
        begin("4-x.fse");
        // Killed after the trace was in place.
        begin("8-1.recording").finish(&Trace::default()).expect("there is room");
        begin("8-1.recording");
        let found = find(folder.path()).expect("it can be read");
        let seen: Vec<_> =
            found.iter().map(|r| (r.process, r.number, r.trace.as_ref().err())).collect();
        let early = "the process ended before all clones of the recorder were dropped".to_owned();
        let many = "too many events".to_owned();
        assert_eq!(seen, [(7, 1, Some(&early)), (7, 2, None), (7, 10, Some(&many)), (8, 1, None)]);
    }
}
