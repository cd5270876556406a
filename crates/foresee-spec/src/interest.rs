//! Which names of a growing trace are relevant to a specification.
//!
//! The meaning of a specification's names depends on all names of the trace, and so do the monitors
//! built from it. An analysis that starts before the trace has ended needs to know when to start
//! again. Most new names change nothing and cost one look-up.

use std::collections::HashSet;

use foresee_trace::{Id, Interner, Names};

use crate::ast::{Literal, Spec};
use crate::mentions::{Entity, Mention, fields, mentions};
use crate::resolve::endings;

/// The names of a specification, and the number of the trace's names that have been examined.
#[derive(Clone, Debug)]
pub struct Interest {
    vars: Wanted,
    locks: Wanted,
    threads: Wanted,
    syms: Wanted,
    /// Texts that a symbol must equal as a whole.
    texts: HashSet<String>,
    seen: [usize; 4],
}

/// Names of one kind.
#[derive(Clone, Debug, Default)]
struct Wanted {
    names: HashSet<String>,
    lengths: HashSet<usize>,
}

impl Wanted {
    fn new<'a>(names: impl Iterator<Item = &'a str>) -> Wanted {
        let names: HashSet<String> = names.map(str::to_owned).collect();
        Wanted { lengths: names.iter().map(String::len).collect(), names }
    }

    /// Whether a name may match: as a whole or by its suffix.
    fn fits(&self, name: &str) -> bool {
        let is_wanted =
            |text: &str| self.lengths.contains(&text.len()) && self.names.contains(text);
        !self.names.is_empty() && (is_wanted(name) || endings(name).any(is_wanted))
    }

    /// Whether one of the names from number `seen` on may match.
    fn fits_new<I: Id>(&self, names: &Interner<I>, seen: usize) -> bool {
        (seen..names.len()).any(|i| self.fits(names.get(I::new(i))))
    }
}

impl Interest {
    /// The names that are relevant to a specification.
    pub fn new(spec: &Spec) -> Interest {
        let mentions = mentions(spec);
        let of = |wanted: &dyn Fn(&Mention<'_>) -> bool| {
            Wanted::new(mentions.iter().filter(|m| wanted(m)).map(|m| m.name))
        };
        let is_text = |m: &&Mention<'_>| matches!(m.entity, Entity::Text | Entity::Literal);
        let mut texts: HashSet<String> =
            mentions.iter().filter(is_text).map(|m| m.name.to_owned()).collect();
        texts.extend(spec.inits.iter().filter_map(|init| match &init.value {
            Literal::Str(text) => Some(text.clone()),
            _ => None,
        }));
        let (mut vars, mut locks) = (of(&|m| m.is_variable()), of(&|m| m.entity == Entity::Lock));
        // A new name that ends like a field may be of a new object.
        for field in spec.properties.iter().flat_map(fields) {
            let wanted = if field.is_variable() { &mut vars } else { &mut locks };
            wanted.lengths.insert(field.path.len());
            wanted.names.insert(field.path.to_owned());
        }
        Interest {
            vars,
            locks,
            threads: of(&|m| m.entity == Entity::Thread),
            syms: of(&|m| m.is_sym()),
            texts,
            seen: [0; 4],
        }
    }

    /// Examines the new names; returns whether any of them may match.
    pub fn examine(&mut self, names: &Names) -> Touch {
        let now = [names.vars.len(), names.locks.len(), names.threads.len(), names.syms.len()];
        // A trace that is read again has fewer names at first; they are not new.
        let [vars, locks, threads, syms] = self.seen;
        self.seen = std::array::from_fn(|i| self.seen[i].max(now[i]));
        let is_text = |i: usize| self.texts.contains(names.syms.get(Id::new(i)));
        Touch {
            names: self.vars.fits_new(&names.vars, vars)
                || self.locks.fits_new(&names.locks, locks)
                || self.threads.fits_new(&names.threads, threads)
                || self.syms.fits_new(&names.syms, syms),
            texts: (syms..names.syms.len()).any(is_text),
        }
    }
}

/// How new names affect a specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// One may match a name of the specification, so names must be resolved again.
    pub names: bool,
    /// One equals a text of the specification, which now has a number.
    pub texts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    #[test]
    fn only_names_that_may_be_meant_are_told() {
        let text = "init mode = \"idle\"\n\
                    property p: landing == 1 -> mode != \"a \\\"b\\\"\"\n\
                    pattern q: enter(add, word)@main .. acquire(lock)";
        let parsed = parse(text);
        assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
        let mut interest = Interest::new(&parsed.spec);
        let mut names = Names::default();
        let mut touched = |add: &dyn Fn(&mut Names)| {
            add(&mut names);
            interest.examine(&names) != Touch::default()
        };
        assert!(!touched(&|_| {}));
        for var in ["other", "xlanding", "landing.x"] {
            assert!(
                !touched(&|n| {
                    let _ = n.vars.intern(var);
                }),
                "{var}"
            );
        }
        for var in ["main.c:landing", "landing", "mode"] {
            assert!(
                touched(&|n| {
                    let _ = n.vars.intern(var);
                }),
                "{var}"
            );
            assert!(!touched(&|_| {}));
        }
        for sym in ["idle", "a \"b\"", "word", "List.add"] {
            assert!(
                touched(&|n| {
                    let _ = n.syms.intern(sym);
                }),
                "{sym}"
            );
        }
        for sym in ["x.idle", "landing", "words"] {
            assert!(
                !touched(&|n| {
                    let _ = n.syms.intern(sym);
                }),
                "{sym}"
            );
        }
        assert!(
            touched(&|n| {
                let _ = n.thread("a/main");
            }) && touched(&|n| {
                let _ = n.locks.intern("lock");
            })
        );
    }
}
