//! Suppressions: findings that were reviewed and should not be reported again.
//!
//! A suppression file has the format of ThreadSanitizer, one entry a line: the check, a colon, and
//! a pattern. An entry covers a finding of that check if the pattern occurs in the name of a
//! function, file, variable, lock, object or region of the finding; `*` matches any text, `^` and
//! `$` match the beginning and the end of the name. `race_top` looks at the innermost function and
//! file of the accesses alone. An entry may also be the fingerprint of one finding.
//!
//! A comment behind an entry, or else the comment above it, is its reason; `until 2027-01-31` ends it
//! after that day.
//!
//! ```text
//! # counters that may be wrong
//! race:stats.c
//! deadlock:^registry_lock$ until 2027-01-31   # ticket 17
//! F-ab965170b385                              # benign: both write the same
//! ```

use std::borrow::Cow;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use foresee_trace::{Finding, Location};

use super::CHECKS;
use super::glob::Glob;
use crate::info::{RACE, is_check, present_name};

/// Kinds that ThreadSanitizer knows and foresee does not check.
const FOREIGN: &[&str] = &["thread", "mutex", "signal", "called_from_lib"];

/// What ThreadSanitizer calls a race whose innermost frame matches.
const RACE_TOP: &str = "race_top";

/// A day of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    year: i64,
    month: u32,
    day: u32,
}

impl Day {
    /// The current one.
    pub fn today() -> Day {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        Day::after_1970((seconds / 86_400) as i64)
    }

    /// Counts from the first of March of a leap year's beginning, so that a leap day comes last.
    fn after_1970(days: i64) -> Day {
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Day { year, month: month as u32, day: day as u32 }
    }

    /// Reads `2027-01-31`.
    pub fn parse(text: &str) -> Option<Day> {
        let mut parts = text.split('-');
        let mut next = |digits: usize| -> Option<u32> {
            let part = parts.next()?;
            let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| part.parse().ok())?
        };
        let (year, month, day) = (next(4)?, next(2)?, next(2)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let is_day = parts.next().is_none() && (1..=days).contains(&day);
        is_day.then_some(Day { year: i64::from(year), month, day })
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// What an entry covers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Covers {
    /// Findings of a check in which a name matches.
    Names { check: String, pattern: Glob },
    /// Races whose innermost frame matches.
    Top(Glob),
    /// One finding.
    Fingerprint(String),
    /// Nothing that foresee looks for.
    Nothing,
}

/// One line of a suppression file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The file, and the line in it.
    pub place: String,
    /// The entry as written, without its reason.
    pub text: String,
    /// Why the findings are not wanted.
    pub reason: Option<String>,
    /// The last day on which it counts.
    pub until: Option<Day>,
    covers: Covers,
    /// The number of findings that it has covered.
    pub used: u64,
    /// Whether its kind is one that foresee does not check.
    pub is_foreign: bool,
    /// Whether its last day is over.
    pub is_expired: bool,
    /// Whether it is of a baseline: a finding that was known before.
    pub is_baseline: bool,
}

impl Suppression {
    fn new(place: String, line: &str, today: Day) -> Result<Suppression, String> {
        let (entry, reason) = match line.find(" #").or_else(|| line.find("\t#")) {
            Some(at) => (line[..at].trim(), Some(line[at + 2..].trim().to_owned())),
            None => (line, None),
        };
        let reason = reason.filter(|reason| !reason.is_empty());
        let (text, until) = match entry.rsplit_once(" until ") {
            Some((text, day)) => {
                let until = Day::parse(day.trim()).ok_or_else(|| {
                    format!("{place}: `{}` is not a day: write it as 2027-01-31", day.trim())
                })?;
                (text.trim(), Some(until))
            }
            None => (entry, None),
        };
        let covers = Covers::parse(text).ok_or_else(|| {
            format!(
                "{place}: `{text}` should be a check, a colon and a pattern, as in `race:stats.c`, or \
                 a fingerprint, as in `F-0123456789ab`; the checks are {}",
                CHECKS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
            )
        })?;
        let is_foreign = covers == Covers::Nothing;
        let is_expired = until.is_some_and(|until| until < today);
        let (text, used, is_baseline) = (text.to_owned(), 0, false);
        Ok(Suppression {
            place,
            text,
            reason,
            until,
            covers,
            used,
            is_foreign,
            is_expired,
            is_baseline,
        })
    }

    /// The fingerprint that it consists of, if it is one.
    pub fn fingerprint(&self) -> Option<&str> {
        match &self.covers {
            Covers::Fingerprint(fingerprint) => Some(fingerprint),
            _ => None,
        }
    }

    fn covers(&self, finding: &Finding) -> bool {
        if self.is_expired {
            return false;
        }
        match &self.covers {
            Covers::Nothing => false,
            Covers::Fingerprint(wanted) => {
                finding.fingerprint.is_some_and(|known| known.to_string() == *wanted)
            }
            Covers::Names { check, pattern } => {
                check == finding.analysis
                    && names_of(finding).iter().any(|name| pattern.matches(name))
            }
            Covers::Top(pattern) => {
                let tops = finding.sites.iter().filter(|site| site.role.identifies());
                let mut tops = tops.filter_map(|site| site.location());
                finding.analysis == RACE
                    && tops.any(|frame| names_of_frame(frame).any(|name| pattern.matches(&name)))
            }
        }
    }
}

impl Covers {
    fn parse(text: &str) -> Option<Covers> {
        let is_print = text.strip_prefix("F-").is_some_and(|digits| {
            digits.len() == 12 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        });
        if is_print {
            return Some(Covers::Fingerprint(text.to_owned()));
        }
        let (check, pattern) = text.split_once(':')?;
        if pattern.is_empty() {
            return None;
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
        match check {
            RACE_TOP => Some(Covers::Top(pattern)),
            check if FOREIGN.contains(&check) => Some(Covers::Nothing),
            check => {
                let check = present_name(check).to_owned();
                is_check(&check).then_some(Covers::Names { check, pattern })
            }
        }
    }
}

/// The names that a suppression can match: functions, files, variables and locks of the sites, and
/// the subjects of the finding as a whole.
fn names_of(finding: &Finding) -> Vec<Cow<'_, str>> {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for site in &finding.sites {
        for frame in site.frames.iter().flat_map(Location::frames) {
            names.extend(names_of_frame(frame));
        }
        names.extend(site.target.as_ref().map(|target| Cow::from(target.name.as_str())));
    }
    names.extend(finding.about.iter().map(|subject| Cow::from(subject.name())));
    names
}

fn names_of_frame(frame: &Location) -> impl Iterator<Item = Cow<'_, str>> {
    let function = frame.function.as_deref().map(Cow::from);
    let file = frame.file.as_deref().map(Cow::from);
    function.into_iter().chain(file).chain(frame.file_and_line().map(Cow::from))
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
    pub fn read(&mut self, name: &str, text: &str, today: Day) -> Result<(), String> {
        // What stands above an entry, up to an empty line or another entry.
        let mut above: Vec<&str> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                above.clear();
            } else if let Some(comment) = line.strip_prefix('#') {
                above.push(comment.trim());
            } else {
                let mut one = Suppression::new(format!("{name}:{}", i + 1), line, today)?;
                let reason = above.join(" ");
                one.reason = one.reason.or(Some(reason).filter(|reason| !reason.is_empty()));
                self.all.push(one);
                above.clear();
            }
        }
        Ok(())
    }

    /// Adds the findings of a baseline, which are fingerprints in the same format.
    pub fn read_baseline(&mut self, name: &str, text: &str, today: Day) -> Result<(), String> {
        let first = self.all.len();
        self.read(name, text, today)?;
        for one in &mut self.all[first..] {
            if one.fingerprint().is_none() {
                return Err(format!(
                    "{}: `{}` is not a fingerprint: patterns belong in a file of suppressions",
                    one.place, one.text
                ));
            }
            one.is_baseline = true;
        }
        Ok(())
    }

    /// The suppression that covers a finding, by its number; counts the finding there.
    pub fn cover(&mut self, finding: &Finding) -> Option<usize> {
        let found = self.all.iter().position(|one| one.covers(finding))?;
        self.all[found].used += 1;
        Some(found)
    }

    /// The number of findings that were covered, except by a baseline.
    pub fn used(&self) -> u64 {
        self.all.iter().filter(|one| !one.is_baseline).map(|one| one.used).sum()
    }

    /// The number of findings that a baseline knows.
    pub fn known(&self) -> u64 {
        self.all.iter().filter(|one| one.is_baseline).map(|one| one.used).sum()
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
        suppressions.read("s", text, day("2026-11-17")).unwrap();
        findings.retain(|finding| suppressions.cover(finding).is_none());
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
        let heap = finding("lifetime", "", "", vec![block]);
        assert_eq!(left("# why\n\norder:heap(node.c*", vec![heap]), (0, vec![1]));
    }

    #[test]
    fn mistakes_are_explained() {
        let (mut suppressions, today) = (Suppressions::default(), day("2026-11-17"));
        let error = suppressions.read("my.supp", "race:a\nraces:b", today).unwrap_err();
        assert!(error.starts_with("my.supp:2: `races:b` should be a check, a colon"), "{error}");
        for bad in ["race", "race:", "F-12", "race:a until soon", "race:a until 2027-02-29"] {
            assert!(suppressions.read("s", bad, today).is_err(), "{bad}");
        }
        assert!(suppressions.read_baseline("b", "race:a", today).is_err());
        suppressions.read("tsan", "called_from_lib:libc.so", today).unwrap();
        assert!(suppressions.all.last().unwrap().is_foreign);
    }

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    #[test]
    fn entries_have_reasons_and_end() {
        let text = "# the counters\n# may be wrong\nrace:count until 2026-11-17\n\n# not this\n\n\
                    race:queue.c until 2026-11-16  # old\nF-0123456789ab # known";
        let (mut suppressions, today) = (Suppressions::default(), day("2026-11-17"));
        suppressions.read("s", text, today).unwrap();
        let reasons: Vec<_> = suppressions.all.iter().map(|one| one.reason.as_deref()).collect();
        assert_eq!(reasons, [Some("the counters may be wrong"), Some("old"), Some("known")]);
        let race = || finding("race", "queue.c:20(enqueue)", "count", Vec::new());
        assert_eq!(suppressions.cover(&race()), Some(0));
        assert!(suppressions.all[1].is_expired && !suppressions.all[0].is_expired);
        let other = finding("race", "queue.c:20(enqueue)", "other", Vec::new());
        assert_eq!(suppressions.cover(&other), None, "what is expired covers nothing");
    }

    #[test]
    fn fingerprints_and_top_frames_are_covered() {
        let mut known = finding("race", "list.h:9(push)<queue.c:20(enqueue)", "count", Vec::new());
        assert_eq!(left("race_top:push", vec![known.clone()]), (0, vec![1]));
        assert_eq!(left("race_top:enqueue", vec![known.clone()]), (1, vec![0]));
        let fingerprint = foresee_trace::Fingerprint::of(&known, |_| 0);
        known.fingerprint = Some(fingerprint);
        assert_eq!(left(&fingerprint.to_string(), vec![known.clone()]), (0, vec![1]));
        assert_eq!(left("F-0123456789ab", vec![known]), (1, vec![0]));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(Day::after_1970(0), day("1970-01-01"));
        assert_eq!(Day::after_1970(20_774), day("2026-11-17"));
        assert_eq!(Day::after_1970(11_016), day("2000-02-29"));
        assert_eq!(Day::after_1970(11_017).to_string(), "2000-03-01");
        assert!(Day::parse("2026-13-01").is_none() && Day::parse("26-01-01").is_none());
    }
}
