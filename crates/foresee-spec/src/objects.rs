//! Properties about every object of a type: `property solvent(a: account): a.balance >= 0`.
//!
//! Which objects there are is known from the names of a trace: those of objects whose type is known
//! begin with it. A property becomes one for each choice of objects, in which their names stand for
//! the parameters, and nothing after this step knows of objects. Different parameters stand for
//! different objects.
//!
//! Objects come into being while the program runs, and at first their fields have no value that
//! anyone would want to speak of. So a run of such a property begins at the step at which all values
//! that it needs are known: its formulas are rewritten such that earlier steps do not exist. That a value is
//! known is the condition `x == x`, because a comparison with an unknown value is false.

use std::collections::{HashMap, HashSet};

use foresee_support::nearest::nearest;
use foresee_trace::{FieldName, Id, Interner, LockId, Names, VarId, Visible, plain_name};

use crate::ast::{
    Atom, BinaryOp, Body, CompareOp, EventAtom, Expr, ExprKind, Formula, FormulaKind, ObjectParam,
    Pattern, PatternKind, Property, Regex, RegexKind, Span, Spec, Term, UnaryOp,
};
use crate::diagnostic::Diagnostic;
use crate::mentions::{Entity, FieldMention, field_of, fields};
use crate::resolve::Resolved;

mod symmetry;

/// The maximum number of types or fields in a message.
const SHOWN: usize = 5;

/// The objects of a trace for each parameter of a property that has a type, in the order in which
/// the trace names them.
pub(crate) fn find(
    property: &Property,
    names: &Names,
    report: &mut dyn FnMut(Diagnostic),
) -> Vec<Vec<String>> {
    let mentioned = fields(property);
    let known = Known::new(names);
    let objects = property.objects.iter().enumerate();
    let found: Vec<Vec<String>> = objects
        .map(|(i, param)| {
            let own: Vec<&FieldMention<'_>> = mentioned.iter().filter(|f| f.object == i).collect();
            let mut search = Search { param, own, found: Vec::new(), known: HashSet::new() };
            search.through(&names.vars, |field| field.is_variable());
            search.through(&names.locks, |field| field.entity == Entity::Lock);
            search.complete(names, &known, report)
        })
        .collect();
    let different: HashSet<&String> = found.iter().flatten().collect();
    if let Some(last) = property.objects.last()
        && found.iter().all(|found| !found.is_empty())
        && different.len() < found.len()
    {
        let message = format!(
            "the parameters of `{}` stand for different objects, and the trace has only {}",
            property.name.name,
            different.len()
        );
        let label = "there is no further object";
        report(Diagnostic::error("too-few-objects", message, last.of.span, label));
    }
    found
}

/// The fields of all objects. An object's field may have the type of another object in its name.
pub(crate) struct Known<'n> {
    names: &'n Names,
    /// By their objects and paths, where the name is another than both together.
    vars: HashMap<(&'n str, String), VarId>,
    locks: HashMap<(&'n str, String), LockId>,
}

impl<'n> Known<'n> {
    pub(crate) fn new(names: &'n Names) -> Known<'n> {
        Known { names, vars: tagged(&names.vars), locks: tagged(&names.locks) }
    }

    fn var(&self, object: &'n str, path: &str) -> Option<VarId> {
        let whole = self.names.vars.lookup(&format!("{object}.{path}"));
        whole.or_else(|| self.vars.get(&(object, path.to_owned())).copied())
    }

    fn lock(&self, object: &'n str, path: &str) -> Option<LockId> {
        let whole = self.names.locks.lookup(&format!("{object}.{path}"));
        whole.or_else(|| self.locks.get(&(object, path.to_owned())).copied())
    }
}

fn tagged<I: Id>(known: &Interner<I>) -> HashMap<(&str, String), I> {
    let mut found = HashMap::new();
    for (id, name) in known.iter().filter(|(_, name)| name.contains('{')) {
        for field in FieldName::all(name) {
            let path = field.path.into_owned();
            if name[field.object.len()..].len() != path.len() + 1 {
                found.insert((field.object, path), id);
            }
        }
    }
    found
}

/// The search for the objects of one parameter.
struct Search<'a> {
    param: &'a ObjectParam,
    own: Vec<&'a FieldMention<'a>>,
    found: Vec<String>,
    known: HashSet<String>,
}

impl Search<'_> {
    fn through<I: Id>(&mut self, known: &Interner<I>, wanted: impl Fn(&FieldMention<'_>) -> bool) {
        let paths: HashSet<&str> = self.own.iter().filter(|f| wanted(f)).map(|f| f.path).collect();
        if paths.is_empty() {
            return;
        }
        for (_, name) in known.iter() {
            let fields = FieldName::all(name);
            let is_it = |field: &&FieldName<'_>| {
                FieldName::is_named(field.of, &self.param.of.name) && paths.contains(&*field.path)
            };
            let numbered = fields.iter().filter(is_it).map(|field| field.object);
            // The only object of a Java class has no number.
            let only = paths.iter().filter(|_| fields.is_empty()).find_map(|path| {
                let object = name.strip_suffix(path)?.strip_suffix('.')?;
                FieldName::is_named(object, &self.param.of.name).then_some(object)
            });
            for object in numbered.chain(only) {
                if !self.known.contains(object) {
                    self.known.insert(object.to_owned());
                    self.found.push(object.to_owned());
                }
            }
        }
    }

    /// The objects that have all fields whose values are needed.
    fn complete(
        self,
        names: &Names,
        known: &Known<'_>,
        report: &mut dyn FnMut(Diagnostic),
    ) -> Vec<String> {
        let Search { param, own, mut found, .. } = self;
        let type_name = &param.of.name;
        let before = found.len();
        let lacks = |object: &str| {
            let needed = own.iter().filter(|field| field.entity == Entity::State);
            let mut missing = needed.filter(|field| known.var(object, field.path).is_none());
            missing.next().copied()
        };
        let first_lack = found.iter().find_map(|object| lacks(object));
        found.retain(|object| lacks(object).is_none());
        let is_lock =
            |object: &String, field: &FieldMention<'_>| known.lock(object, field.path).is_some();
        let mut locks = own.iter().filter(|field| field.entity == Entity::Lock);
        if found.is_empty() {
            report(absent(param, first_lack.or(own.first().copied()), names));
        } else if let Some(field) = first_lack {
            let count = before - found.len();
            let message = format!(
                "{count} of {before} objects of the type `{type_name}` have no value of `{}` in the trace",
                field.path
            );
            let label = "the property is not checked for them";
            report(Diagnostic::warning("unknown-field", message, field.span, label));
        }
        // That nobody takes such a lock would look like a violation.
        let unknown = locks.find(|field| !found.iter().any(|object| is_lock(object, field)));
        if let Some(field) = unknown.filter(|_| !found.is_empty()) {
            let message = format!(
                "no object of the type `{type_name}` has a lock `{}` in the trace",
                field.path
            );
            let error = Diagnostic::error("unknown-field", message, field.span, "no such lock");
            report(error.help(
                "a lock must be a part of the object; in Java it is an object of its own, which has no name here",
            ));
        }
        found
    }
}

/// Why a property has no objects.
fn absent(param: &ObjectParam, field: Option<&FieldMention<'_>>, names: &Names) -> Diagnostic {
    let meant = &param.of.name;
    let (mut types, mut paths) = (Vec::new(), Vec::new());
    for field in names.vars.iter().flat_map(|(_, name)| FieldName::all(name)) {
        if field.of != "heap" && !types.contains(&field.of) && types.len() < 1_000 {
            types.push(field.of);
        }
        let is_it = FieldName::is_named(field.of, meant);
        if is_it && !paths.contains(&field.path) && paths.len() < 1_000 {
            paths.push(field.path);
        }
    }
    let paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
    if let (Some(field), false) = (field, paths.is_empty()) {
        let message =
            format!("no object of the type `{meant}` has a field `{}` in the trace", field.path);
        let error = Diagnostic::error("unknown-field", message, field.span, "has no value");
        return error.help(match nearest(field.path, paths.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", Visible(near)),
            None => format!("it has {}", list(&paths)),
        });
    }
    let message = format!("no object of the type `{meant}` is in the trace");
    let error = Diagnostic::error("unknown-type", message, param.of.span, "no such object");
    let last = |of: &&str| {
        of.rsplit(['.', ':', '$']).next().is_some_and(|l| nearest(meant, [l]).is_some())
    };
    error.help(
        match nearest(meant, types.iter().copied()).or(types.iter().copied().find(|of| last(of))) {
            Some(near) => format!("did you mean `{}`?", Visible(near)),
            None if types.is_empty() => {
                "the type of an object is known from what accesses its fields: compile with -g"
                    .to_owned()
            }
            None => format!("there are objects of the types {}", list(&types)),
        },
    )
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", Visible(name))).collect();
    format!("{}{}", shown.join(", "), if names.len() > SHOWN { ", …" } else { "" })
}

/// A specification without objects.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The properties, one for each choice of objects.
    pub spec: Spec,
    /// The names, with those of the fields.
    pub resolved: Resolved,
    /// The property of the original specification that each comes from.
    pub origins: Vec<usize>,
    /// How many choices of objects were left out because there are too many.
    pub left_out: usize,
}

/// Makes every property about objects one for each choice of them; at most `most` properties in all.
pub fn expand(spec: &Spec, resolved: &Resolved, names: &Names, most: usize) -> Expanded {
    let mut expanded = Expanded {
        spec: Spec { properties: Vec::new(), ..spec.clone() },
        resolved: resolved.clone(),
        origins: Vec::new(),
        left_out: 0,
    };
    let known = Known::new(names);
    for (origin, property) in spec.properties.iter().enumerate() {
        if property.objects.is_empty() {
            expanded.spec.properties.push(property.clone());
            expanded.origins.push(origin);
            continue;
        }
        let found = resolved.objects.get(&property.name.name);
        let found = found.map_or(&[][..], |found| found.as_slice());
        if found.len() != property.objects.len() || found.iter().any(Vec::is_empty) {
            continue;
        }
        let alike = symmetry::exchangeable(property);
        let mut choice = vec![0; found.len()];
        loop {
            let objects: Vec<&str> =
                choice.iter().zip(found).map(|(&i, found)| found[i].as_str()).collect();
            let is_distinct = (1..objects.len()).all(|i| !objects[..i].contains(&objects[i]))
                && alike.iter().all(|&(first, second)| choice[first] < choice[second]);
            if is_distinct && expanded.spec.properties.len() >= most {
                // Those that follow are counted as if all were distinct.
                let later = choice.iter().zip(found).fold(0usize, |n, (&i, found)| {
                    n.saturating_mul(found.len()).saturating_add(found.len() - 1 - i)
                });
                expanded.left_out = expanded.left_out.saturating_add(later.saturating_add(1));
                break;
            }
            if is_distinct {
                expanded.add(property, &objects, &known);
                expanded.origins.push(origin);
            }
            // The next choice; the last parameter changes fastest.
            let Some(at) = (0..choice.len()).rev().find(|&i| choice[i] + 1 < found[i].len()) else {
                break;
            };
            choice[at] += 1;
            choice[at + 1..].fill(0);
        }
    }
    expanded
}

impl Expanded {
    /// Adds a property about these objects.
    fn add(&mut self, property: &Property, objects: &[&str], known: &Known<'_>) {
        let mut of = property.clone();
        let params = std::mem::take(&mut of.objects);
        let plain: Vec<_> = objects.iter().map(|object| plain_name(object)).collect();
        of.name.name = format!("{}({})", of.name.name, plain.join(", "));
        let resolved = &mut self.resolved;
        let mut rename = |name: &mut String, is_lock: bool| {
            let Some((object, path)) = field_of(name, &params) else { return };
            let full = format!("{}.{path}", objects[object]);
            if is_lock {
                let lock = known.lock(objects[object], path);
                resolved.locks.extend(lock.map(|lock| (full.clone(), vec![lock])));
            } else if let Some(var) = known.var(objects[object], path) {
                resolved.vars.insert(full.clone(), var);
                resolved.fields.insert(var);
            }
            *name = full;
        };
        rename_body(&mut of.body, &mut rename);
        let mut needed: Vec<String> = Vec::new();
        for field in fields(property).iter().filter(|field| field.entity == Entity::State) {
            let name = format!("{}.{}", objects[field.object], field.path);
            if !needed.contains(&name) {
                needed.push(name);
            }
        }
        if !needed.is_empty() {
            begin_when_known(&mut of, &needed);
        }
        self.spec.properties.push(of);
    }
}

/// Makes a property one that begins when the values of some variables are known.
fn begin_when_known(property: &mut Property, needed: &[String]) {
    let span = property.span;
    let known = needed.iter().map(|name| {
        let value = || Expr { kind: ExprKind::Var(name.clone()), span };
        Formula { kind: FormulaKind::Atom(Atom::Compare(CompareOp::Eq, value(), value())), span }
    });
    if let Some(known) = known.reduce(and) {
        begin_at(&mut property.body, known, span);
    }
}

/// Makes a property one that begins at the first step at which a condition holds; the condition holds from then on.
fn begin_at(body: &mut Body, known: Formula, span: Span) {
    match body {
        Body::Formula(formula) => {
            let since = Since(&known).formula(formula);
            *formula = match has_future(formula) {
                true => binary(BinaryOp::WeakUntil, not(known.clone()), and(known, since)),
                false => implies(known, since),
            };
        }
        Body::Violation(regex) => {
            let step = |formula| Regex { kind: RegexKind::Step(formula), span };
            let many = |regex| Regex { kind: RegexKind::Star(Box::new(regex)), span };
            let rest = vec![regex.clone(), many(step(known.clone()))];
            let rest = Regex { kind: RegexKind::Intersection(rest), span };
            let kind = RegexKind::Concat(vec![many(step(not(known))), rest]);
            *regex = Regex { kind, span };
        }
        Body::Automaton(automaton) => {
            for edge in automaton.states.iter_mut().flat_map(|state| &mut state.edges) {
                edge.guard = and(known.clone(), edge.guard.clone());
            }
        }
        // These have no conditions.
        Body::Pattern(_) | Body::Custom(_) => {}
    }
}

/// Rewrites formulas such that steps before the first at which a condition holds do not exist; the condition holds
/// from then on.
struct Since<'a>(&'a Formula);

impl Since<'_> {
    fn formula(&self, formula: &Formula) -> Formula {
        let (begun, span) = (|| self.0.clone(), formula.span);
        let was = |formula| unary(UnaryOp::Prev, formula);
        match &formula.kind {
            FormulaKind::Const(_) | FormulaKind::Atom(_) => formula.clone(),
            FormulaKind::Let(_, body) => self.formula(body),
            FormulaKind::Unary(op, operand) => {
                let inner = self.formula(operand);
                match op {
                    // What held before the first step is what holds at it.
                    UnaryOp::Prev => and(
                        implies(was(begun()), was(inner.clone())),
                        implies(not(was(begun())), inner),
                    ),
                    UnaryOp::Once => unary(UnaryOp::Once, and(begun(), inner)),
                    UnaryOp::Hist => unary(UnaryOp::Hist, implies(begun(), inner)),
                    UnaryOp::Start => and(and(inner.clone(), was(begun())), not(was(inner))),
                    UnaryOp::End => and(and(not(inner.clone()), was(begun())), was(inner)),
                    UnaryOp::Not | UnaryOp::Next | UnaryOp::Eventually | UnaryOp::Always => {
                        unary(*op, inner)
                    }
                }
            }
            FormulaKind::Binary(op, left, right) => {
                let (left, right) = (self.formula(left), self.formula(right));
                match op {
                    BinaryOp::Since => binary(BinaryOp::Since, left, and(begun(), right)),
                    BinaryOp::WeakSince => {
                        binary(BinaryOp::WeakSince, implies(begun(), left), and(begun(), right))
                    }
                    BinaryOp::Interval => {
                        let first = and(begun(), and(left, not(right.clone())));
                        binary(BinaryOp::Since, not(right), first)
                    }
                    BinaryOp::WeakInterval => {
                        let first = and(begun(), and(left, not(right.clone())));
                        binary(BinaryOp::WeakSince, implies(begun(), not(right)), first)
                    }
                    _ => {
                        let (left, right) = (Box::new(left), Box::new(right));
                        Formula { kind: FormulaKind::Binary(*op, left, right), span }
                    }
                }
            }
        }
    }
}

fn has_future(formula: &Formula) -> bool {
    match &formula.kind {
        FormulaKind::Const(_) | FormulaKind::Atom(_) => false,
        FormulaKind::Let(_, body) => has_future(body),
        FormulaKind::Unary(op, operand) => op.is_future() || has_future(operand),
        FormulaKind::Binary(op, left, right) => {
            op.is_future() || has_future(left) || has_future(right)
        }
    }
}

fn unary(op: UnaryOp, operand: Formula) -> Formula {
    let span = operand.span;
    Formula { kind: FormulaKind::Unary(op, Box::new(operand)), span }
}

fn binary(op: BinaryOp, left: Formula, right: Formula) -> Formula {
    let span = left.span;
    Formula { kind: FormulaKind::Binary(op, Box::new(left), Box::new(right)), span }
}

fn not(formula: Formula) -> Formula {
    unary(UnaryOp::Not, formula)
}

fn and(left: Formula, right: Formula) -> Formula {
    binary(BinaryOp::And, left, right)
}

fn implies(left: Formula, right: Formula) -> Formula {
    binary(BinaryOp::Implies, left, right)
}

/// Gets each name of a variable or lock, and whether it is of a lock.
type Rename<'r> = dyn FnMut(&mut String, bool) + 'r;

fn rename_body(body: &mut Body, rename: &mut Rename<'_>) {
    match body {
        Body::Formula(formula) => rename_formula(formula, rename),
        Body::Violation(regex) => rename_regex(regex, rename),
        Body::Pattern(pattern) => rename_pattern(pattern, rename),
        Body::Automaton(automaton) => {
            let edges = automaton.states.iter_mut().flat_map(|state| &mut state.edges);
            edges.for_each(|edge| rename_formula(&mut edge.guard, rename));
        }
        Body::Custom(_) => {}
    }
}

fn rename_formula(formula: &mut Formula, rename: &mut Rename<'_>) {
    match &mut formula.kind {
        // Lets have no parameters.
        FormulaKind::Const(_) | FormulaKind::Let(..) => {}
        FormulaKind::Atom(Atom::Compare(_, left, right)) => {
            rename_expr(left, rename);
            rename_expr(right, rename);
        }
        FormulaKind::Atom(Atom::Truth(expr)) => rename_expr(expr, rename),
        FormulaKind::Atom(Atom::Event(event)) => rename_event(event, rename),
        FormulaKind::Unary(_, operand) => rename_formula(operand, rename),
        FormulaKind::Binary(_, left, right) => {
            rename_formula(left, rename);
            rename_formula(right, rename);
        }
    }
}

fn rename_expr(expr: &mut Expr, rename: &mut Rename<'_>) {
    match &mut expr.kind {
        ExprKind::Literal(_) => {}
        ExprKind::Var(name) => rename(name, false),
        ExprKind::Neg(operand) => rename_expr(operand, rename),
        ExprKind::Arith(_, left, right) => {
            rename_expr(left, rename);
            rename_expr(right, rename);
        }
    }
}

fn rename_event(event: &mut EventAtom, rename: &mut Rename<'_>) {
    use crate::ast::EventKind::{Acquire, Read, Release, Write};
    let is_lock = matches!(event.kind, Acquire | Release);
    if let Term::Name(name) = &mut event.target
        && (is_lock || matches!(event.kind, Read | Write))
    {
        rename(&mut name.name, is_lock);
    }
}

fn rename_regex(regex: &mut Regex, rename: &mut Rename<'_>) {
    match &mut regex.kind {
        RegexKind::Empty | RegexKind::Any => {}
        RegexKind::Step(formula) => rename_formula(formula, rename),
        RegexKind::Event(event) => rename_event(event, rename),
        RegexKind::Concat(parts) | RegexKind::Union(parts) | RegexKind::Intersection(parts) => {
            parts.iter_mut().for_each(|part| rename_regex(part, rename));
        }
        RegexKind::Complement(inner)
        | RegexKind::Star(inner)
        | RegexKind::Plus(inner)
        | RegexKind::Optional(inner) => rename_regex(inner, rename),
    }
}

fn rename_pattern(pattern: &mut Pattern, rename: &mut Rename<'_>) {
    match &mut pattern.kind {
        PatternKind::Empty => {}
        PatternKind::Position(events) => {
            events.iter_mut().for_each(|event| rename_event(event, rename));
        }
        PatternKind::Then(parts) | PatternKind::Union(parts) | PatternKind::Intersection(parts) => {
            parts.iter_mut().for_each(|part| rename_pattern(part, rename));
        }
        PatternKind::Star(inner) => rename_pattern(inner, rename),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::render;
    use crate::resolve;
    use crate::syntax::{parse, print_formula};

    fn trace() -> Names {
        let mut names = Names::default();
        for var in [
            "account(bank.c:9(open))#1.balance",
            "account(bank.c:9(open))#1.limit",
            "other",
            "account(bank.c:9(open))#2.balance",
            "account(bank.c:30(more))#1[4].balance",
            "account(bank.c:30(more))#1[4].limit",
            "heap(bank.c:50(raw))#1.balance",
            "bank.Sole.count",
        ] {
            names.vars.intern(var).unwrap();
        }
        names.locks.intern("account(bank.c:9(open))#2.lock").unwrap();
        names
    }

    fn expanded(text: &str) -> (Vec<String>, String) {
        let parsed = parse(text);
        let shown = render(&parsed.diagnostics, "spec", text, false);
        assert!(!parsed.has_errors(), "{shown}");
        let names = trace();
        let resolution = resolve(&parsed.spec, &names);
        let shown = render(&resolution.diagnostics, "spec", text, false);
        let expanded = expand(&parsed.spec, &resolution.resolved, &names, 100);
        assert_eq!(expanded.origins.len(), expanded.spec.properties.len());
        let all = expanded.spec.properties.iter().map(|p| match &p.body {
            Body::Formula(f) => format!("{}: {}", p.name.name, print_formula(f)),
            _ => p.name.name.clone(),
        });
        (all.collect(), shown)
    }

    #[test]
    fn a_property_is_one_for_each_object() {
        let (all, shown) = expanded("property p(a: account): a.balance >= 0");
        let begun = |object: &str| {
            let field = format!("`{object}.balance`");
            format!("p({object}): {field} == {field} -> {field} >= 0")
        };
        assert_eq!(
            all,
            [
                begun("account(bank.c:9(open))#1"),
                begun("account(bank.c:9(open))#2"),
                begun("account(bank.c:30(more))#1[4]"),
            ]
        );
        assert_eq!(shown, "");
        let (all, _) = expanded("property p(s: Sole): s.count >= other");
        let sole = "bank.Sole.count == bank.Sole.count -> bank.Sole.count >= other";
        assert_eq!(all, [format!("p(bank.Sole): {sole}")]);
    }

    #[test]
    fn different_parameters_are_different_objects() {
        let (all, shown) = expanded("property p(a: account, b: account): a.limit <= b.limit");
        assert_eq!(all.len(), 2, "{all:?}");
        // What says the same of two objects in both orders is one property of both.
        let (same, _) = expanded("property p(a: account, b: account): a.limit == b.limit");
        assert_eq!(same.len(), 1, "{same:?}");
        assert!(all[0].starts_with("p(account(bank.c:9(open))#1, account(bank.c:30(more))#1[4])"));
        assert_eq!(shown, "");
        let (all, shown) = expanded("property p(a: account): a.balance <= a.limit");
        assert_eq!(all.len(), 2);
        assert!(
            shown.contains("1 of 3 objects of the type `account` have no value of `limit`"),
            "{shown}"
        );
    }

    /// A property that begins later says of a run what the original one says of the rest of it.
    #[test]
    fn what_begins_later_judges_the_rest_of_the_run() {
        use crate::letter::Letter;
        use crate::monitor::StateId;
        use crate::testing::{
            FUTURE_BINARY, FUTURE_UNARY, PAST_BINARY, PAST_UNARY, atom, compile, random_formula,
            random_word,
        };
        const KNOWN: usize = 2;
        let mut rng = fastrand::Rng::with_seed(5);
        for operators in [(PAST_UNARY, PAST_BINARY), (FUTURE_UNARY, FUTURE_BINARY)] {
            let mut violated = 0;
            for _ in 0..5_000 {
                let size = rng.usize(1..6);
                let f = random_formula(&mut rng, KNOWN, size, operators);
                let mut later = Body::Formula(f.clone());
                begin_at(&mut later, atom(KNOWN), Span::default());
                let mut whole = compile(&later, KNOWN + 1).monitor;
                let mut rest = compile(&Body::Formula(f.clone()), KNOWN + 1).monitor;
                let word = random_word(&mut rng, KNOWN, 8);
                let begin = rng.usize(..=word.len());
                let (mut a, mut b) = (whole.start(), rest.start());
                for (n, &letter) in word.iter().enumerate() {
                    let letter = if n < begin { letter } else { letter | 1 << KNOWN };
                    a = whole.step(a, Letter(letter)).unwrap();
                    if n >= begin {
                        b = rest.step(b, Letter(letter)).unwrap();
                    }
                    let is_bad = n >= begin && b == StateId::BAD;
                    assert_eq!(a == StateId::BAD, is_bad, "{f:?} on {word:?} from {begin} at {n}");
                }
                violated += u32::from(a == StateId::BAD);
            }
            assert!((500..4_500).contains(&violated), "{violated}");
        }
    }

    #[test]
    fn events_of_objects() {
        let (all, shown) = expanded("pattern p(a: account): acquire(a.lock) .. write(a.balance)");
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(shown, "");
    }

    #[test]
    fn a_lock_that_no_object_has_is_a_mistake() {
        let (_, shown) = expanded("pattern p(a: account): acquire(a.lok) .. write(a.balance)");
        assert!(shown.contains("no object of the type `account` has a lock `lok`"), "{shown}");
    }

    #[test]
    fn too_few_objects_are_a_mistake() {
        let (all, shown) = expanded("property p(a: Sole, b: Sole): a.count == b.count");
        assert!(all.is_empty() && shown.contains("the trace has only 1"), "{shown}");
    }

    #[test]
    fn too_many_choices_are_counted() {
        let parsed = parse("property p(a: account, b: account): a.balance <= b.balance");
        let names = trace();
        let resolved = resolve(&parsed.spec, &names).resolved;
        let all = expand(&parsed.spec, &resolved, &names, 100);
        assert_eq!((all.spec.properties.len(), all.left_out), (6, 0));
        let some = expand(&parsed.spec, &resolved, &names, 2);
        assert_eq!(some.spec.properties.len(), 2);
        assert!(some.left_out >= 4);
    }

    #[test]
    fn mistakes_name_what_is_near() {
        let mistake = |text| {
            let (all, shown) = expanded(text);
            assert!(all.is_empty(), "{all:?}");
            shown
        };
        let shown = mistake("property p(a: acount): a.balance >= 0");
        assert!(shown.contains("no object of the type `acount`"), "{shown}");
        assert!(shown.contains("did you mean `account`?"), "{shown}");
        let shown = mistake("property p(a: account): a.balence >= 0");
        assert!(shown.contains("did you mean `balance`?"), "{shown}");
        let shown = mistake("property p(a: ship): a.x >= 0");
        assert!(shown.contains("there are objects of the types `account`"), "{shown}");
    }

    #[test]
    fn objects_are_not_values() {
        for (text, code) in [
            ("property p(a: account): a >= 0", "object-without-field"),
            ("pattern p(a: account): event(x, a)", "object-without-field"),
            ("pattern p(a: account): event(x, a.balance)", "field-in-argument"),
            ("property p(a: account): `a.balance` > 0 && a.x > 0", "ambiguous-field"),
            ("property p(a: account, a): a.x > 0", "duplicate"),
            ("property p(a: ): a.x > 0", "syntax"),
        ] {
            let parsed = parse(text);
            assert!(parsed.has_errors(), "{text}");
            let codes: Vec<_> = parsed.diagnostics.iter().map(|d| d.code).collect();
            assert!(code == "syntax" || codes.contains(&code), "{text}: {codes:?}");
        }
        let unused = parse("property p(a: account): x > 0");
        assert_eq!(unused.diagnostics[0].code, "unused-parameter");
    }

    #[test]
    fn explanations_name_the_objects() {
        let parsed = parse("property p(a: account): a.balance > 0");
        let property = &parsed.spec.properties[0];
        let mut compiled = crate::property::Compiled::new(property).unwrap();
        let told = crate::explain::explain(property, &mut compiled, &[]).to_string();
        assert!(told.contains("a: checked for each object of the type account"), "{told}");
    }

    #[test]
    fn the_text_stays() {
        let text = "property p(c, a: bank::Account, i): a.balance > 0 -> once event(x, c, i)\n";
        let parsed = parse(text);
        assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        assert_eq!(crate::format(text).unwrap(), text);
    }
}
