//! The items of a specification: `init`, `let`, `atomic`, and the four kinds of properties.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foresee_support::nearest::nearest;

use super::atomics::ATOMIC;
use super::formula::{INFIXES, is_reserved, nothing};
use super::lexer::Kind;
use super::names::EVENTS;
use super::parser::{Built, Failed, ITEMS, LetInfo, Parse, Parser};
use super::{Item, ItemKind};
use crate::ast::{Body, Formula, Ident, Init, Let, ObjectParam, Property, Span, Spec};
use crate::diagnostic::{Diagnostic, Severity};
use crate::mentions::{fields, mentions};

/// The maximum number of parameters of a property.
const MAX_PARAMS: usize = 32;

/// A let that was used before its definition.
struct Forward {
    used: Ident,
    /// The let in which it was used, if any.
    by: Option<String>,
}

impl Parser<'_> {
    /// The whole specification, and its items in the order of the source.
    pub(super) fn items(&mut self) -> (Spec, Vec<Item>) {
        let mut spec = Spec::default();
        let mut items = Vec::new();
        let mut forward = Vec::new();
        while self.kind() != Kind::End {
            let start = self.token().span;
            match self.item(&mut spec, &mut forward) {
                Ok(kind) => items.push(Item { kind, span: self.since(start) }),
                Err(Failed) => {
                    // In any case, the item's first word has been handled.
                    if self.token().span.start == start.start {
                        self.bump();
                    }
                    self.skip_to_item();
                }
            }
            self.params.clear();
            self.objects.clear();
            self.uses.clear();
            self.plain_names.clear();
        }
        self.check_forward(&forward);
        self.check_unique("property", spec.properties.iter().map(|p| &p.name));
        self.check_unique("let", spec.lets.iter().map(|l| &l.name));
        self.check_unique("atomic method", spec.atomics.iter());
        self.check_unique("initial value", spec.inits.iter().map(|i| &i.var));
        if !self.has_errors() {
            self.check_inits(&spec);
        }
        (spec, items)
    }

    fn item(&mut self, spec: &mut Spec, forward: &mut Vec<Forward>) -> Parse<ItemKind> {
        let mut keyword = self.word();
        let start = self.token().span;
        if let Some(meant) = self.misspelt_item() {
            let message = format!("expected an item, found `{keyword}`");
            let label = format!("did you mean `{meant}`?");
            self.report(Diagnostic::error("unknown-item", message, start, label));
            keyword = meant;
        }
        match keyword {
            "init" => {
                self.bump();
                let first = spec.inits.len();
                self.inits(&mut spec.inits)?;
                Ok(ItemKind::Inits(first..spec.inits.len()))
            }
            "let" => {
                self.bump();
                let (name, formula) = self.named_formula()?;
                self.note_forward(forward, Some(&name.name));
                spec.lets.push(Let { name, formula });
                Ok(ItemKind::Let(spec.lets.len() - 1))
            }
            ATOMIC => {
                self.bump();
                let first = spec.atomics.len();
                self.atomics(&mut spec.atomics)?;
                Ok(ItemKind::Atomics(first..spec.atomics.len()))
            }
            "property" | "violation" | "pattern" | "automaton" => {
                self.bump();
                let property = self.property(keyword, start);
                self.note_forward(forward, None);
                spec.properties.push(property?);
                Ok(ItemKind::Property(spec.properties.len() - 1))
            }
            _ => self.not_an_item(),
        }
    }

    /// Reports something other than an item.
    fn not_an_item<T>(&mut self) -> Parse<T> {
        let token = self.token();
        let first = self.previous_end() == 0;
        let what = if first {
            format!("one of {}", item_words())
        } else {
            "an operator or the next item".to_owned()
        };
        let words = ITEMS.iter().chain(INFIXES.iter().map(|(word, _)| word)).copied();
        let near = nearest(self.word(), words);
        let help = match token.kind {
            _ if self.habit().is_some() => self.habit(),
            Kind::Semicolon => Some("items do not end with `;`".to_owned()),
            Kind::RoundClose | Kind::SquareClose | Kind::CurlyClose => {
                Some("this bracket closes nothing".to_owned())
            }
            Kind::DotDot => {
                Some("`..` belongs to patterns: `pattern p: event(a) .. event(b)`".to_owned())
            }
            Kind::Dot => Some("`.` belongs to regular expressions (`violation`)".to_owned()),
            _ if near.is_some() => near.map(|near| format!("did you mean `{near}`?")),
            Kind::Word if first => Some("a rule is written `property NAME: FORMULA`".to_owned()),
            _ if first => None,
            _ => Some(format!("items begin with {}", item_words())),
        };
        self.expected_help(&what, help.as_deref())
    }

    /// What to write for a habit from other languages, which shows in the next token or the one before it.
    fn habit(&self) -> Option<String> {
        let before = self.previous_word();
        if EVENTS.iter().any(|(word, _)| *word == before) && self.kind() == Kind::Word {
            return Some(format!("write `{before}({})`", self.word()));
        }
        let help = match (before, self.word(), self.kind()) {
            ("never", ..) => "write `!`: a formula must hold at every step",
            ("if", ..) | (_, "then" | "else", _) => "write `F -> G` for \"if F, then G\"",
            ("forall" | "exists" | "all" | "each", ..) => {
                "a parameter stands for every value or object: `property NAME(f): event(close, f) -> once event(open, f)`"
            }
            ("AG" | "AF" | "AX" | "EG" | "EF" | "EX", ..) => {
                "a formula is about every run, so there are no quantifiers of paths: write `always`, `eventually` or `next`"
            }
            (_, "in", _) => "write `x == 1 || x == 2`",
            (_, _, Kind::Question) => "write `(F -> G) && (!F -> H)`",
            (_, _, Kind::At) => "`@thread` belongs to event atoms: `write(x)@T1`",
            (_, _, Kind::Comma) => "join formulas with `&&`",
            (_, _, Kind::Minus) if self.ahead(1).kind == Kind::Minus => "comments begin with `#`",
            _ => return None,
        };
        Some(help.to_owned())
    }

    fn inits(&mut self, inits: &mut Vec<Init>) -> Parse<()> {
        loop {
            let var = match self.kind() {
                Kind::Word => self.program_name(false),
                _ => self.ident("the name of a variable")?,
            };
            if self.kind() == Kind::EqualEqual {
                let at = self.token().span;
                let message = "`==` compares; initial values are given with `=`";
                self.report(Diagnostic::error("double-equals", message, at, "write `=`"));
                self.bump();
            } else {
                self.expect(Kind::Equal, "`=` and an initial value")?;
            }
            let Some((value, _)) = self.literal() else {
                return self.expected("a number, a text, `true` or `false`");
            };
            inits.push(Init { var, value });
            if !self.eat(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// `NAME = F` of a let. The name is defined even if F is wrong, so that its uses are not
    /// reported as well.
    fn named_formula(&mut self) -> Parse<(Ident, Formula)> {
        let name = self.ident("a name for the formula")?;
        if is_reserved(&name.name) {
            let message = format!("`{}` is a word of the language", name.name);
            let label = "cannot be a name for a formula";
            self.report(Diagnostic::error("reserved-word", message, name.span, label));
        }
        let formula = self.let_body().unwrap_or_else(|Failed| {
            self.skip_to_item();
            nothing(name.span)
        });
        let Built { node, facts } = formula;
        let info = LetInfo {
            span: name.span,
            formula: Arc::new(node.clone()),
            facts,
            uses: self.uses.iter().map(|u| u.name.clone()).collect(),
            plain_names: self.plain_names.clone(),
        };
        self.lets.entry(name.name.clone()).or_insert(info);
        Ok((name, node))
    }

    fn let_body(&mut self) -> Parse<Built<Formula>> {
        self.expect(Kind::Equal, "`=` after the name of a let")?;
        self.formula(0)
    }

    /// `NAME(params): body`; the keyword has been consumed.
    fn property(&mut self, keyword: &str, start: Span) -> Parse<Property> {
        let name = self.ident("a name for the property")?;
        let mut params = Vec::new();
        if self.kind() == Kind::RoundOpen {
            params = self.enclosed((Kind::RoundClose, "`,` or `)`"), Vec::new, |p| {
                let mut params = Vec::new();
                loop {
                    params.push(p.ident("the name of a parameter")?);
                    if p.eat(Kind::Colon) {
                        let name = params.pop().ok_or(Failed)?;
                        let of = match p.kind() {
                            Kind::Word if p.word() != "_" => p.program_name(false),
                            _ => p.ident("the name of a type")?,
                        };
                        p.objects.push(ObjectParam { name, of });
                    }
                    if !p.eat(Kind::Comma) {
                        return Ok(params);
                    }
                }
            })?;
            let objects = self.objects.clone();
            let all = || params.iter().chain(objects.iter().map(|object| &object.name));
            self.check_unique("parameter", all());
            if let Some(extra) = all().nth(MAX_PARAMS) {
                let message = format!("more than {MAX_PARAMS} parameters");
                let at = extra.span;
                self.report(Diagnostic::error("too-many-parameters", message, at, "one too many"));
            }
            self.params = all().take(MAX_PARAMS).map(|p| (p.clone(), false)).collect();
            params.truncate(MAX_PARAMS);
            self.objects.truncate(MAX_PARAMS - params.len());
        }
        if keyword != "automaton" && self.kind() != Kind::End && !self.at_item() {
            if self.kind() == Kind::Minus {
                let help = "names consist of letters, digits and `_`";
                return self.expected_help("`:` and the body of the property", Some(help));
            }
            self.expect(Kind::Colon, "`:` and the body of the property")?;
        }
        if self.kind() == Kind::End || self.at_item() {
            let message = format!("{keyword} `{}` has no body", name.name);
            let example = match keyword {
                "property" => "x > 0",
                "violation" => ".* {x > 3}",
                "pattern" => "event(a) .. event(b)",
                _ => "{ initial a; a: event(b) -> bad; }",
            };
            let error = Diagnostic::error("no-body", message, name.span, "empty");
            let colon = if keyword == "automaton" { "" } else { ":" };
            return self.fail(
                error.help(format!("for example `{keyword} {}{colon} {example}`", name.name)),
            );
        }
        let body = match keyword {
            "property" => Body::Formula(self.formula(0)?.node),
            "violation" => Body::Violation(self.regex()?.node),
            "pattern" => Body::Pattern(self.pattern()?.node),
            _ if self.kind() == Kind::CurlyOpen => Body::Automaton(self.automaton(&name)?),
            _ => return self.expected("`{` and the rows of the automaton"),
        };
        self.check_params();
        let objects = std::mem::take(&mut self.objects);
        let property = Property { name, params, objects, body, span: self.since(start) };
        for field in fields(&property) {
            if field.is_usable() {
                continue;
            }
            let message = format!("the field `{}` cannot stand here", field.name);
            let label = "neither a variable nor a lock";
            let help = "fields of an object stand in conditions and in `read`, `write`, `acquire` and `release`";
            let error = Diagnostic::error("field-in-argument", message, field.span, label);
            self.report(error.help(help));
        }
        Ok(property)
    }

    /// Reports unused parameters, and lets that seem to use them.
    fn check_params(&mut self) {
        if self.params.is_empty() {
            return;
        }
        let mut reached = HashSet::new();
        let mut todo: Vec<(&str, Span)> =
            self.uses.iter().map(|u| (u.name.as_str(), u.span)).collect();
        let mut reports = Vec::new();
        while let Some((name, used_at)) = todo.pop() {
            let Some(info) = self.lets.get(name).filter(|_| reached.insert(name)) else { continue };
            let work = 1 + info.uses.len() + info.plain_names.len();
            self.patience = self.patience.saturating_sub(work as u32);
            if self.patience == 0 {
                break;
            }
            todo.extend(info.uses.iter().map(|u| (u.as_str(), used_at)));
            let clash = |n: &&Ident| self.params.iter().any(|(p, _)| p.name == n.name);
            if let Some(inner) = info.plain_names.iter().find(clash) {
                let message = format!("`{}` in a let is not the parameter", inner.name);
                let label = format!("this let refers to something named `{}`", inner.name);
                let help = "lets have no parameters: write the formula out in the property";
                reports.push(
                    Diagnostic::error("parameter-in-let", message, used_at, label)
                        .and(inner.span, "here")
                        .help(help),
                );
            }
        }
        let shown = self.reports.wants(Severity::Warning);
        for (param, _) in self.params.iter().filter(|(_, used)| !used) {
            let message = format!("the parameter `{}` is never used", param.name);
            let warning =
                Diagnostic::warning("unused-parameter", message, param.span, "never used");
            let names = self.plain_names.iter().map(|n| n.name.as_str());
            let near = if shown { nearest(&param.name, names) } else { None };
            let place = self.plain_names.iter().find(|n| Some(n.name.as_str()) == near);
            reports.push(match place {
                Some(place) => warning.and(place.span, "did you mean the parameter?"),
                None => warning,
            });
        }
        for diagnostic in reports {
            self.report(diagnostic);
        }
    }

    fn note_forward(&mut self, forward: &mut Vec<Forward>, by: Option<&str>) {
        for used in &self.uses {
            // A let that uses itself is known now, but was not when it was used.
            if !self.lets.contains_key(&used.name) || by == Some(&used.name) {
                forward.push(Forward { used: used.clone(), by: by.map(str::to_owned) });
            }
        }
    }

    /// Reports uses of lets before their definition, now that all are known: some are cycles.
    fn check_forward(&mut self, forward: &[Forward]) {
        for Forward { used, by } in forward {
            let name = &used.name;
            let defined = self.lets.get(name).map(|info| info.span);
            let shown = self.reports.wants(Severity::Error);
            let cycle = shown && by.as_ref().is_some_and(|by| self.leads_to(name, by));
            let (code, message, label) = if cycle {
                let message = format!("the let `{name}` is defined by itself");
                ("let-cycle", message, "this leads back to where it came from")
            } else {
                let message = format!("`{name}` is used before its definition");
                ("use-before-let", message, "not known yet")
            };
            let help = if cycle {
                format!("a program variable of that name is written in backquotes: `` `{name}` ``")
            } else {
                format!("move `let {name}` up")
            };
            let mut error = Diagnostic::error(code, message, used.span, label).help(help);
            if let Some(at) = defined {
                error = error.and(at, "defined here");
            }
            self.report(error);
        }
    }

    /// Whether the let `from` is `to` or uses it, directly or not.
    fn leads_to(&self, from: &str, to: &str) -> bool {
        let mut seen = HashSet::new();
        let mut todo = vec![from];
        while let Some(name) = todo.pop() {
            if name == to {
                return true;
            }
            if let Some(info) = self.lets.get(name).filter(|_| seen.insert(name)) {
                todo.extend(info.uses.iter().map(String::as_str));
            }
        }
        false
    }

    /// Reports initial values of variables that no property mentions.
    fn check_inits(&mut self, spec: &Spec) {
        let variables: HashSet<&str> =
            mentions(spec).iter().filter(|m| m.is_variable()).map(|m| m.name).collect();
        for init in spec.inits.iter().filter(|i| !variables.contains(i.var.name.as_str())) {
            let name = &init.var.name;
            let message = format!("no property mentions the variable `{name}`");
            let shown = self.reports.wants(Severity::Warning);
            let near = if shown { nearest(name, variables.iter().copied()) } else { None };
            let label = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "this initial value has no effect".to_owned(),
            };
            self.report(Diagnostic::warning("unused-init", message, init.var.span, label));
        }
    }

    /// Reports names that are defined twice.
    pub(super) fn check_unique<'n>(&mut self, what: &str, names: impl Iterator<Item = &'n Ident>) {
        let mut first: HashMap<&str, Span> = HashMap::new();
        for ident in names {
            if let Some(&before) = first.get(ident.name.as_str()) {
                let message = format!("the {what} `{}` is defined twice", ident.name);
                self.report(
                    Diagnostic::error("duplicate", message, ident.span, "defined again")
                        .and(before, "first defined here"),
                );
            } else {
                first.insert(&ident.name, ident.span);
            }
        }
    }
}

/// The keywords of items, for a message.
fn item_words() -> String {
    let quoted: Vec<String> = ITEMS.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
