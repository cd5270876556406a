//! Which traces and specifications there are: files, folders, patterns.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The endings by which traces are recognised in a folder. A file that is named is taken whatever it is called.
const TRACES: &[&str] = &["std", "rr", "csv", "jsonl", "fse"];
const SPEC: &str = "spec";
const COMPRESSED: &[&str] = &["gz", "zst"];

/// How deep folders may be nested.
const DEEPEST: usize = 64;

/// Files, in the order in which they were named, each once.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Traces.
    pub traces: Vec<PathBuf>,
    /// Specifications.
    pub specs: Vec<PathBuf>,
    /// How many files in folders are neither by their names.
    pub left_out: usize,
    seen: HashSet<PathBuf>,
}

/// Why files could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// There is nothing of this name.
    #[error("there is no file or folder {}", .0.display())]
    Missing(PathBuf),
    /// The log of a JVM.
    #[error("{} is the log of a JVM, a folder, which a batch cannot take: store the run's trace with `foresee run --keep FILE`", .0.display())]
    Jvm(PathBuf),
    /// A pattern cannot be read.
    #[error("{pattern}: {error}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        error: glob::PatternError,
    },
    /// No file matches a pattern.
    #[error("no file matches {0}")]
    NoMatch(String),
    /// A folder cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A folder has nothing to check, or to check it against.
    #[error("{} has neither a trace (*.std, *.rr, *.csv, *.jsonl, *.fse, also compressed) nor a specification (*.spec)", .0.display())]
    Empty(PathBuf),
    /// Folders are nested too deeply.
    #[error("{}: folders are nested more than {DEEPEST} deep", .0.display())]
    Deep(PathBuf),
}

/// Files, folders and patterns as traces and specifications: a file `*.spec` is a specification.
pub fn collect(arguments: &[PathBuf]) -> Result<Collected, CollectError> {
    let mut all = Collected::default();
    for argument in arguments {
        let mut found = 0;
        for path in expand(argument)? {
            found += all.add(path, 0)?;
        }
        // Whoever names a folder expects something from it.
        if found == 0 {
            return Err(CollectError::Empty(argument.clone()));
        }
    }
    Ok(all)
}

/// What a file, a folder or a pattern stands for.
pub fn expand(argument: &Path) -> Result<Vec<PathBuf>, CollectError> {
    let text = argument.to_string_lossy();
    if argument.exists() {
        return Ok(vec![argument.to_owned()]);
    }
    if !text.contains(['*', '?', '[']) {
        return Err(CollectError::Missing(argument.to_owned()));
    }
    let options = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..glob::MatchOptions::new()
    };
    let matches = glob::glob_with(&text, options);
    let matches =
        matches.map_err(|error| CollectError::Pattern { pattern: text.to_string(), error })?;
    let mut paths = Vec::new();
    for found in matches {
        paths.push(found.map_err(|error| {
            let path = error.path().to_owned();
            CollectError::Read { path, error: error.into() }
        })?);
    }
    match paths.is_empty() {
        true => Err(CollectError::NoMatch(text.into_owned())),
        false => Ok(paths),
    }
}

impl Collected {
    /// Adds a file, or the files of a folder; how many there are.
    fn add(&mut self, path: PathBuf, depth: usize) -> Result<usize, CollectError> {
        if !path.is_dir() {
            let is_spec = ending(&path) == Some(SPEC);
            return Ok(self.take(&path, is_spec));
        }
        if ending(&path) == Some("jvm") {
            return Err(CollectError::Jvm(path));
        }
        if depth >= DEEPEST {
            return Err(CollectError::Deep(path));
        }
        let read = |error| CollectError::Read { path: path.clone(), error };
        let entries = fs::read_dir(&path).map_err(read)?;
        let mut inside = Vec::new();
        for entry in entries {
            inside.push(entry.map_err(read)?.path());
        }
        inside.sort();
        let mut found = 0;
        for path in inside {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            found += match ending(&path) {
                _ if name.starts_with('.') => 0,
                _ if path.is_dir() => self.add(path, depth + 1)?,
                Some(SPEC) => self.take(&path, true),
                Some(ending) if TRACES.contains(&ending) => self.take(&path, false),
                _ => {
                    self.left_out += 1;
                    0
                }
            };
        }
        Ok(found)
    }

    /// Takes a file once, by whichever name: `./a` is `a`.
    fn take(&mut self, path: &Path, is_spec: bool) -> usize {
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if self.seen.insert(path.clone()) {
            let kind = if is_spec { &mut self.specs } else { &mut self.traces };
            kind.push(path);
        }
        1
    }
}

/// The ending of a file's name, without that of its compression.
fn ending(path: &Path) -> Option<&str> {
    let last = path.extension()?.to_str()?;
    match COMPRESSED.contains(&last) {
        true => Path::new(path.file_stem()?).extension()?.to_str(),
        false => Some(last),
    }
}
