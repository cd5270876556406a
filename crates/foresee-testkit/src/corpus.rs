//! Worked examples with known answers, on which every analysis is run.
//!
//! Each `testdata/cases/*.toml` has a list of cases:
//!
//! ```toml
//! [[case]]
//! name = "lock-swap"
//! why = "the sections can swap: there is no race, but the read may see the initial value"
//! trace = '''
//! T1|acq(l)|
//! T1|w(x)|
//! T1|rel(l)|
//! T2|acq(l)|
//! T2|r(x)|
//! T2|rel(l)|
//! '''
//! breakable = { 4 = ["INIT"] }
//! ```
//!
//! The trace is in the std format; events are counted from zero. All other keys are columns: the
//! expected result of one kind of analysis. A consumer reads the columns that it knows;
//! [`COLUMNS`] lists all of them.

use std::path::{Path, PathBuf};

use foresee_trace::Trace;
use toml::{Table, Value};

use crate::notation::std_trace;

/// Every column and its content. The Mazurkiewicz order is meant unless another is named.
pub const COLUMNS: &[(&str, &str)] = &[
    ("relevant", "variables whose writes are the relevant events"),
    ("cuts", "the number of consistent cuts of the relevant events"),
    ("runs", "the number of runs of the relevant events"),
    ("clocks", "for each relevant event, the number of relevant events of each thread up to it"),
    ("breakable", "for each read that could see other writes, which: indices or \"INIT\""),
    (
        "patterns",
        "lists of labels, whether they are `observed` in this order, whether they are `predictable`, \
         and the greatest `tuple` of events that shows it",
    ),
    (
        "properties",
        "specifications, the number of relevant runs that violate them (`violating_runs`), and \
         whether the `observed` one does",
    ),
    (
        "monitorability",
        "specifications, whether the `observed` order violates them, and whether the `verdict` is \
         `monitorable` or `schedule-dependent`",
    ),
    (
        "reorderings",
        "specifications, and whether each space of reorderings shows a violation: `Y` yes, `f` only \
         if the last read of a thread may see another value, `-` no",
    ),
    (
        "goals",
        "events that happen in this order (`executed`) and those that are `next`, and whether they \
         are so as `observed`, if all happen and every read sees what it saw (`strict`), for the \
         `sliced` search, and in any `correct` reordering: `Y` yes, `-` no",
    ),
    (
        "atomicity",
        "what the check says of the trace: `observed`, `predicted`, `impossible` (proved), \
         `conditional` (only if a read sees another value), or `none` (found)",
    ),
    ("broken", "the names of the regions that the observed order breaks"),
    ("lifetime", "the same of the check for lifetimes"),
    ("races", "pairs of accesses, and which method calls them a race: `Y` yes, `-` no"),
    (
        "deadlocks",
        "the events at which threads would wait for each other, each for the next, and which method \
         lets them through: `Y` yes, `-` no",
    ),
    ("waits", "the beginnings of waits that may never end"),
    ("settled", "whether no deadlock is possible besides those, which is proved"),
];

/// One worked example.
#[derive(Debug)]
pub struct Case {
    /// A unique name.
    pub name: String,
    /// What the case demonstrates.
    pub why: String,
    /// The trace, well-formed and with inner lock operations distinguished.
    pub trace: Trace,
    columns: Table,
}

impl Case {
    /// The expectation in a column, if the case has one.
    pub fn expect(&self, column: &str) -> Option<&Value> {
        self.columns.get(column)
    }

    /// The names of the columns that the case has.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }
}

/// The directory of the cases.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases")
}

/// All cases of all files.
///
/// # Panics
/// If a file cannot be read or a case is incomplete.
pub fn cases() -> Vec<Case> {
    let read = || -> Result<Vec<Case>, String> {
        let listing = std::fs::read_dir(directory()).map_err(|e| e.to_string())?;
        let paths: Result<Vec<PathBuf>, _> = listing.map(|entry| entry.map(|e| e.path())).collect();
        let mut paths = paths.map_err(|e| e.to_string())?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let mut cases = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string());
            let parsed = text.and_then(|text| parse(&text));
            cases.extend(parsed.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        Ok(cases)
    };
    read().unwrap_or_else(|error| panic!("the corpus in {}: {error}", directory().display()))
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut file: Table = text.parse().map_err(|error| format!("{error}"))?;
    let Some(Value::Array(cases)) = file.remove("case") else {
        return Err("there is no [[case]]".to_owned());
    };
    if let Some(key) = file.keys().next() {
        return Err(format!("`{key}` does not belong to a [[case]]"));
    }
    cases.into_iter().map(parse_case).collect()
}

fn parse_case(case: Value) -> Result<Case, String> {
    let Value::Table(mut columns) = case else {
        return Err("a case is a table".to_owned());
    };
    let name = text(&mut columns, "name")?;
    let mut rest = || {
        let why = text(&mut columns, "why")?;
        let trace = text(&mut columns, "trace")?;
        let trace = std_trace(trace.trim_start(), true).map_err(|error| error.to_string())?;
        Ok((why, trace))
    };
    let (why, trace) = rest().map_err(|error: String| format!("case `{name}`: {error}"))?;
    Ok(Case { name, why, trace, columns })
}

fn text(columns: &mut Table, key: &str) -> Result<String, String> {
    match columns.remove(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        _ => Err(format!("a case needs a text `{key}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_cases_are_refused() {
        let says = |text: &str, expected: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        says("", "no [[case]]");
        says("x = 1\n[[case]]", "`x` does not belong");
        says("[[case]]\nwhy = 'a'", "a text `name`");
        says("[[case]]\nname = 'a'\nwhy = ' '", "case `a`: a case needs a text `why`");
        says("[[case]]\nname = 'a'\nwhy = 'b'\ntrace = 'T1|rel(l)|'", "case `a`: line 1");
    }
}
