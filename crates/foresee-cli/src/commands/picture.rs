//! `foresee check --lattice`: the lattice of each property as a picture.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use foresee_predict::lattice::{Picture, Prediction};
use foresee_predict::{Unconfirmed, confirm};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_trace::{FileOrder, Trace};

use crate::output;

/// How many bindings of one property are drawn.
const DRAWN_BINDINGS: usize = 20;

/// Where the pictures go.
pub(crate) struct Pictures<'a> {
    file: &'a Path,
    /// Names that were given out, so that no picture overwrites another.
    used: Vec<PathBuf>,
}

/// A violating run to draw, or none.
struct Subject {
    binding: Vec<(String, Object)>,
    order: Option<Vec<u64>>,
}

impl<'a> Pictures<'a> {
    /// Pictures in `file`, or in files named after it.
    pub(crate) fn new(file: &'a Path) -> anyhow::Result<Self> {
        let named = file != Path::new("-") && file.file_name().is_some();
        ensure!(named, "--lattice needs the name of a file, not `{}`", file.display());
        Ok(Pictures { file, used: Vec::new() })
    }

    /// Draws the lattice of each property of a specification, the only one that was given or one
    /// of several. What cannot be drawn is said, and no file is left of it.
    pub(crate) fn draw(
        &mut self,
        trace: &Trace,
        spec: &Spec,
        resolved: &Resolved,
        predictions: &[Prediction],
        is_only: bool,
    ) -> anyhow::Result<()> {
        if trace.remarks.order == FileOrder::Notes {
            output::note("no lattice is drawn: the order of this trace is only that of its notes");
            return Ok(());
        }
        let is_only = is_only && spec.properties.len() == 1;
        for number in 0..spec.properties.len() {
            let subjects = subjects(trace, spec, resolved, predictions, number)?;
            let name = &spec.properties[number].name.name;
            if subjects.is_empty() {
                output::note(&format!(
                    "no lattice is drawn of `{name}`: no binding of its parameters is violated"
                ));
            }
            for (i, subject) in subjects.iter().enumerate() {
                let mut parts: Vec<String> = Vec::new();
                if !is_only || subjects.len() > 1 {
                    parts.push(name.clone());
                }
                if subjects.len() > 1 {
                    parts.push((i + 1).to_string());
                }
                let order = subject.order.as_deref();
                let picture = Picture::new(trace, spec, resolved, number, &subject.binding, order);
                match picture {
                    Ok(picture) => self.write(&picture, parts)?,
                    Err(why) => {
                        output::note(&format!("no lattice is drawn of `{name}`: {why}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, picture: &Picture, mut parts: Vec<String>) -> anyhow::Result<()> {
        let mut file = inserted(self.file, &parts);
        // Properties of two specifications may have one name.
        for n in 2.. {
            if !self.used.contains(&file) {
                break;
            }
            let again = n > 2;
            parts.truncate(parts.len() - usize::from(again));
            parts.push(n.to_string());
            file = inserted(self.file, &parts);
        }
        output::write_file(&file, &foresee_report::lattice_svg(picture))?;
        let binding: Vec<String> =
            picture.binding.iter().map(|(name, object)| format!("{name} = {object}")).collect();
        let of = match binding.is_empty() {
            true => String::new(),
            false => format!(" for {}", binding.join(", ")),
        };
        let name = &picture.property;
        output::note(&format!("the lattice of `{name}`{of} is drawn in {}", file.display()));
        self.used.push(file);
        Ok(())
    }
}

/// What to draw of a property: the property itself, or each binding of its parameters that is
/// violated, with the violating run that the report shows.
fn subjects(
    trace: &Trace,
    spec: &Spec,
    resolved: &Resolved,
    predictions: &[Prediction],
    number: usize,
) -> Result<Vec<Subject>, Unconfirmed> {
    let property = &spec.properties[number];
    let compiled = Compiled::new(property).map_err(Unconfirmed::Property)?;
    let single = Spec { properties: vec![property.clone()], ..spec.clone() };
    let mut monitor = ObservedMonitor::new(&single, vec![compiled], resolved, &trace.names);
    for (i, event) in trace.events.iter().enumerate() {
        monitor.event(i as u64, event, &trace.pool);
    }
    monitor.finish();
    let mut subjects = Vec::new();
    for violation in monitor.take_violations().into_iter().take(DRAWN_BINDINGS) {
        let order = (0..violation.event.map_or(0, |event| event + 1)).collect();
        subjects.push(Subject { binding: violation.binding, order: Some(order) });
    }
    for prediction in predictions.iter().filter(|p| p.property == number) {
        if subjects.len() < DRAWN_BINDINGS {
            let finding = confirm(prediction, spec, resolved, trace)?;
            let order = finding.witness.map(|witness| witness.order);
            subjects.push(Subject { binding: prediction.binding.clone(), order });
        }
    }
    if subjects.is_empty() && property.params.is_empty() {
        subjects.push(Subject { binding: Vec::new(), order: None });
    }
    Ok(subjects)
}

/// `lattice-level.svg` for `lattice.svg` and `level`.
fn inserted(file: &Path, parts: &[String]) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    for part in parts {
        name.push("-");
        name.push(part);
    }
    if let Some(ending) = file.extension() {
        name.push(".");
        name.push(ending);
    }
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_the_ending() {
        let with = |file: &str, parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            inserted(Path::new(file), &parts).display().to_string()
        };
        assert_eq!(with("out/lattice.svg", &[]), "out/lattice.svg");
        assert_eq!(with("out/lattice.svg", &["level"]), "out/lattice-level.svg");
        assert_eq!(with("lattice", &["level", "2"]), "lattice-level-2");
    }
}
