//! `foresee spec`: checks and explains specifications, without a trace.

use std::path::Path;

use anyhow::{bail, ensure};
use foresee_spec::ast::Spec;
use foresee_spec::draw;
use foresee_spec::explain::{explain, explain_atomics};
use foresee_spec::property::Compiled;

use crate::args::{Drawing, SpecArgs, SpecCommand};
use crate::output::Sink;
use crate::specs::Source;
use crate::{output, specs};

pub(crate) fn run(args: &SpecArgs) -> anyhow::Result<u8> {
    match &args.command {
        SpecCommand::Check { files, fmt, output } => {
            let mut to = Sink::new(output)?;
            for file in files {
                check(file, *fmt, &mut to)?;
            }
            to.finish()?;
        }
        SpecCommand::Explain { file, property, automaton, output } => {
            let mut to = Sink::new(output)?;
            let source = specs::read(file)?;
            let (spec, compiled) = specs::compile(&source)?;
            match automaton {
                None => explain_all(&spec, compiled, property.as_deref(), &mut to)?,
                Some(form) => to.print(&draw_one(compiled, property.as_deref(), *form)?)?,
            }
            to.finish()?;
        }
    }
    Ok(0)
}

fn check(file: &Path, fmt: bool, to: &mut Sink) -> anyhow::Result<()> {
    let source = specs::read(file)?;
    if fmt {
        let formatted =
            foresee_spec::format(&source.text).map_err(|diagnostics| source.error(&diagnostics))?;
        return to.print(&formatted);
    }
    let (spec, compiled) = specs::compile(&source)?;
    let mut text = String::new();
    for method in &spec.atomics {
        let method = foresee_spec::print_method(&method.name);
        text += &format!("{}: {method} (atomic region)\n", source.name);
    }
    for property in &compiled {
        text += &format!("{}: {} ({})\n", source.name, property.name, property.logic);
    }
    if compiled.is_empty() && spec.atomics.is_empty() {
        output::note(&format!("{}: no properties", source.name));
    }
    to.print(&output::plain(&text))
}

fn explain_all(
    spec: &Spec,
    compiled: Vec<Compiled>,
    only: Option<&str>,
    to: &mut Sink,
) -> anyhow::Result<()> {
    let mut shown = 0;
    if only.is_none() && !spec.atomics.is_empty() {
        to.print(&output::plain(&explain_atomics(&spec.atomics)))?;
        shown += 1;
    }
    for (property, mut compiled) in spec.properties.iter().zip(compiled) {
        if only.is_none_or(|name| name == compiled.name) {
            if shown > 0 {
                to.print("\n")?;
            }
            let text = explain(property, &mut compiled, &spec.inits).to_string();
            to.print(&output::plain(&text))?;
            shown += 1;
        }
    }
    ensure!(shown > 0 || only.is_none(), "there is no property `{}`", only.unwrap_or_default());
    Ok(())
}

fn draw_one(compiled: Vec<Compiled>, only: Option<&str>, form: Drawing) -> anyhow::Result<String> {
    let mut wanted: Vec<Compiled> =
        compiled.into_iter().filter(|c| only.is_none_or(|name| name == c.name)).collect();
    let mut compiled = match wanted.len() {
        1 => wanted.remove(0),
        0 => match only {
            Some(name) => bail!("there is no property `{name}`"),
            None => bail!("the specification has no properties"),
        },
        n => bail!("there are {n} properties: choose the one to draw with --property"),
    };
    let drawing = draw::Drawing::new(&mut compiled)?;
    Ok(match form {
        Drawing::Dot => drawing.to_dot(),
        Drawing::Mermaid => drawing.to_mermaid(),
        Drawing::Svg => drawing.to_svg(),
    })
}

impl Source {
    /// The diagnostics as one error.
    fn error(&self, diagnostics: &[foresee_spec::Diagnostic]) -> anyhow::Error {
        specs::BadSpec::new(self, diagnostics).into()
    }
}
