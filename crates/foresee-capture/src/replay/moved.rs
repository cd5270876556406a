//! Recognises the places of a schedule in another build of the program.
//!
//! Addresses change with every build, and lines with every edit. A place is known by its function, the text of its line, the
//! operation, and its number among the places that have these in common.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use foresee_rt::format::Tag;

use super::{Place, Schedule};
use crate::log::{Log, LogError, What};
use crate::symbols::Symbols;

/// How a place is recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// The tag of the operation.
    pub tag: u8,
    /// The number among the places with the same function, text and operation, from zero.
    pub number: usize,
    /// The function.
    pub function: String,
    /// The text of the line, without the space around it; its number if the source is not there.
    pub text: String,
}

/// The lines of source files.
#[derive(Default)]
struct Sources(HashMap<PathBuf, Option<Vec<String>>>);

impl Sources {
    fn line(&mut self, file: &str, number: u64) -> String {
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path).ok()?;
            Some(text.lines().map(|line| line.trim().to_owned()).collect())
        };
        let path = PathBuf::from(file);
        let lines = self.0.entry(path).or_insert_with_key(|path| read(path));
        let line = lines.as_ref().and_then(|lines| lines.get(number.checked_sub(1)? as usize));
        line.cloned().unwrap_or_else(|| format!("line {number}"))
    }
}

/// How to recognise operations at places of the program itself, which are tags and return addresses: by these.
pub(super) fn lines(
    operations: &BTreeSet<(u64, u8)>,
    log: &Log,
    symbols: &Symbols,
) -> HashMap<(u64, u8), Line> {
    let (mut sources, mut counts, mut found) = (Sources::default(), HashMap::new(), HashMap::new());
    // In the order of their addresses.
    for &(pc, tag) in operations {
        if log.place(pc).module != Some(0) {
            continue;
        }
        let place = symbols.place(pc.wrapping_sub(1));
        let Some(frame) = place.0.first() else { continue };
        let (Some(file), Some(number)) = (&frame.file, frame.line) else { continue };
        let function = frame.function.clone().unwrap_or_default();
        let text = sources.line(file, number.into());
        let mut line = Line { tag, number: 0, function, text };
        let count: &mut usize = counts.entry(line.clone()).or_default();
        line.number = *count;
        *count += 1;
        found.insert((pc, tag), line);
    }
    found
}

/// The operations of a log: return addresses and tags.
fn operations(log: &Log) -> Result<BTreeSet<(u64, u8)>, LogError> {
    let mut all = BTreeSet::new();
    let mut records = log.raw()?;
    while let Some(record) = records.next_record()? {
        let tag = match record.what {
            What::Access(access, size) => super::steps::tag_of(access, size),
            What::Sync(tag) if tag.is_step() && tag != Tag::ThreadEnd => tag as u8,
            _ => continue,
        };
        all.insert((record.pc, tag));
    }
    Ok(all)
}

impl Schedule {
    /// The schedule for another build of the program, of which this is the log of some run; and the steps whose places that run
    /// does not have.
    pub fn moved_to(
        &self,
        log: &Log,
        symbols: &Symbols,
    ) -> Result<(Schedule, Vec<usize>), LogError> {
        let base = log.modules.first().map_or(0, |module| module.base);
        let known = lines(&operations(log)?, log, symbols);
        let known: HashMap<&Line, u64> =
            known.iter().map(|((pc, _), line)| (line, pc.wrapping_sub(base))).collect();
        let moved: HashMap<u64, Option<u64>> =
            self.lines.iter().map(|(at, line)| (*at, known.get(line).copied())).collect();
        let (mut schedule, mut lost) = (self.clone(), Vec::new());
        for (i, step) in schedule.steps.iter_mut().enumerate() {
            if let Place::Program(at) = &mut step.place {
                match moved.get(at).copied().flatten() {
                    Some(to) => *at = to,
                    None => lost.push(i),
                }
            }
        }
        Ok((schedule, lost))
    }
}
