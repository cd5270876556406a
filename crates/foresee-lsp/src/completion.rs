//! What the server proposes while one types.

use foresee_spec::parse;
use foresee_trace::{Id, Interner};
use lsp_types::{CompletionItem, CompletionItemKind, Position};

use crate::document::Document;
use crate::server::Known;

/// The words of the language: what each inserts, and what it means.
pub(crate) const WORDS: &[(&str, &str, &str)] = &[
    (
        "property",
        "property NAME: F",
        "`property NAME: F` is violated when F is false at some step, or can no longer become true.",
    ),
    (
        "violation",
        "violation NAME: R",
        "`violation NAME: R` is violated when a prefix of the run matches the regular expression R.",
    ),
    (
        "pattern",
        "pattern NAME: a .. b",
        "`pattern NAME: a .. b` is violated when these events can happen in this order, with anything in between.",
    ),
    (
        "automaton",
        "automaton NAME { … }",
        "`automaton NAME { … }` is violated when the state `bad` is reached.",
    ),
    ("let", "let NAME = F", "`let NAME = F` gives a formula a name."),
    ("init", "init x = 0", "`init x = 0` gives a variable its value before the first event."),
    ("atomic", "atomic METHOD", "`atomic METHOD` makes every call of the method an atomic region."),
    ("prev", "prev F", "`prev F`: F held one step ago (at the first step: now)."),
    ("once", "once F", "`once F`: F holds now or held at some earlier step."),
    ("hist", "hist F", "`hist F`: F holds now and held at every earlier step."),
    ("start", "start(F)", "`start(F)`: F holds and did not hold one step ago."),
    ("end", "end(F)", "`end(F)`: F does not hold and did one step ago."),
    ("since", "F since G", "`F since G`: G held at some step, and F at every step after it."),
    ("wsince", "F wsince G", "`F wsince G`: like `since`, or F held at every step so far."),
    ("next", "next F", "`next F`: F holds at the next step."),
    ("eventually", "eventually F", "`eventually F`: F holds now or at some later step."),
    ("always", "always F", "`always F`: F holds now and at every later step."),
    ("until", "F until G", "`F until G`: G holds at some step, and F at every step before it."),
    ("wuntil", "F wuntil G", "`F wuntil G`: like `until`, or F holds at every step."),
    (
        "release",
        "F release G",
        "`F release G`: G holds up to and including the step at which F does, or always.",
    ),
    ("read", "read(x)", "`read(x)`: the step reads the variable."),
    ("write", "write(x)", "`write(x)`: the step writes the variable."),
    ("acquire", "acquire(l)", "`acquire(l)`: the step takes the lock."),
    ("fork", "fork(t)", "`fork(t)`: the step starts the thread."),
    ("join", "join(t)", "`join(t)`: the step waits for the end of the thread."),
    ("enter", "enter(f, …)", "`enter(f, …)`: the step calls the method, with these arguments."),
    ("exit", "exit(f, …)", "`exit(f, …)`: the step returns from the method."),
    ("event", "event(n, …)", "`event(n, …)`: the step is the named event, with these arguments."),
];

/// More names than this of one kind are not proposed; an editor narrows the list down as one types.
const MOST: usize = 2_000;

/// The words of the language, names that the file defines, and the names of the trace and the program that the beginning of the word fits.
pub(crate) fn complete(document: &Document, at: Position, known: &Known) -> Vec<CompletionItem> {
    let byte = document.byte(at);
    let begun = document.word(byte).map_or("", |(word, span)| {
        word.get(..byte.saturating_sub(span.start as usize)).unwrap_or(word)
    });
    let mut items: Vec<CompletionItem> =
        WORDS.iter().map(|(word, form, _)| item(word, CompletionItemKind::KEYWORD, form)).collect();
    let parsed = parse(document.text());
    for defined in &parsed.spec.lets {
        items.push(item(&defined.name.name, CompletionItemKind::CONSTANT, "defined in this file"));
    }
    let both = [(&known.trace, "trace"), (&known.program, "program")];
    for (names, of) in both.into_iter().filter_map(|(names, of)| Some((names.as_ref()?, of))) {
        use CompletionItemKind as Kind;
        propose(&names.vars, begun, Kind::VARIABLE, &format!("variable of the {of}"), &mut items);
        propose(&names.locks, begun, Kind::VARIABLE, &format!("lock of the {of}"), &mut items);
        propose(&names.threads, begun, Kind::VARIABLE, &format!("thread of the {of}"), &mut items);
        let what =
            if of == "trace" { "method or event of the trace" } else { "function of the program" };
        propose(&names.syms, begun, Kind::EVENT, what, &mut items);
    }
    // A name of the trace may be one of the program, too.
    let mut seen = std::collections::HashSet::new();
    items.retain(|item| seen.insert(item.label.clone()));
    items.retain(|item| contains(&item.label, begun));
    items
}

fn propose<I: Id>(
    names: &Interner<I>,
    begun: &str,
    kind: CompletionItemKind,
    detail: &str,
    items: &mut Vec<CompletionItem>,
) {
    let fitting = names.iter().map(|(_, name)| name).filter(|name| contains(name, begun));
    items.extend(fitting.take(MOST).map(|name| item(name, kind, detail)));
}

/// Whether a name contains what was typed, in any case: `bal` finds `account.Balance`.
fn contains(name: &str, begun: &str) -> bool {
    begun.is_empty() || name.to_lowercase().contains(&begun.to_lowercase())
}

fn item(label: &str, kind: CompletionItemKind, detail: &str) -> CompletionItem {
    let (label, detail) = (label.to_owned(), Some(detail.to_owned()));
    CompletionItem { label, kind: Some(kind), detail, ..CompletionItem::default() }
}

#[cfg(test)]
mod tests {
    use super::WORDS;

    /// The grammar of the VS Code extension highlights every word of the language.
    #[test]
    fn the_grammar_has_every_word() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../editors/vscode/syntaxes/foresee.tmLanguage.json"
        );
        let text = std::fs::read_to_string(path).unwrap();
        let grammar: serde_json::Value = serde_json::from_str(&text).unwrap();
        let matches = grammar["patterns"].as_array().unwrap();
        let rules: Vec<&str> = matches.iter().filter_map(|rule| rule["match"].as_str()).collect();
        for (word, ..) in WORDS {
            let words =
                |rule: &&str| rule.split(|c: char| !c.is_alphanumeric()).any(|w| w == *word);
            assert!(rules.iter().any(|rule| words(&rule.replace("\\b", " ").as_str())), "{word}");
        }
    }
}
