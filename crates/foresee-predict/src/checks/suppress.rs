//! Findings that somebody has looked at and does not want to see again.
//!
//! A file of suppressions is written as for ThreadSanitizer, one a line: the check, a colon, and a
//! pattern. It covers a finding of that check if the pattern occurs in the name of a function, file,
//! variable, lock, object or region that the finding is about; `*` stands for any text, `^` and `$`
//! for the beginning and the end of the name.
//!
//! ```text
//! # counters that may be wrong
//! race:stats.c
//! deadlock:^registry_lock$
//! ```

use foresee_trace::Finding;

use super::glob::Glob;
use super::{CHECKS, is_check};

/// What else ThreadSanitizer has, and foresee does not look for.
const FOREIGN: &[&str] = &["race_top", "thread", "mutex", "signal", "called_from_lib"];

/// One line of a file of suppressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The file, and the line in it.
    pub place: String,
    /// As it was written.
    pub text: String,
    check: String,
    pattern: Glob,
    /// How many findings it has covered.
    pub used: u64,
    /// Whether it is about something that foresee does not look for.
    pub is_foreign: bool,
}

impl Suppression {
    fn new(place: String, text: &str) -> Result<Suppression, String> {
        let expected = || {
            format!(
                "{place}: `{text}` should be a check, a colon and a pattern, as in `race:stats.c`; \
                 the checks are {}",
                CHECKS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
            )
        };
        let (check, pattern) = text.split_once(':').ok_or_else(expected)?;
        let is_foreign = FOREIGN.contains(&check);
        if !is_foreign && !is_check(check) || pattern.is_empty() {
            return Err(expected());
        }
        // A pattern may lie anywhere in a name, unless it says otherwise.
        let (start, rest) = match pattern.strip_prefix('^') {
            Some(rest) => ("", rest),
            None => ("*", pattern),
        };
        let (rest, end) = match rest.strip_suffix('$') {
            Some(rest) => (rest, ""),
            None => (rest, "*"),
        };
        let pattern = Glob::new(&format!("{start}{rest}{end}"));
        let (text, check) = (text.to_owned(), check.to_owned());
        Ok(Suppression { place, text, check, pattern, used: 0, is_foreign })
    }

    fn covers(&self, finding: &Finding) -> bool {
        let about = || finding.about.iter().flat_map(|text| names_in(text));
        self.check == finding.analysis && about().any(|name| self.pattern.matches(name))
    }
}

/// The names in a text that findings are about: `list.h:9(push)<queue.c:20(enqueue)` holds two
/// functions in two files, inlined into each other.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let is_place = text.ends_with(')') && !text.starts_with("heap(");
    let parts = text.split('<').filter(move |_| is_place);
    let inner = parts.flat_map(|part| part.strip_suffix(')').and_then(|p| p.split_once('(')));
    inner.flat_map(|(file, function)| [file, function]).chain((!is_place).then_some(text))
}

/// All suppressions of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    /// In the order in which they were given.
    pub all: Vec<Suppression>,
}

impl Suppressions {
    /// Adds those of a file; `name` is what the user knows it by. A line that is none is an error,
    /// which says where it is and what was expected.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                self.all.push(Suppression::new(format!("{name}:{}", i + 1), line)?);
            }
        }
        Ok(())
    }

    /// Whether a finding is covered; the suppression that does counts it.
    pub fn cover(&mut self, finding: &Finding) -> bool {
        match self.all.iter_mut().find(|one| one.covers(finding)) {
            Some(one) => {
                one.used += 1;
                true
            }
            None => false,
        }
    }

    /// How many findings were covered.
    pub fn used(&self) -> u64 {
        self.all.iter().map(|one| one.used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_trace::FindingKind;

    fn finding(check: &'static str, about: &[&str]) -> Finding {
        Finding {
            kind: FindingKind::Predicted,
            analysis: check,
            property: check.to_owned(),
            message: String::new(),
            event: None,
            witness: None,
            details: Vec::new(),
            about: about.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    fn left(text: &str, mut findings: Vec<Finding>) -> (usize, Vec<u64>) {
        let mut suppressions = Suppressions::default();
        suppressions.read("s", text).unwrap();
        findings.retain(|finding| !suppressions.cover(finding));
        (findings.len(), suppressions.all.iter().map(|one| one.used).collect())
    }

    #[test]
    fn patterns_occur_in_names_of_the_check() {
        let race = || finding("race", &["list.h:9(push)<queue.c:20(enqueue)", "count"]);
        assert_eq!(left("race:queue.c", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:push\nrace:enqueue", vec![race(), race()]), (0, vec![2, 0]));
        assert_eq!(left("deadlock:push", vec![race()]), (1, vec![0]));
        assert_eq!(left("race:^count$", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:^coun$", vec![race()]), (1, vec![0]));
        // A star does not reach from one name into the next.
        assert_eq!(left("race:queue*enqueue", vec![race()]), (1, vec![0]));
        let heap = finding("order", &["heap(node.c:3(make))#2"]);
        assert_eq!(left("# why\n\norder:heap(node.c*", vec![heap]), (0, vec![1]));
    }

    #[test]
    fn mistakes_are_explained() {
        let mut suppressions = Suppressions::default();
        let error = suppressions.read("my.supp", "race:a\nraces:b").unwrap_err();
        assert!(error.starts_with("my.supp:2: `races:b` should be a check, a colon"), "{error}");
        assert!(
            suppressions.read("s", "race").is_err() && suppressions.read("s", "race:").is_err()
        );
        suppressions.read("tsan", "called_from_lib:libc.so").unwrap();
        assert!(suppressions.all.last().unwrap().is_foreign);
    }
}
