//! An explanation as text.

use std::fmt;

use super::clause::shown;
use super::words::wrap;
use super::{Example, Explanation, Facts, Found, OrderFacts};
use crate::property::Named;

/// The maximum number of steps of an example that are shown; the middle of longer ones is left out.
const MAX_STEPS: usize = 24;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (logic, about) = self.logic;
        writeln!(f, "{} ({logic}: {about})", shown(&self.name))?;
        for line in self.words.lines() {
            writeln!(f, "  {line}")?;
        }
        self.names(f)?;
        match &self.monitor {
            Ok(facts) => facts.fmt(f),
            Err(error) => {
                writeln!(
                    f,
                    "  monitor     {error}: too large to be examined as a whole, so there are no examples"
                )
            }
        }
    }
}

impl Explanation {
    fn names(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| names.iter().map(|n| shown(n)).collect::<Vec<_>>().join(", ");
        let mut label = "reads";
        let kinds = [
            ("variables", &self.relevance.vars),
            ("locks", &self.relevance.locks),
            ("threads", &self.relevance.threads),
            ("methods and events", &self.relevance.syms),
        ];
        for (kind, Named { names, any }) in kinds {
            let names = match (&names[..], *any) {
                ([], false) => continue,
                ([], true) => "any".to_string(),
                (names, false) => list(names),
                (names, true) => format!("{}, and any other", list(names)),
            };
            writeln!(f, "  {label:<11} {kind}: {names}")?;
            label = "";
        }
        if !self.in_threads.is_empty() {
            writeln!(f, "  {label:<11} events of threads: {}", list(&self.in_threads))?;
        }
        if !self.params.is_empty() {
            let each = "checked for each combination of values that the trace binds";
            writeln!(f, "  parameters  {}: {each}", list(&self.params))?;
        }
        for (name, of) in &self.objects {
            let (name, of) = (shown(name), shown(of));
            writeln!(f, "  object      {name}: checked for each object of the type {of}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { states, minimal, letters, .. } = self;
        writeln!(
            f,
            "  monitor     states: {states}, in its smallest form: {minimal}; kinds of steps: {letters}"
        )?;
        if let Some(order) = self.order.as_ref().filter(|_| self.can_be_violated) {
            let OrderFacts { matters, is_free } = order;
            let said = |said: &str, pairs: &[(String, String)]| match pairs.len() {
                0 => None,
                _ => Some(format!("{said} between {}", OrderFacts::list(pairs))),
            };
            let both = [said("matters", matters), said("does not matter", is_free)];
            for (i, text) in both.into_iter().flatten().enumerate() {
                let mut lines = String::new();
                wrap(&text, 14, "", &mut lines);
                let label = if i == 0 { "  order       " } else { "              " };
                write!(f, "{label}{}", &lines[14..])?;
            }
        }
        match &self.violation {
            Found::Example(example) => {
                // If there is only one state, it is the bad one.
                let runs = if *minimal == 1 { "every run" } else { "some runs" };
                writeln!(f, "  violated    by {runs}; a shortest one:")?;
                example.write(f, "violated here")?;
            }
            Found::Nothing if self.can_be_violated => {
                writeln!(
                    f,
                    "  violated    by no run that starts as given and writes one variable a step"
                )?;
            }
            Found::Nothing => writeln!(f, "  violated    never, by no prefix of any run")?,
            Found::GaveUp => writeln!(f, "  violated    not known: the search became too large")?,
        }
        match &self.settled {
            _ if self.violation == Found::Nothing => {}
            Found::Example(example) => {
                writeln!(
                    f,
                    "  settled     by some runs, which nothing that follows can make violate it; a \
                     shortest one:"
                )?;
                example.write(f, "settled here")?;
            }
            Found::Nothing => writeln!(
                f,
                "  settled     never: after any run that is allowed, a violation may still come"
            )?,
            Found::GaveUp => writeln!(f, "  settled     not known: the search became too large")?,
        }
        match &self.allowed {
            Found::Example(example) if self.allowed != self.settled => {
                writeln!(f, "  allowed     for example:")?;
                example.write(f, "not violated")?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Example {
    fn write(&self, f: &mut fmt::Formatter<'_>, at_end: &str) -> fmt::Result {
        let count = self.steps.len();
        let shown = |i: usize| count <= MAX_STEPS || i < MAX_STEPS - 2 || i + 1 == count;
        for (i, step) in self.steps.iter().enumerate() {
            if !shown(i) {
                if shown(i - 1) {
                    writeln!(f, "{:17}… {} more", "", count - MAX_STEPS + 1)?;
                }
                continue;
            }
            let what = if step.is_empty() { "anything" } else { step };
            let initial = if i == 0 && self.begins_initially { "initially: " } else { "" };
            let end = if i + 1 == count { format!(" ({at_end})") } else { String::new() };
            let mut lines = String::new();
            wrap(&format!("{initial}{what}{end}"), 14, &format!("{:>2}. ", i + 1), &mut lines);
            f.write_str(&lines)?;
        }
        Ok(())
    }
}
