//! Suppressions: findings that were reviewed and should not be reported again.
//!
//! A suppression file has the format of ThreadSanitizer, one entry a line: the check, a colon, and
//! a pattern. An entry covers a finding of that check if the pattern occurs in the name of a
//! function, file, variable, lock, object or region of the finding; `*` matches any text, `^` and
//! `$` match the beginning and the end of the name.
//!
//! ```text
//! # counters that may be wrong
//! race:stats.c
//! deadlock:^registry_lock$
//! ```

use std::borrow::Cow;

use foresee_trace::{Finding, Location};

use super::CHECKS;
use super::glob::Glob;
use crate::info::is_check;

/// Kinds that ThreadSanitizer knows and foresee does not check.
const FOREIGN: &[&str] = &["race_top", "thread", "mutex", "signal", "called_from_lib"];

/// One line of a suppression file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The file, and the line in it.
    pub place: String,
    /// The line as written.
    pub text: String,
    check: String,
    pattern: Glob,
    /// The number of findings that it has covered.
    pub used: u64,
    /// Whether its kind is one that foresee does not check.
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
        // Without `^` and `$`, a pattern matches anywhere in a name.
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
        self.check == finding.analysis
            && names_of(finding).iter().any(|name| self.pattern.matches(name))
    }
}

/// The names that a suppression can match: functions, files, variables and locks of the sites, and
/// the subjects of the finding as a whole.
fn names_of(finding: &Finding) -> Vec<Cow<'_, str>> {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for site in &finding.sites {
        for frame in site.frames.iter().flat_map(Location::frames) {
            names.extend(frame.function.as_deref().map(Cow::from));
            names.extend(frame.file.as_deref().map(Cow::from));
            names.extend(frame.file_and_line().map(Cow::from));
        }
        names.extend(site.target.as_ref().map(|target| Cow::from(target.name.as_str())));
    }
    names.extend(finding.about.iter().map(|subject| Cow::from(subject.name())));
    names
}

/// All suppressions of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    /// In the order in which they were given.
    pub all: Vec<Suppression>,
}

impl Suppressions {
    /// Adds the entries of a file; `name` is what the user calls it. An invalid line is an error
    /// with its position and what was expected.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                self.all.push(Suppression::new(format!("{name}:{}", i + 1), line)?);
            }
        }
        Ok(())
    }

    /// Whether a suppression covers a finding; counts it there.
    pub fn cover(&mut self, finding: &Finding) -> bool {
        match self.all.iter_mut().find(|one| one.covers(finding)) {
            Some(one) => {
                one.used += 1;
                true
            }
            None => false,
        }
    }

    /// The number of findings that were covered.
    pub fn used(&self) -> u64 {
        self.all.iter().map(|one| one.used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Description;
    use foresee_trace::{
        Detail, Fact, FindingKind, Role, Site, Subject, Target, TargetKind, Verdict,
    };

    fn finding(check: &'static str, place: &str, variable: &str, about: Vec<Subject>) -> Finding {
        let target = Target { kind: TargetKind::Var, name: variable.to_owned() };
        let site = Site {
            target: Some(target),
            frames: Location::parse(place).into_iter().collect(),
            ..Site::new(Role::Access, Some(0))
        };
        let (verdict, sites) = (Verdict::ConcurrentAccess, vec![site]);
        // Text in details does not count.
        let details = vec![Detail::new("remedy", Fact::Text("hold secret_lock".to_owned()))];
        let description =
            Description { verdict, message: "in secret.c".to_owned(), sites, about, details };
        description.finding(FindingKind::Predicted, check, None, None)
    }

    fn left(text: &str, mut findings: Vec<Finding>) -> (usize, Vec<u64>) {
        let mut suppressions = Suppressions::default();
        suppressions.read("s", text).unwrap();
        findings.retain(|finding| !suppressions.cover(finding));
        (findings.len(), suppressions.all.iter().map(|one| one.used).collect())
    }

    #[test]
    fn patterns_occur_in_names_of_the_check() {
        let place = "list.h:9(push<A<int>>)<queue.c:20(enqueue)";
        let race = || finding("race", place, "count", Vec::new());
        assert_eq!(left("race:queue.c", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:push\nrace:enqueue", vec![race(), race()]), (0, vec![2, 0]));
        assert_eq!(left("deadlock:push", vec![race()]), (1, vec![0]));
        assert_eq!(left("race:^count$", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:^coun$", vec![race()]), (1, vec![0]));
        assert_eq!(left("race:^queue.c$", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:^queue.c:20$", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:^push<A<int>>$", vec![race()]), (0, vec![1]));
        assert_eq!(left("race:secret", vec![race()]), (1, vec![0]));
        // A star does not match across two names.
        assert_eq!(left("race:queue*enqueue", vec![race()]), (1, vec![0]));
        let block = Subject::Object("heap(node.c:3(make))#2".to_owned());
        let heap = finding("order", "", "", vec![block]);
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
