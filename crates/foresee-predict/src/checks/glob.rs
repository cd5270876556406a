//! Name patterns: `*` matches any text, `?` any character.

use serde::{Deserialize, Serialize};

/// A pattern for names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob(String);

impl Glob {
    /// Parses a pattern; every text is a valid one.
    pub fn new(text: &str) -> Glob {
        Glob(text.to_owned())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name matches, with or without leading namespaces or classes.
    pub fn matches_path(&self, name: &str) -> bool {
        let ends = name.match_indices("::").map(|(at, _)| &name[at + 2..]);
        self.matches(name) || ends.into_iter().any(|end| self.matches(end))
    }

    /// Whether the whole name matches. Takes time at most proportional to the product of the
    /// lengths, because only the latest `*` is ever retried.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.as_str(), name);
        // The pattern after the latest star, and where the name continues if the star matches more
        // of it.
        let mut star: Option<(&str, &str)> = None;
        loop {
            let mut next = rest.chars();
            let mut wanted = pattern.chars();
            match (wanted.next(), next.next()) {
                (Some('*'), _) => {
                    pattern = wanted.as_str();
                    star = Some((pattern, rest));
                }
                (Some(w), Some(c)) if w == '?' || w == c => {
                    (pattern, rest) = (wanted.as_str(), next.as_str());
                }
                (None, None) => return true,
                _ => {
                    let Some((behind, from)) = star else { return false };
                    let mut from = from.chars();
                    if from.next().is_none() {
                        return false;
                    }
                    (pattern, rest) = (behind, from.as_str());
                    star = Some((behind, rest));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_texts() {
        let fits = |pattern: &str, name: &str| Glob::new(pattern).matches(name);
        assert!(fits("transfer", "transfer") && !fits("transfer", "transfers"));
        assert!(fits("Account::*", "Account::deposit") && !fits("Account::*", "Accounts"));
        assert!(fits("*", "") && fits("*", "anything") && !fits("?", ""));
        assert!(fits("*.c:1?", "bank.c:12") && !fits("*.c:1?", "bank.c:1"));
        assert!(fits("a*b*c", "a-b-b-c") && !fits("a*b*c", "a-c-b"));
        assert!(fits("*é?", "caféx"));
        let path = |pattern: &str, name: &str| Glob::new(pattern).matches_path(name);
        assert!(path("Account::*", "bank::Account::add") && path("add", "bank::Account::add"));
        assert!(!path("Account", "bank::Account::add"));
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let pattern = Glob::new(&"a*".repeat(200));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(199))));
    }
}
