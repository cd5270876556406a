//! Parsing and formatting, on random specifications, on garbage, and on common mistakes.

mod generate;
mod golden;
mod limits;

use fastrand::Rng;
use generate::Generator;

use super::{format, lexer, parse, print};
use crate::ast::*;
use crate::diagnostic::render;

fn parsed(text: &str) -> Spec {
    let parsed = parse(text);
    assert!(!parsed.has_errors(), "{}", render(&parsed.diagnostics, "spec", text, false));
    parsed.spec
}

/// The only property, as a formula.
fn formula(text: &str) -> Formula {
    let spec = parsed(&format!("property p: {text}"));
    match spec.properties.into_iter().next().map(|p| p.body) {
        Some(Body::Formula(formula)) => formula,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_reads_the_same() {
    for seed in 0..6000 {
        let spec = Generator::new(seed).spec();
        let text = print(&spec);
        assert_eq!(parsed(&text), spec, "seed {seed}\n{text}");
        assert_eq!(format(&text).unwrap(), text, "seed {seed}");
    }
}

#[test]
fn atomic_methods_have_names_with_holes() {
    let spec = parsed("atomic transfer, Account::* , \"~A::*\", `odd name`\natomic x.y:z");
    let names: Vec<&str> = spec.atomics.iter().map(|method| method.name.as_str()).collect();
    assert_eq!(names, ["transfer", "Account::*", "~A::*", "odd name", "x.y:z"]);
    let neat = format("atomic  a,b\n ,\"c*\" # why\n").unwrap();
    assert_eq!(neat, "atomic a, b, c* # why\n");
    // It may still be the name of a variable.
    for text in ["atomic > 0", "atomic since atomic", "x -> atomic", "atomic * 2 == atomic"] {
        let spec = parsed(&format!("property p: {text}\nproperty q: atomic\natomic f"));
        assert_eq!((spec.properties.len(), spec.atomics.len()), (2, 1), "{text}");
    }
}

#[test]
fn comments_survive_wherever_they_stand() {
    for seed in 0..4000 {
        let spec = Generator::new(seed).spec();
        let plain = print(&spec);
        let mut rng = Rng::with_seed(seed);
        let tokens = lexer::lex(&plain, &mut |_| ()).tokens;
        let (mut text, mut at, mut comments) = (String::new(), 0, 0);
        for (i, token) in tokens.iter().enumerate() {
            let start = token.span.start as usize;
            // Names must not be split.
            let between = &plain[at..start];
            if (i == 0 || between.contains([' ', '\n'])) && rng.u8(..6) == 0 {
                let before = ["", " ", "\n", "\n\n"][rng.usize(..4)];
                let after = ["\n", "\n\n\n", "\r\n  "][rng.usize(..3)];
                text.push_str(&format!("{before}# {comments}{after}"));
                comments += 1;
            }
            text.push_str(&plain[at..token.span.end as usize]);
            at = token.span.end as usize;
        }
        let neat = format(&text).unwrap();
        assert_eq!(parsed(&neat), spec, "seed {seed}\n{text}\n---\n{neat}");
        assert_eq!(format(&neat).unwrap(), neat, "seed {seed}\n{text}\n---\n{neat}");
        let found = lexer::lex(&neat, &mut |_| ()).comments;
        let found: Vec<&str> =
            found.iter().map(|c| &neat[c.start as usize..c.end as usize]).collect();
        let expected: Vec<String> = (0..comments).map(|i| format!("# {i}")).collect();
        assert_eq!(found, expected, "seed {seed}\n{text}\n---\n{neat}");
    }
}

/// Must terminate, must not panic, and must not report a position outside the text.
fn survive(text: &str) {
    let parsed = parse(text);
    for (span, _) in parsed.diagnostics.iter().flat_map(|d| &d.labels) {
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {text:?}");
    }
    render(&parsed.diagnostics, "spec", text, true);
    match format(text) {
        Ok(neat) => {
            assert!(!parsed.has_errors());
            assert_eq!(parse(&neat).spec, parsed.spec, "{text:?}\n{neat}");
            assert_eq!(format(&neat).as_ref(), Ok(&neat), "{text:?}");
        }
        Err(_) => assert!(parsed.has_errors()),
    }
}

#[test]
fn random_bytes() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..5000 {
        let bytes: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
        survive(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn token_soup() {
    let words = [
        "property",
        "violation",
        "pattern",
        "automaton",
        "let",
        "init",
        "p",
        "x",
        "always",
        "since",
        "start",
        "event",
        "write",
        "initial",
        "idle",
        "bad",
        "true",
        "_",
        "and",
        "not",
        "propery",
        "w",
        "\"a",
        "\"a\"",
        "`b c`",
        "`",
        "1",
        "2.5",
        "99999999999999999999",
        "3x",
        "#",
        "\n",
        " ",
        "é",
        "🦀",
    ];
    let signs = [
        "(", ")", "[", "]", "{", "}", ":", ";", ",", "..", ".", "=", "==", "=<", "=>", "!=", "<",
        "->", "<->", "&&", "||", "&", "|", "!", "+", "-", "*", "/", "%", "~", "?", "@", "□", "≠",
        "↑", "^", "\\",
    ];
    let mut rng = Rng::with_seed(2);
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..rng.usize(..40) {
            let from: &[&str] = if rng.bool() { &words } else { &signs };
            text.push_str(from[rng.usize(..from.len())]);
            if rng.u8(..4) > 0 {
                text.push(' ');
            }
        }
        survive(&text);
    }
}

#[test]
fn specifications_with_one_token_changed() {
    for seed in 0..8000 {
        let mut generator = Generator::new(seed);
        let text = print(&generator.spec());
        let tokens = lexer::lex(&text, &mut |_| ()).tokens;
        let rng = &mut generator.rng;
        let piece = |token: &lexer::Token| token.span.start as usize..token.span.end as usize;
        let (at, other) = (rng.usize(..tokens.len()), rng.usize(..tokens.len()));
        let mut changed = text.clone();
        match rng.u8(..3) {
            0 => changed.replace_range(piece(&tokens[at]), ""),
            1 => changed.replace_range(piece(&tokens[at]), &text[piece(&tokens[other])]),
            _ => changed.insert_str(piece(&tokens[at]).end, &text[piece(&tokens[other])]),
        }
        survive(&changed);
    }
}

#[test]
fn precedence() {
    for (short, full) in [
        ("!a && b", "(!a) && b"),
        ("!x == y", "!(x == y)"),
        ("always x > 0 && y > 0", "(always (x > 0)) && (y > 0)"),
        ("a && b || c && d", "(a && b) || (c && d)"),
        ("a -> b -> c", "a -> (b -> c)"),
        ("a <-> b <-> c", "a <-> (b <-> c)"),
        ("a -> b <-> c", "(a -> b) <-> c"),
        ("a since b since c", "a since (b since c)"),
        ("a since b until c", "a since (b until c)"),
        ("a && b since c", "a && (b since c)"),
        ("prev a since once b", "(prev a) since (once b)"),
        ("x + y * 2 - 1 > 0", "((x + (y * 2)) - 1) > 0"),
        ("-x * y > 0", "(-x) * y > 0"),
        ("x - y - z > 0", "((x - y) - z) > 0"),
        ("↑a → [b, ↓c)", "start(a) -> [b, end(c))"),
        ("□(a ∧ ¬b ∨ ◇○c)", "always ((a && !b) || eventually (next c))"),
        ("a ↔ x≠1 ∧ y≤2 ∧ z≥3", "a <-> (x != 1 && y <= 2 && z >= 3)"),
        ("⊤ && !⊥", "true && !false"),
        ("start a", "start(a)"),
        ("release(l) release release(m)", "(release(l)) release (release(m))"),
    ] {
        if short.starts_with("a since b until") {
            // A future operator under a past one: only the shape matters.
            assert_eq!(parse(&format!("property p: {short}")).diagnostics.len(), 1);
            continue;
        }
        assert_eq!(formula(short), formula(full), "{short}");
    }
    let regex = |text: &str| parsed(&format!("violation v: {text}"));
    assert_eq!(regex("~. .* | {a} & {b}?"), regex("((~.) (.*)) | ({a} & ({b}?))"));
    assert_eq!(regex("~.*"), regex("~(.*)"));
    let pattern = |text: &str| parsed(&format!("pattern v: {text}"));
    assert_eq!(
        pattern("event(a) / event(b) .. event(c) | (event(d))(event(e))*"),
        pattern("(event(a) / event(b) .. event(c)) | (event(d) .. event(e)*)")
    );
}

#[test]
fn long_chains_are_shallow() {
    let chain = vec!["x > 0"; 1000].join(" && ");
    fn height(f: &Formula) -> usize {
        match &f.kind {
            FormulaKind::Binary(_, l, r) => 1 + height(l).max(height(r)),
            _ => 0,
        }
    }
    assert_eq!(height(&formula(&chain)), 10);
}

#[test]
fn names_of_program_entities() {
    for (text, name) in [
        ("landing", "landing"),
        ("ctl.valve.open", "ctl.valve.open"),
        ("a[3]", "a[3]"),
        ("grid[3][4].x", "grid[3][4].x"),
        ("file.c:landing", "file.c:landing"),
        ("Class::field", "Class::field"),
        ("Outer$Inner.f", "Outer$Inner.f"),
        ("pair.0.1", "pair.0.1"),
        ("`weird name`", "weird name"),
        ("`end`", "end"),
    ] {
        let FormulaKind::Atom(Atom::Truth(expr)) = formula(text).kind else { panic!("{text}") };
        assert_eq!(expr.kind, ExprKind::Var(name.to_owned()));
    }
    // No white space, no name.
    assert!(parse("property p: a . b").has_errors());
    // A property's colon belongs to the property.
    assert_eq!(parsed("property p:x"), parsed("property p: x"));
    let spec = parsed("automaton a{initial s;s:event(e)->bad;}");
    assert_eq!(spec, parsed("automaton a { initial s; s: event(e) -> bad; }"));
}

#[test]
fn terms_of_event_atoms() {
    let text = "pattern p(c): event(next, c, `c`, d, 3, -2.5, \"s\", true, _)@Thread-0 .. \
                fork(1)@\"main thread\" .. write(c)@_";
    let Body::Pattern(pattern) = parsed(text).properties.remove(0).body else { panic!() };
    let PatternKind::Then(parts) = pattern.kind else { panic!() };
    let events: Vec<EventAtom> = parts
        .into_iter()
        .map(|part| match part.kind {
            PatternKind::Position(mut events) => events.remove(0),
            other => panic!("{other:?}"),
        })
        .collect();
    let ident = |name: &str| Ident { name: name.to_owned(), span: Span::default() };
    let name = |n: &str| Term::Name(ident(n));
    let literal = |value| Term::Literal(value, Span::default());
    assert_eq!(
        events[0].args,
        [
            Term::Param(ident("c")),
            name("c"),
            name("d"),
            literal(Literal::Int(3)),
            literal(Literal::Float(-2.5)),
            literal(Literal::Str("s".to_owned())),
            literal(Literal::Bool(true)),
            Term::Any,
        ]
    );
    assert_eq!((&events[0].target, &events[0].thread), (&name("next"), &name("Thread-0")));
    assert_eq!((&events[1].target, &events[1].thread), (&name("1"), &name("main thread")));
    assert_eq!((&events[2].target, &events[2].thread), (&Term::Param(ident("c")), &Term::Any));
}

#[test]
fn one_line_whatever_its_length() {
    let chain = ["(x > 0 -> `weird name` == 1 since event(a, _)@t)"; 9].join(" || ");
    let text = super::print_formula(&formula(&chain));
    assert!(!text.contains('\n'));
    assert_eq!(formula(&text), formula(&chain));
    let FormulaKind::Atom(atom) = formula("x+1>=- y").kind else { panic!() };
    assert_eq!(super::print_atom(&atom), "x + 1 >= -y");
}

#[test]
fn layout() {
    let text = "let a=x>0# c1\nlet b = y\n\n\n# above\nproperty long(c): # why\n  \
                event(first_event, c) -> once(event(second_event, c)) && !event(third_event, c)\n  \
                # between\n  && (aaaaaaaaaaaaaaaaaaaaaaaaa || b)\n";
    let neat = "let a = x > 0 # c1\nlet b = y\n\n# above\nproperty long(c): # why\n    \
                event(first_event, c) ->\n    once event(second_event, c) &&\n    \
                !event(third_event, c) &&\n    # between\n    (aaaaaaaaaaaaaaaaaaaaaaaaa || b)\n";
    assert_eq!(format(text).unwrap(), neat);
}
