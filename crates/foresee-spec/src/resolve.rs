//! Maps the names of a specification to the names of a trace.
//!
//! A name matches itself and, if the trace has no such name, every longer name that ends in it
//! after
//! one of `.` `:` `/`: `landing` matches `file.c:landing`. A variable must match only one name; a
//! method, lock or thread may match several, and then denotes any of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use foresee_support::nearest::{distance, nearest, tolerance};
use foresee_trace::{Id, Interner, LockId, Names, SymId, ThreadId, VarId, Visible, plain_name};

use crate::ast::Spec;
use crate::diagnostic::{Diagnostic, Severity};
use crate::mentions::{Entity, Mention, mentions};
use crate::objects;
use crate::syntax::Reports;

/// The names of a specification in a trace. A name without an entry does not occur in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Variables, in expressions and as targets of `read` and `write`.
    pub vars: HashMap<String, VarId>,
    /// Targets of `acquire` and `release`.
    pub locks: HashMap<String, Vec<LockId>>,
    /// Targets of `fork` and `join`, and threads after `@`.
    pub threads: HashMap<String, Vec<ThreadId>>,
    /// Targets of `enter`, `exit` and `event`.
    pub syms: HashMap<String, Vec<SymId>>,
    /// Names as arguments of events, which match an equal text.
    pub strings: HashMap<String, SymId>,
    /// The objects of each parameter with a type, by the name of the property.
    pub objects: HashMap<String, Vec<Vec<String>>>,
    /// Variables that are fields of such objects.
    pub fields: HashSet<VarId>,
}

/// The names of a specification in a trace, and the problems with them.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The names that were found.
    pub resolved: Resolved,
    /// The names that are missing or ambiguous.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the names of a specification in a trace.
///
/// A variable in an expression that the trace never mentions is an error, unless `init` gives it a
/// value; a name in an event atom is only a warning, because the atom simply never matches.
pub fn resolve(spec: &Spec, names: &Names) -> Resolution {
    let mentions = mentions(spec);
    let inits: HashSet<&str> = spec.inits.iter().map(|init| init.var.name.as_str()).collect();
    let lets = spec.lets.iter().map(|l| l.name.name.as_str()).collect();
    let mut resolver = Resolver { mentions, inits, lets, reports: Reports::default() };
    let vars = resolver.find("variable", Mention::is_variable, &names.vars);
    let locks = resolver.find("lock", |m| m.entity == Entity::Lock, &names.locks);
    let threads = resolver.find("thread", |m| m.entity == Entity::Thread, &names.threads);
    let syms = resolver.find("method or event", Mention::is_sym, &names.syms);
    let with_objects = spec.properties.iter().filter(|property| !property.objects.is_empty());
    let objects = with_objects
        .map(|property| {
            let found = objects::find(property, names, &mut |it| resolver.reports.add(it));
            (property.name.name.clone(), found)
        })
        .collect();
    let texts = resolver.mentions.iter().filter(|m| m.entity == Entity::Text);
    let resolved = Resolved {
        // Names that match several variables have been reported.
        vars: vars.into_iter().map(|(name, ids)| (name, ids[0])).collect(),
        locks,
        threads,
        syms,
        strings: texts
            .filter_map(|m| Some((m.name.to_owned(), names.syms.lookup(m.name)?)))
            .collect(),
        objects,
        fields: HashSet::new(),
    };
    Resolution { resolved, diagnostics: resolver.reports.finish() }
}

/// The maximum number of candidates in a message.
const SHOWN: usize = 5;

struct Resolver<'a> {
    mentions: Vec<Mention<'a>>,
    inits: HashSet<&'a str>,
    lets: Vec<&'a str>,
    reports: Reports,
}

impl<'a> Resolver<'a> {
    /// The numbers of all names of one kind, at least one for each name that has an entry.
    fn find<I: Id>(
        &mut self,
        what: &str,
        wanted: impl Fn(&Mention<'a>) -> bool,
        known: &Interner<I>,
    ) -> HashMap<String, Vec<I>> {
        let wanted: Vec<Mention<'a>> =
            self.mentions.iter().filter(|m| wanted(m)).copied().collect();
        let mut found: HashMap<&str, Vec<I>> = HashMap::new();
        let mut open: HashMap<&str, Vec<I>> = HashMap::new();
        for mention in &wanted {
            match known.lookup(mention.name) {
                Some(id) => found.insert(mention.name, vec![id]),
                None => open.insert(mention.name, Vec::new()),
            };
        }
        if !open.is_empty() {
            // One pass over the trace's names, of which there may be millions.
            let lengths: HashSet<usize> = open.keys().map(|name| name.len()).collect();
            for (id, name) in known.iter() {
                // The types of objects in it are not a part of the name that the program has for it.
                let plain = plain_name(name);
                let whole = matches!(plain, Cow::Owned(_)).then_some(&*plain);
                let shorter = whole.into_iter().chain(endings(&plain));
                for ending in shorter.filter(|e| lengths.contains(&e.len())) {
                    if let Some(ids) = open.get_mut(ending) {
                        ids.push(id);
                    }
                }
            }
        }
        let mut reported = HashSet::new();
        for mention in &wanted {
            let Some(ids) = open.get(mention.name) else { continue };
            // A variable in an expression is more severe than the same variable in an event.
            let grave = mention.entity == Entity::State;
            if ids.len() == 1 || !reported.insert((mention.name, grave)) {
                continue;
            }
            if ids.is_empty() {
                self.absent(what, mention, known);
            } else {
                self.ambiguous(what, mention, ids, known);
            }
        }
        found.extend(open.into_iter().filter(|(_, ids)| !ids.is_empty()));
        found.into_iter().map(|(name, ids)| (name.to_owned(), ids)).collect()
    }

    fn ambiguous<I: Id>(
        &mut self,
        what: &str,
        mention: &Mention<'_>,
        ids: &[I],
        known: &Interner<I>,
    ) {
        let name = mention.name;
        let mut shown: Vec<&str> = ids.iter().take(SHOWN).map(|id| known.get(*id)).collect();
        shown.sort_unstable();
        let more = if ids.len() > SHOWN { ", …" } else { "" };
        let message = format!("`{name}` matches {} {what}s of the trace", ids.len());
        let list = format!("{}{more}", quote(&shown));
        self.reports.add(if mention.is_variable() {
            Diagnostic::error("ambiguous-name", message, mention.span, "which one?")
                .help(format!("write one of {list}"))
        } else {
            Diagnostic::warning("ambiguous-name", message, mention.span, "any of them matches")
                .help(format!("to select only one, write one of {list}"))
        });
    }

    fn absent<I: Id>(&mut self, what: &str, mention: &Mention<'_>, known: &Interner<I>) {
        let name = mention.name;
        let state = mention.entity == Entity::State;
        let error = state && !self.inits.contains(name);
        let shown = self.reports.wants(if error { Severity::Error } else { Severity::Warning });
        let mut near = if shown { closest(name, known) } else { Vec::new() };
        if state && shown {
            near.splice(0..0, nearest(name, self.lets.iter().copied()));
        }
        let help = if let Some(write) = constant(name).filter(|_| state) {
            Some(format!("write `{write}`"))
        } else if near.is_empty() {
            let some: Vec<&str> = known.iter().take(SHOWN).map(|(_, name)| name).collect();
            (!some.is_empty() && known.len() <= SHOWN)
                .then(|| format!("the trace has the {what}s {}", quote(&some)))
        } else {
            Some(format!("did you mean {}?", quote(&near)))
        };
        let message = format!("the {what} `{name}` does not occur in the trace");
        let at = mention.span;
        let diagnostic = match mention.entity {
            Entity::State if !error => {
                let label = "always keeps its initial value";
                Diagnostic::warning("constant-variable", message, at, label)
            }
            Entity::State => {
                let label = "has no value";
                Diagnostic::error("unknown-variable", message, at, label)
                    .help(format!("if it is never written, give its value: `init {name} = …`"))
            }
            _ => Diagnostic::warning("unknown-name", message, at, "can never match"),
        };
        self.reports.add(diagnostic.maybe_help(help));
    }
}

/// The proper suffixes by which a name may be abbreviated.
pub(crate) fn endings(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices(['.', ':', '/']).map(|(i, _)| &name[i + 1..]).filter(|e| !e.is_empty())
}

/// How a constant of other languages is written here.
fn constant(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        "NULL" | "null" | "nullptr" | "None" | "nil" => "0",
        _ => return None,
    })
}

/// Known names that may have been meant, closest first: misspelt as a whole, or in their last part.
fn closest<'a, I: Id>(name: &str, known: &'a Interner<I>) -> Vec<&'a str> {
    let most = tolerance(name);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (_, candidate) in known.iter() {
        let last = endings(candidate).last();
        let fits = [Some(candidate), last].into_iter().flatten();
        if let Some(distance) = fits.filter_map(|text| distance(name, text, most)).min() {
            near.push((distance, candidate));
        }
    }
    near.sort_unstable();
    near.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

fn quote(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", Visible(name))).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::render;
    use crate::syntax::parse;

    fn trace() -> Names {
        let mut names = Names::default();
        for var in ["main.c:landing", "ctl.c:radio", "gui.c:radio", "approved", "count"] {
            names.vars.intern(var).unwrap();
        }
        for thread in ["main", "pool/worker-1", "other/worker-1"] {
            names.thread(thread).unwrap();
        }
        names.locks.intern("Account.lock").unwrap();
        for sym in ["java.util.List.add", "java.util.Set.add", "java.util.Iterator.next", "open"] {
            names.syms.intern(sym).unwrap();
        }
        names
    }

    /// The codes and the text of the diagnostics.
    fn resolved(text: &str) -> (Resolved, Vec<&'static str>, String) {
        let parsed = parse(text);
        assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
        let Resolution { resolved, diagnostics } = resolve(&parsed.spec, &trace());
        let shown = render(&diagnostics, "spec", text, false);
        (resolved, diagnostics.iter().map(|d| d.code).collect(), shown)
    }

    #[test]
    fn a_name_fits_itself_or_one_longer_name() {
        let text = "property p: landing == 1 -> approved && ctl.c:radio";
        let (resolved, codes, _) = resolved(text);
        assert_eq!(codes, [""; 0]);
        assert_eq!(resolved.vars["landing"], VarId(0));
        assert_eq!(resolved.vars["ctl.c:radio"], VarId(1));
        assert_eq!(resolved.vars["approved"], VarId(3));
    }

    #[test]
    fn an_ending_begins_after_a_separator() {
        let (_, codes, shown) = resolved("property p: anding == 1");
        assert_eq!(codes, ["unknown-variable"]);
        assert!(shown.contains("did you mean `main.c:landing`?"), "{shown}");
    }

    #[test]
    fn an_ambiguous_variable_is_an_error() {
        let (_, codes, shown) = resolved("property p: radio == 1 && radio == 2");
        assert_eq!(codes, ["ambiguous-name"]);
        assert!(shown.contains("write one of `ctl.c:radio`, `gui.c:radio`"), "{shown}");
    }

    #[test]
    fn a_method_may_fit_several() {
        let text = "pattern p: enter(add)@worker-1 .. enter(next)@main .. acquire(lock)";
        let (resolved, codes, shown) = resolved(text);
        assert_eq!(codes, ["ambiguous-name"; 2], "{shown}");
        assert_eq!(resolved.syms["add"], [SymId(0), SymId(1)]);
        assert_eq!(resolved.syms["next"], [SymId(2)]);
        assert_eq!(resolved.threads["worker-1"], [ThreadId(1), ThreadId(2)]);
        assert_eq!(resolved.locks["lock"], [LockId(0)]);
    }

    #[test]
    fn unknown_names() {
        let text = "init alive = true\n\
                    let levels = count > 3\n\
                    property a: level && alive\n\
                    property b: levels -> once (wirte_count && acquire(lcok) && event(opne, open, shut)@mian)";
        let (resolved, codes, shown) = resolved(text);
        assert_eq!(
            codes,
            [
                "unknown-variable",
                "constant-variable",
                "unknown-variable",
                "unknown-name",
                "unknown-name",
                "unknown-name"
            ],
            "{shown}"
        );
        for near in ["`levels`", "`Account.lock`", "`open`", "`main`"] {
            assert!(shown.contains(&format!("did you mean {near}?")), "{shown}");
        }
        assert_eq!(resolved.strings.len(), 1);
        assert_eq!(resolved.strings["open"], SymId(3));
        assert!(!resolved.vars.contains_key("level"));
    }

    #[test]
    fn a_let_is_looked_at_once_and_only_if_it_is_used() {
        let text = "let unused = nowhere\nlet used = nothing\nproperty p: used && !used";
        let (_, codes, _) = resolved(text);
        assert_eq!(codes, ["unknown-variable"]);
    }
}
