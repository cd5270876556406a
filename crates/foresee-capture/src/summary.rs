//! Describes what was captured and what was not.

use std::path::Path;

use foresee_support::count::count;

use crate::log::{Log, Stats};
use crate::symbols::{Coverage, Symbols};

/// Libraries between a program and the system. The synchronisation that they perform is recorded at
/// their interface, and they do not access a program's variables otherwise.
const SYSTEM: [&str; 19] = [
    "linux-vdso",
    "ld-linux",
    "libc.so",
    "libc-",
    "libm.so",
    "libpthread",
    "libdl.so",
    "librt.so",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "libunwind",
    "libatomic",
    "libforesee_rt",
    "libresolv",
    "libgomp",
    "libomp",
    "libiomp",
    "libnss_",
];

/// Whether a file is one of them.
pub(crate) fn is_system(path: &Path) -> bool {
    let name = file_name(path);
    SYSTEM.iter().any(|library| name.starts_with(library))
}

/// What was captured of a process.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Modules with hooks.
    pub captured: usize,
    /// All modules, except those of the system.
    pub modules: usize,
    /// Functions with hooks and functions in all, in modules with hooks that have debugging
    /// information.
    pub functions: Coverage,
    /// Names of what was not built for capture.
    pub missing: Vec<String>,
    /// Modules with hooks that have no debugging information.
    pub nameless: Vec<String>,
    /// Functions in which not every access has a hook, with the reason.
    pub doubtful: Vec<(String, String)>,
    /// Source files with only the compiler's hooks, which are incomplete.
    pub incomplete_units: u64,
}

impl Summary {
    /// What was captured of the process of a log. Libraries whose file names begin with one of
    /// `trusted` do not count as missing.
    pub fn new(log: &Log, symbols: &Symbols, trusted: &[String]) -> Summary {
        let mut summary = Summary::default();
        for module in &log.modules {
            let name = file_name(&module.path);
            let is_trusted = trusted.iter().any(|t| name.starts_with(t.as_str()));
            // libc loads tables of character sets on demand.
            let is_table = module.path.parent().is_some_and(|folder| folder.ends_with("gconv"));
            if name.is_empty() || is_table || is_system(&module.path) {
                continue;
            }
            summary.modules += 1;
            let known = symbols.modules().find(|m| m.path == module.path);
            let coverage = known.and_then(|m| symbols.coverage(m));
            if !module.instrumented && coverage.is_none_or(|c| c.captured_units == 0) {
                if !is_trusted {
                    summary.missing.push(name);
                }
                continue;
            }
            summary.captured += 1;
            let notes = known.and_then(|m| symbols.notes(m)).cloned().unwrap_or_default();
            if !is_trusted {
                summary.doubtful.extend(notes.doubts);
                let units = coverage.map_or(0, |c| c.captured_units);
                summary.incomplete_units += units.saturating_sub(notes.units as u64);
            }
            let Some(coverage) = coverage else {
                summary.nameless.push(name);
                continue;
            };
            let all = &mut summary.functions;
            all.units += coverage.units;
            all.captured_units += coverage.captured_units;
            all.functions += coverage.functions;
            all.captured_functions += coverage.captured_functions;
            let left = coverage.units - coverage.captured_units;
            if left > 0 && !is_trusted {
                let (s, were) = if left == 1 { ("", "was") } else { ("s", "were") };
                summary.missing.push(format!(
                    "{left} source file{s} of {name}, which {were} compiled without it"
                ));
            }
        }
        summary
    }

    /// One line: what was captured, and how exactly.
    pub fn line(&self, log: &Log, stats: &Stats) -> String {
        let mut line = format!("captured {} of {}", self.captured, count(self.modules, "module"));
        if self.functions.functions > 0 {
            let (some, all) = (self.functions.captured_functions, self.functions.functions);
            line += &format!(", {some} of {}", count(all, "function"));
        }
        let is_complete = self.doubtful.is_empty() && self.incomplete_units == 0;
        let exact = stats.events.saturating_sub(stats.inexact + stats.external_writes);
        line += &match stats.events {
            0 => ", no events".to_owned(),
            n if exact == n && is_complete => ", all events exact".to_owned(),
            n if exact == n => ", all recorded events exact".to_owned(),
            // Rounded down: 100 % is printed only if it is exact.
            n => {
                format!(", {:.2} % of events exact", (exact as f64 / n as f64 * 1e4).floor() / 1e2)
            }
        };
        match self.doubtful.len() {
            0 => {}
            n => line += &format!(", {} not exact", count(n, "function")),
        }
        if log.header.filtered {
            line += "; what only one thread touched is left out";
        }
        line
    }

    /// Why the trace is incomplete, if it is.
    pub fn partial(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if !self.missing.is_empty() {
            let names = self.missing.join(", ");
            reasons.push(format!("not built for capture: {names}; build it with `foresee cc`, or say that it touches nothing shared with --trust"));
        }
        if !self.doubtful.is_empty() {
            const SHOWN: usize = 4;
            let each =
                self.doubtful.iter().take(SHOWN).map(|(name, why)| format!("{name} ({why})"));
            let mut names = each.collect::<Vec<_>>().join(", ");
            let more = self.doubtful.len().saturating_sub(SHOWN);
            if more > 0 {
                names += &format!(" and {more} more");
            }
            reasons.push(format!("functions with accesses of memory that cannot be seen: {names}"));
        }
        if self.incomplete_units > 0 {
            let files = count(self.incomplete_units, "source file");
            reasons.push(format!("{files} with the compiler's hooks alone, which leave accesses out: build again with `foresee cc`"));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
