//! The ready-made specifications in `specs`: each has no warnings and distinguishes its two traces,
//! and those of Dwyer, Avrunin and Corbett mean what the patterns and scopes define, which are
//! implemented a second time here.

#![allow(clippy::unwrap_used)] // A failure is what a test is for.

use std::fs;
use std::path::{Path, PathBuf};

use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::run::{ObservedMonitor, Violation};
use foresee_spec::{Resolution, Resolved, format, parse, render, resolve};
use foresee_trace::{Mode, Trace, Validated};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files of the library with this extension, sorted.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("specs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A specification without errors and warnings.
fn read_spec(text: &str, name: &str) -> (Spec, Vec<Compiled>) {
    let parsed = parse(text);
    let said = render(&parsed.diagnostics, name, text, false);
    assert!(said.is_empty(), "{said}");
    let compiled = Compiled::all(&parsed.spec)
        .unwrap_or_else(|errors| panic!("{}", render(&errors, name, text, false)));
    for property in &compiled {
        let said = render(&property.warnings, name, text, false);
        assert!(said.is_empty(), "{said}");
    }
    assert_eq!(compiled.len(), 1, "{name} has one property");
    (parsed.spec, compiled)
}

/// A trace that some execution can have.
fn read_trace(text: &str) -> Trace {
    let opened = foresee_formats::open_reader(Box::new(text.as_bytes()), None).unwrap();
    assert_eq!(opened.format.name(), "std");
    Trace::load(&mut Validated::new(opened.source, Mode::Reject)).unwrap()
}

/// A list of possible events, which need not be an execution.
fn list(text: &str) -> Trace {
    let mut opened = foresee_formats::open_reader(Box::new(text.as_bytes()), None).unwrap();
    Trace::load(&mut opened.source).unwrap()
}

/// A specification that can be tried on many words over the events of one trace.
struct Trial {
    spec: Spec,
    compiled: Vec<Compiled>,
    resolved: Resolved,
    letters: Trace,
}

impl Trial {
    fn new(path: &Path, letters: Trace) -> Trial {
        Trial::of_text(&fs::read_to_string(path).unwrap(), path.to_str().unwrap(), letters)
    }

    fn of_text(text: &str, name: &str, letters: Trace) -> Trial {
        let (spec, compiled) = read_spec(text, name);
        let Resolution { resolved, diagnostics } = resolve(&spec, &letters.names);
        assert!(!diagnostics.iter().any(|d| d.is_error()), "{diagnostics:?}");
        Trial { spec, compiled, resolved, letters }
    }

    /// The violations in a run that consists of these events of the trace.
    fn violations(&mut self, word: &[usize]) -> Vec<Violation> {
        let Trace { events, pool, names, .. } = &self.letters;
        let compiled = std::mem::take(&mut self.compiled);
        let mut monitor = ObservedMonitor::new(&self.spec, compiled, &self.resolved, names);
        for (i, &letter) in word.iter().enumerate() {
            monitor.event(i as u64, &events[letter], pool);
        }
        monitor.finish();
        assert_eq!(monitor.stopped(0), None);
        let violations = monitor.take_violations();
        self.compiled = monitor.into_properties();
        violations
    }
}

/// The places at which the trace that belongs to a specification violates it.
fn violated_at(spec: &Path, trace: &Path) -> Vec<Option<u64>> {
    let trace = read_trace(&fs::read_to_string(trace).unwrap());
    let whole: Vec<usize> = (0..trace.events.len()).collect();
    Trial::new(spec, trace).violations(&whole).iter().map(|v| v.event).collect()
}

#[test]
fn every_specification_distinguishes_its_two_traces() {
    let specs = files(".spec");
    for spec in &specs {
        let violating = spec.with_extension("violating.std");
        let text = fs::read_to_string(&violating).unwrap();
        let marks: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# violated at "))
            .map(|n| n.parse().unwrap())
            .collect();
        let [mark] = marks[..] else { panic!("{} has no single mark", violating.display()) };
        assert_eq!(violated_at(spec, &violating), [Some(mark)], "{}", violating.display());
        let satisfying = spec.with_extension("satisfying.std");
        assert_eq!(violated_at(spec, &satisfying), [], "{}", satisfying.display());
    }
    assert_eq!(files(".std").len(), 2 * specs.len(), "a trace without a specification");
}

/// `FORESEE_BLESS=1 cargo test` formats them.
#[test]
fn every_specification_is_written_neatly() {
    for spec in files(".spec") {
        let text = fs::read_to_string(&spec).unwrap();
        let neat = format(&text).unwrap();
        if std::env::var_os("FORESEE_BLESS").is_some() {
            fs::write(&spec, &neat).unwrap();
        } else {
            assert_eq!(text, neat, "{}", spec.display());
        }
    }
}

#[test]
fn every_specification_is_in_the_documentation() {
    let text = fs::read_to_string(root().join("docs/spec-library.md")).unwrap();
    for spec in files(".spec") {
        let link = spec.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        assert!(text.contains(&format!("(../{link})")), "no link to {link}");
    }
}

#[test]
fn examples_of_the_documentation_are_right() {
    let text = fs::read_to_string(root().join("docs/spec-library.md")).unwrap();
    let blocks = text.split("```spec\n").skip(1).map(|b| b.split("```").next().unwrap());
    // For each example, runs and where they violate it.
    let runs: [&[(&str, &[u64])]; 3] = [
        &[
            ("event(request,1) event(request,2) event(reply,2) exit(Server.stop)", &[3]),
            (
                "event(request,1) event(request,2) event(reply,2) event(reply,1) exit(Server.stop)",
                &[],
            ),
        ],
        &[
            ("enter(Pump.start) w(valve)=1 enter(Pump.start)", &[2]),
            ("enter(Pump.start) w(valve)=1 w(valve)=0 enter(Pump.start)", &[]),
        ],
        &[("event(q) event(end)", &[1]), ("event(p) event(end)", &[])],
    ];
    assert_eq!(blocks.clone().count(), runs.len());
    for (block, runs) in blocks.zip(runs) {
        for (run, places) in runs {
            let trace: String = run.split(' ').map(|op| format!("T1|{op}\n")).collect();
            let mut trial = Trial::of_text(block, "spec-library.md", list(&trace));
            let whole: Vec<usize> = (0..trial.letters.events.len()).collect();
            let found = trial.violations(&whole);
            let found: Vec<u64> = found.iter().filter_map(|v| v.event).collect();
            assert_eq!(found, *places, "{block}{run}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Globally,
    Before,
    After,
    Between,
    AfterUntil,
}

const SCOPES: [(&str, Scope); 5] = [
    ("globally", Scope::Globally),
    ("before-r", Scope::Before),
    ("after-q", Scope::After),
    ("between-q-and-r", Scope::Between),
    ("after-q-until-r", Scope::AfterUntil),
];

/// A pattern: its file name, its letters, whether it can fail before its scope ends, and its
/// meaning for a scope.
type Pattern = (&'static str, &'static str, bool, fn(&Stretch<'_>) -> bool);

const PATTERNS: [Pattern; 11] = [
    ("absence", "p", true, |w| !w.any(w.all(), 'p')),
    ("existence", "p", false, |w| w.any(w.all(), 'p')),
    ("bounded-existence", "p", true, |w| w.places('p').count() <= 2),
    ("universality", "01", true, |w| w.0.iter().all(|step| step.p)),
    ("precedence", "ps", true, |w| w.places('p').all(|p| w.any(0..p, 's'))),
    ("response", "ps", false, |w| w.places('p').all(|p| w.any(p..w.0.len(), 's'))),
    ("precedence-chain-1-2", "pst", true, |w| {
        w.places('s').all(|s| !w.any(s..w.0.len(), 't') || w.any(0..s, 'p'))
    }),
    ("precedence-chain-2-1", "pst", true, |w| {
        w.places('p').all(|p| w.places('s').any(|s| s < p && w.any(s..p, 't')))
    }),
    ("response-chain-1-2", "pst", false, |w| {
        w.places('p').all(|p| w.places('s').any(|s| p < s && w.any(s..w.0.len(), 't')))
    }),
    ("response-chain-2-1", "pst", false, |w| {
        let next_t = |s| w.places('t').find(|&t| s < t);
        w.places('s').all(|s| next_t(s).is_none_or(|t| w.any(t..w.0.len(), 'p')))
    }),
    ("constrained-chain", "pstz", false, |w| {
        let linked = |s, t| s < t && !w.any(s..t, 'z');
        let answered = |p| w.places('s').any(|s| p < s && w.places('t').any(|t| linked(s, t)));
        w.places('p').all(answered)
    }),
];

/// An event, or the beginning, and whether the variable p is 1 after it.
struct Step {
    letter: char,
    p: bool,
}

/// Consecutive steps of a run.
struct Stretch<'w>(&'w [Step]);

impl Stretch<'_> {
    fn all(&self) -> std::ops::Range<usize> {
        0..self.0.len()
    }

    fn any(&self, mut range: std::ops::Range<usize>, letter: char) -> bool {
        range.any(|i| self.0[i].letter == letter)
    }

    fn places(&self, letter: char) -> impl Iterator<Item = usize> {
        self.all().filter(move |&i| self.0[i].letter == letter)
    }
}

/// The parts of a run that a scope selects, and whether each has ended.
fn stretches(scope: Scope, run: &[Step]) -> Vec<(Stretch<'_>, bool)> {
    let next = |from: usize, letter| {
        run[from..].iter().position(|step| step.letter == letter).map(|i| from + i)
    };
    match scope {
        Scope::Globally => vec![(Stretch(run), false)],
        Scope::Before => next(0, 'r').map(|r| (Stretch(&run[..r]), true)).into_iter().collect(),
        Scope::After => next(0, 'q').map(|q| (Stretch(&run[q..]), false)).into_iter().collect(),
        Scope::Between | Scope::AfterUntil => {
            let (mut found, mut from) = (Vec::new(), 0);
            while let Some(q) = next(from, 'q') {
                let r = next(q, 'r');
                if r.is_some() || scope == Scope::AfterUntil {
                    found.push((Stretch(&run[q..r.unwrap_or(run.len())]), r.is_some()));
                }
                from = r.unwrap_or(run.len());
            }
            found
        }
    }
}

/// The last event of the shortest prefix of a run that violates a pattern in a scope. A promise is
/// due when its scope or the run ends; a prohibition can be violated before.
fn first_violation(&(_, _, prohibits, holds): &Pattern, scope: Scope, run: &[char]) -> Option<u64> {
    let mut steps = vec![Step { letter: '-', p: true }];
    for (i, &letter) in run.iter().enumerate() {
        let before = steps[i].p;
        steps.push(Step { letter, p: letter == '1' || before && letter != '0' });
        let due = prohibits || letter == 'e';
        if stretches(scope, &steps).iter().any(|(part, over)| (*over || due) && !holds(part)) {
            return Some(i as u64);
        }
    }
    None
}

/// The letters of a specification, an unrelated letter `x`, and `e` for the end.
fn alphabet(&(_, letters, prohibits, _): &Pattern, scope: Scope) -> Vec<char> {
    let delimiters = match scope {
        Scope::Globally => "",
        Scope::Before => "r",
        Scope::After => "q",
        Scope::Between | Scope::AfterUntil => "qr",
    };
    let end = if prohibits { "" } else { "e" };
    [letters, delimiters, end, "x"].concat().chars().collect()
}

fn event(letter: char) -> String {
    match letter {
        '0' | '1' => format!("T2|w(p)={letter}\n"),
        'e' => "T1|event(end)\n".to_owned(),
        _ => format!("T1|event({letter})\n"),
    }
}

/// Tries all words of a length, which covers all shorter ones, and longer ones at random.
fn compare(pattern: &Pattern, scope_name: &str, scope: Scope, rng: &mut fastrand::Rng) {
    let name = format!("{}-{scope_name}", pattern.0);
    let letters = alphabet(pattern, scope);
    let text: String = letters.iter().map(|&l| event(l)).collect();
    let path = root().join(format!("specs/dwyer/{name}.spec"));
    let mut trial = Trial::new(&path, list(&text));
    let mut outcomes = [0u32; 2];
    let mut check = |word: &[usize]| {
        let run: Vec<char> = word.iter().map(|&i| letters[i]).collect();
        let found: Vec<_> = trial.violations(word).iter().map(|v| v.event).collect();
        let meant: Vec<_> = first_violation(pattern, scope, &run).into_iter().map(Some).collect();
        assert_eq!(found, meant, "{name} on {}", run.iter().collect::<String>());
        outcomes[found.len()] += 1;
    };
    let words = |length: u32| letters.len().pow(length);
    let length = (5..).take_while(|&n| n == 5 || words(n) <= 20_000).last().unwrap();
    for number in 0..words(length) {
        let digit = |i| number / words(i) % letters.len();
        check(&(0..length).map(digit).collect::<Vec<_>>());
    }
    for _ in 0..3_000 {
        // Some letters more often than others; otherwise nearly all long words would be violated.
        let favourite = rng.usize(..letters.len());
        let mut letter = || if rng.u8(..3) == 0 { favourite } else { rng.usize(..letters.len()) };
        let word: Vec<usize> = (0..6 + letter() * 3).map(|_| letter()).collect();
        check(&word);
    }
    assert!(outcomes.iter().all(|&n| n > 10), "{name}: one-sided, {outcomes:?}");
}

#[test]
fn dwyers_patterns_mean_what_they_say() {
    let mut rng = fastrand::Rng::with_seed(5);
    for pattern in &PATTERNS {
        for (name, scope) in SCOPES {
            compare(pattern, name, scope, &mut rng);
        }
    }
    let there = files(".spec").iter().filter(|p| p.parent().unwrap().ends_with("dwyer")).count();
    assert_eq!(there, PATTERNS.len() * SCOPES.len());
}

/// Tries a specification on random runs in which three threads do these things. `meant` returns the
/// violations of a run, which lists for each step its thread and what it did.
fn compare_with_three_threads(
    name: &str,
    things: &[&str],
    meant: impl Fn(&[(usize, usize)]) -> Vec<usize>,
) {
    let lines = (0..3).flat_map(|t| things.iter().map(move |thing| format!("T{t}|{thing}\n")));
    let path = root().join(format!("specs/java/{name}.spec"));
    let mut trial = Trial::new(&path, list(&lines.collect::<String>()));
    let mut rng = fastrand::Rng::with_seed(11);
    let mut outcomes = [0u32; 2];
    for _ in 0..20_000 {
        let word: Vec<usize> =
            (0..rng.usize(..16)).map(|_| rng.usize(..3 * things.len())).collect();
        let run: Vec<_> = word.iter().map(|l| (l / things.len(), l % things.len())).collect();
        let found = trial.violations(&word);
        let mut found: Vec<_> = found.iter().map(|v| v.event.unwrap() as usize).collect();
        let mut meant = meant(&run);
        found.sort_unstable();
        meant.sort_unstable();
        assert_eq!(found, meant, "{name} on {run:?}");
        outcomes[usize::from(found.is_empty())] += 1;
    }
    assert!(outcomes.iter().all(|&n| n > 100), "{name}: one-sided, {outcomes:?}");
}

#[test]
fn class_invariant_is_about_two_threads_and_single_calls() {
    const A: usize = 0;
    const B: usize = 1;
    compare_with_three_threads("Class_Invariant", &["w(a)", "w(b)"], |run| {
        let mixes = |l: usize, t: usize, u: usize| {
            let last = (0..l).rev().find(|&i| run[i].0 == t);
            run[l] == (t, B)
                && last.is_some_and(|i| {
                    let mut since = run[i..l].iter().skip_while(|&&step| step != (u, A));
                    run[i].1 == A && since.any(|&step| step == (u, B))
                })
        };
        let pairs = (0..9).map(|n| (n / 3, n % 3)).filter(|(t, u)| t != u);
        pairs.filter_map(|(t, u)| (0..run.len()).find(|&l| mixes(l, t, u))).collect()
    });
}

#[test]
fn add_all_is_disturbed_by_other_threads_only() {
    let things = |c| [("enter(addAll", c), ("exit(addAll", c), ("enter(add", c)];
    let things = [things("c"), things("d")].concat();
    let things: Vec<String> = things.iter().map(|(what, c)| format!("{what},{c})")).collect();
    let things: Vec<&str> = things.iter().map(String::as_str).collect();
    compare_with_three_threads("Collection_UnsynchronizedAddAll", &things, |run| {
        let disturbed = |l: usize, t: usize, enter: usize| {
            let (exit, add) = (enter + 1, enter + 2);
            let call = run[..l].iter().rposition(|&step| step == (t, exit)).unwrap_or(0);
            let mut inside = run[call..l].iter().skip_while(|&&step| step != (t, enter));
            run[l] == (t, exit) && inside.any(|&(who, what)| who != t && what == add)
        };
        let slices = (0..6).map(|n| (n / 2, n % 2 * 3));
        slices.filter_map(|(t, c)| (0..run.len()).find(|&l| disturbed(l, t, c))).collect()
    });
}
