//! Random correct specifications.

use std::sync::Arc;

use fastrand::Rng;

use crate::ast::*;

/// Names of all kinds: plain ones, ones that need backquotes, and words of the language.
const NAMES: &[&str] = &[
    "x",
    "y",
    "landing",
    "ctl.valve.open",
    "a[3]",
    "file.c:landing",
    "pkg.Class.field",
    "A::b",
    "m.0.1",
    "$v",
    "größe",
    "weird name",
    "always",
    "end",
    "property",
    "let",
    "write",
    "release",
    "true",
    "w",
    "and",
    "a-b",
    "12",
    "x.",
    "a..b",
    "a[",
    "#",
    "tab\t",
    "back`tick",
    "quo\"te",
    "\\",
    "_",
    "p",
    "c",
    "q1",
];

/// Names of methods, with wildcards.
const METHODS: &[&str] =
    &["Account::*", "*_locked", "trans*fer", "~A::x", "a::b::c*", "*", "atomic", "op.9", "f<*>"];

const PARAMS: &[&str] = &["c", "i", "iter", "odd name"];

pub(super) struct Generator {
    pub(super) rng: Rng,
    lets: Vec<(Ident, Arc<Formula>, Tense)>,
    params: Vec<Ident>,
}

/// Which operators a formula may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tense {
    None,
    Past,
    Any,
}

fn ident(name: impl Into<String>) -> Ident {
    Ident { name: name.into(), span: Span::default() }
}

fn formula(kind: FormulaKind) -> Formula {
    Formula { kind, span: Span::default() }
}

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        Generator { rng: Rng::with_seed(seed), lets: Vec::new(), params: Vec::new() }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(..from.len())]
    }

    fn many<T>(
        &mut self,
        least: usize,
        most: usize,
        mut make: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        (0..self.rng.usize(least..=most)).map(|_| make(self)).collect()
    }

    pub(super) fn spec(&mut self) -> Spec {
        let mut spec = Spec::default();
        for i in 0..self.rng.usize(..4) {
            let name = self.pick(NAMES);
            if spec.inits.iter().all(|init| init.var.name != name) {
                spec.inits.push(Init { var: ident(name), value: self.literal() });
            }
            let name = ident(if i == 0 { "p".to_owned() } else { format!("q{i}") });
            let tense = self.pick(&[Tense::None, Tense::Past, Tense::Any]);
            let formula = self.formula(4, tense);
            self.lets.push((name.clone(), Arc::new(formula.clone()), tense));
            spec.lets.push(Let { name, formula });
        }
        for _ in 0..self.rng.usize(..4) {
            let name = if self.rng.bool() { self.pick(NAMES) } else { self.pick(METHODS) };
            if spec.atomics.iter().all(|method| method.name != name) {
                spec.atomics.push(ident(name));
            }
        }
        for i in 0..self.rng.usize(1..5) {
            let params = if self.rng.bool() { self.rng.usize(..PARAMS.len()) } else { 0 };
            self.params = PARAMS[..params].iter().map(|&p| ident(p)).collect();
            let body = match self.rng.u8(..4) {
                0 => Body::Formula(self.formula(6, Tense::Any)),
                1 => Body::Violation(self.regex(5)),
                2 => Body::Pattern(self.pattern(4)),
                _ => Body::Automaton(self.automaton()),
            };
            let odd = if self.rng.u8(..8) == 0 { " odd" } else { "" };
            spec.properties.push(Property {
                name: ident(format!("n{i}{odd}")),
                params: std::mem::take(&mut self.params),
                objects: Vec::new(),
                body,
                span: Span::default(),
            });
        }
        spec
    }

    fn formula(&mut self, depth: u32, tense: Tense) -> Formula {
        use BinaryOp::*;
        let below = depth.saturating_sub(1);
        let kind = match if depth == 0 { self.rng.u8(..4) } else { self.rng.u8(..12) } {
            0 => FormulaKind::Const(self.rng.bool()),
            1 | 2 => FormulaKind::Atom(self.atom()),
            3 => {
                let (name, body, of) = match self.lets.len() {
                    0 => return formula(FormulaKind::Atom(self.atom())),
                    n => self.lets[self.rng.usize(..n)].clone(),
                };
                if of > tense {
                    return formula(FormulaKind::Atom(self.atom()));
                }
                FormulaKind::Let(name, body)
            }
            4..7 => {
                let mut ops = vec![UnaryOp::Not];
                if tense >= Tense::Past {
                    use UnaryOp::*;
                    ops.extend([Prev, Once, Hist, Start, End]);
                }
                if tense == Tense::Any {
                    ops.extend([UnaryOp::Next, UnaryOp::Eventually, UnaryOp::Always]);
                }
                let op = self.pick(&ops);
                let below_tense = if op.is_past() { Tense::Past } else { tense };
                FormulaKind::Unary(op, Box::new(self.formula(below, below_tense)))
            }
            _ => {
                let mut ops = vec![And, And, And, Or, Or, Or, Implies, Iff];
                if tense >= Tense::Past {
                    ops.extend([Since, WeakSince, Interval, WeakInterval]);
                }
                if tense == Tense::Any {
                    ops.extend([Until, WeakUntil, Release]);
                }
                let op = self.pick(&ops);
                let tense = if op.is_past() { Tense::Past } else { tense };
                let (left, right) = (self.formula(below, tense), self.formula(below, tense));
                FormulaKind::Binary(op, Box::new(left), Box::new(right))
            }
        };
        formula(kind)
    }

    fn atom(&mut self) -> Atom {
        use CompareOp::*;
        let op = self.pick(&[Eq, Ne, Lt, Le, Gt, Ge]);
        match self.rng.u8(..5) {
            0 => Atom::Event(self.event()),
            1 => match self.expr(3) {
                Expr { kind: ExprKind::Literal(_), .. } => Atom::Truth(self.var()),
                other => Atom::Truth(other),
            },
            2 => {
                let value = self.literal();
                let op = if matches!(value, Literal::Bool(_)) { Eq } else { op };
                let value = Expr { kind: ExprKind::Literal(value), span: Span::default() };
                let (a, b) = (self.var(), value);
                if self.rng.bool() { Atom::Compare(op, a, b) } else { Atom::Compare(op, b, a) }
            }
            _ => Atom::Compare(op, self.expr(3), self.expr(3)),
        }
    }

    fn var(&mut self) -> Expr {
        Expr { kind: ExprKind::Var(self.pick(NAMES).to_owned()), span: Span::default() }
    }

    /// An expression of numbers.
    fn expr(&mut self, depth: u32) -> Expr {
        use ArithOp::*;
        let kind = match if depth == 0 { self.rng.u8(..2) } else { self.rng.u8(..6) } {
            0 => return self.var(),
            1 => ExprKind::Literal(self.number()),
            2 => ExprKind::Neg(Box::new(self.expr(depth - 1))),
            _ => {
                let op = self.pick(&[Add, Sub, Mul, Div, Rem]);
                let (left, right) = (self.expr(depth - 1), self.expr(depth - 1));
                ExprKind::Arith(op, Box::new(left), Box::new(right))
            }
        };
        Expr { kind, span: Span::default() }
    }

    fn number(&mut self) -> Literal {
        match self.rng.u8(..4) {
            0 => Literal::Int(i128::from(self.rng.i64(..))),
            1 => Literal::Int(self.pick(&[0, 1, -1, i128::from(i64::MIN), i128::from(u64::MAX)])),
            2 => Literal::Int(i128::from(self.rng.i8(..))),
            _ => Literal::Float(self.pick(&[0.0, -0.5, 1e300, -1e-300, 26.0, f64::MAX, 0.1])),
        }
    }

    fn literal(&mut self) -> Literal {
        match self.rng.u8(..4) {
            0 => Literal::Bool(self.rng.bool()),
            1 => Literal::Str(self.pick(NAMES).to_owned()),
            _ => self.number(),
        }
    }

    pub(super) fn event(&mut self) -> EventAtom {
        use EventKind::*;
        let kinds = [Read, Write, Acquire, Release, Fork, Join, Enter, Exit, Event];
        EventAtom {
            kind: self.pick(&kinds),
            target: self.term(false),
            args: self.many(0, 2, |g| g.term(true)),
            thread: if self.rng.bool() { Term::Any } else { self.term(false) },
            span: Span::default(),
        }
    }

    fn term(&mut self, argument: bool) -> Term {
        match self.rng.u8(..5) {
            0 => Term::Any,
            1 if argument => Term::Literal(self.literal(), Span::default()),
            2 if self.params.iter().any(|p| p.name == "c") => Term::Param(ident("c")),
            // Inside lets, names of parameters would be another mistake.
            _ => match self.pick(NAMES) {
                "c" if self.params.is_empty() => Term::Name(ident("d")),
                name => Term::Name(ident(name)),
            },
        }
    }

    fn regex(&mut self, depth: u32) -> Regex {
        let below = depth.saturating_sub(1);
        let kind = match if depth == 0 { self.rng.u8(..5) } else { self.rng.u8(..13) } {
            0 => RegexKind::Empty,
            1 => RegexKind::Any,
            2 | 3 => RegexKind::Step(self.formula(3, Tense::None)),
            4 => RegexKind::Event(self.event()),
            5 => RegexKind::Union(self.many(2, 3, |g| g.regex(below))),
            6 => RegexKind::Intersection(self.many(2, 3, |g| g.regex(below))),
            7 => RegexKind::Complement(Box::new(self.regex(below))),
            8 => RegexKind::Star(Box::new(self.regex(below))),
            9 => RegexKind::Plus(Box::new(self.regex(below))),
            10 => RegexKind::Optional(Box::new(self.regex(below))),
            _ => RegexKind::Concat(self.many(2, 4, |g| g.regex(below))),
        };
        Regex { kind, span: Span::default() }
    }

    fn pattern(&mut self, depth: u32) -> Pattern {
        let below = depth.saturating_sub(1);
        let kind = match if depth == 0 { self.rng.u8(..3) } else { self.rng.u8(..8) } {
            0 => PatternKind::Empty,
            1 | 2 => PatternKind::Position(self.many(1, 3, Self::event)),
            3 => PatternKind::Union(self.many(2, 3, |g| g.pattern(below))),
            4 => PatternKind::Intersection(self.many(2, 3, |g| g.pattern(below))),
            5 => PatternKind::Star(Box::new(self.pattern(below))),
            _ => PatternKind::Then(self.many(2, 4, |g| g.pattern(below))),
        };
        Pattern { kind, span: Span::default() }
    }

    fn automaton(&mut self) -> Automaton {
        let names = ["idle", "bad", "initial", "next state", "s1", "s2"];
        let first = self.rng.usize(..names.len());
        let initial =
            names[first..(first + 2).min(names.len())].iter().map(|&n| ident(n)).collect();
        let mut states = Vec::new();
        for name in &names[..self.rng.usize(..names.len())] {
            let edges = self.many(0, 3, |g| Edge {
                guard: g.formula(3, Tense::None),
                target: ident(g.pick(&names)),
            });
            states.push(AutomatonState { name: ident(*name), edges });
        }
        Automaton { initial, states }
    }
}
