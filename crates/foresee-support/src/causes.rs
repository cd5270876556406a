//! Errors with their causes, for people.

use std::error::Error;

/// An error and its causes in one line. Many errors of libraries name their cause already, which is
/// then not repeated.
pub fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        let part = why.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = why.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// What it says, and its cause.
    #[derive(Debug)]
    struct Caused(&'static str, Option<Box<Caused>>);

    impl fmt::Display for Caused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Caused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let caused = |text, cause| Caused(text, Some(Box::new(cause)));
        let full = || Caused("the disk is full", None);
        let names_it = caused("cannot write out: the disk is full", full());
        assert_eq!(sentence(&caused("a.c", names_it)), "a.c: cannot write out: the disk is full");
        let leaves_it = caused("cannot write out", full());
        assert_eq!(sentence(&caused("a.c", leaves_it)), "a.c: cannot write out: the disk is full");
    }
}
