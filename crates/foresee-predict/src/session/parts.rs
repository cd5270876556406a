//! Which engine looks at which property.

use std::sync::Arc;

use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::{Expanded, Resolved};
use foresee_trace::{FileOrder, Names, Outcome};

use super::Session;
use super::settings::Settings;
use super::spec::{BadSpec, Specification};
use crate::analysis::{Analysed, Analysis, Conclusion};
use crate::candidates::Candidates;
use crate::correct::Correct;
use crate::info::{MONITORABILITY, OBSERVED, SPEC};
use crate::lattice::Lattice;
use crate::monitorability::Monitorability;
use crate::observed::Observed;
use crate::pattern::{Algorithm, Patterns};
use crate::reorder::Sliced;
use crate::runner::Search;
use crate::settled::Sharing;

/// Properties of a specification for which the same searches are made.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) spec: Spec,
    pub(super) resolved: Resolved,
    /// Whether these are patterns that have a search of their own, instead of the lattice.
    pub(super) is_patterns: bool,
}

impl Part {
    /// The name of a property.
    pub(super) fn name_of(&self, property: usize) -> &str {
        &self.spec.properties[property].name.name
    }

    /// The patterns of a specification, and everything else.
    fn of(spec: &Spec, resolved: &Resolved, settings: &Settings) -> impl Iterator<Item = Part> {
        let part = |is_patterns| Part {
            spec: Spec { properties: Vec::new(), ..spec.clone() },
            resolved: resolved.clone(),
            is_patterns,
        };
        let (mut patterns, mut others) = (part(true), part(false));
        // The observed run alone needs no search; ideals, and pictures, are those of the lattice.
        let is_wanted = settings.limits.window != Some(1)
            && !settings.is_all_by_lattice
            && !settings.draws_lattices;
        for property in &spec.properties {
            let is_own = is_wanted && Compiled::new(property).is_ok_and(|p| Patterns::accepts(&p));
            let part = if is_own { &mut patterns } else { &mut others };
            part.spec.properties.push(property.clone());
        }
        [patterns, others].into_iter().filter(|part| !part.spec.properties.is_empty())
    }
}

/// All searches in a trace. Those of a part share their candidates.
pub(super) struct Work {
    /// How far it searches.
    settings: Settings,
    pub(super) parts: Vec<Part>,
    /// With the number of the part that each belongs to; those that belong to none come first, and
    /// have the number after the last.
    analyses: Vec<(Option<usize>, Box<dyn Analysis>)>,
    /// How many properties the parts have.
    properties: usize,
    /// The number of the next property among all questions of the session.
    next: usize,
    /// What is to be said of properties for which there was no memory.
    pub(super) left_out: Vec<Analysed>,
}

/// What a property takes in all searches before any event is read, in bytes.
const BYTES_PER_PROPERTY: usize = 64 << 10;

/// How many choices of objects are looked at. Each is a property, and every event is shown to all of them.
const MOST_CHOICES: usize = 10_000;

/// How many properties there is memory for.
fn most_properties(settings: &Settings) -> usize {
    (settings.limits.memory / BYTES_PER_PROPERTY).max(1)
}

/// A specification with a property for each choice of objects that its properties are about, as far as there is memory.
pub(super) fn expanded(
    session: &Session,
    spec: &Spec,
    resolved: &Resolved,
    names: &Names,
) -> Expanded {
    let given = spec.properties.iter().filter(|property| property.objects.is_empty()).count();
    let most = most_properties(&session.settings).min(MOST_CHOICES);
    foresee_spec::expand(spec, resolved, names, most.saturating_add(given))
}

impl Work {
    /// The analyses that need no specification.
    pub(super) fn new(session: &Session, settings: Settings) -> Work {
        let built_in = session.built_in(&settings).into_iter();
        let analyses = built_in.map(|analysis| (None, analysis)).collect();
        let next = session.built_in_questions();
        Work { settings, parts: Vec::new(), analyses, properties: 0, next, left_out: Vec::new() }
    }

    /// Empty candidates for every part, and for the analyses that belong to none.
    pub(super) fn candidates(&self) -> Vec<Candidates> {
        vec![Candidates::default(); self.parts.len() + 1]
    }

    /// The searches, ready to be made, and the parts that they belong to.
    pub(super) fn searches(&mut self) -> (Vec<Search<'_>>, &[Part]) {
        let none = self.parts.len();
        let searches = self
            .analyses
            .iter_mut()
            .map(|(of, analysis)| Search { analysis: analysis.as_mut(), of: of.unwrap_or(none) });
        (searches.collect(), &self.parts)
    }

    /// What the searches were about, and nothing of what they hold.
    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// Adds all searches for the properties of a specification that has all initial values.
    pub(super) fn add(
        &mut self,
        session: &Session,
        source: &Specification,
        asked: &Expanded,
        names: &Names,
        order: FileOrder,
    ) -> Result<(), BadSpec> {
        let Expanded { spec, resolved, origins, left_out: never_made } = asked;
        let asked = spec.properties.iter().zip(origins);
        let asked = asked.filter(|(_, origin)| session.answers(self.next + **origin));
        let asked: Vec<_> = asked.map(|(property, _)| property.clone()).collect();
        self.next += source.spec.properties.len();
        let spec = &Spec { properties: asked, ..spec.clone() };
        let most = most_properties(&self.settings);
        let room = most.saturating_sub(self.properties).min(spec.properties.len());
        if let Some(first) = spec.properties.get(room) {
            let statement = format!(
                "not looked at, like the {} properties after it: there is memory for {most} properties; \
                 allow more with --max-memory, or check fewer at a time",
                spec.properties.len() - room - 1
            );
            self.left_out.push(left_out(&first.name.name, statement));
        }
        if let (true, Some(last)) = (*never_made > 0, spec.properties.last()) {
            let statement = format!(
                "{never_made} more choices of objects were not looked at: {} are the most in one \
                 specification",
                MOST_CHOICES.min(most)
            );
            self.left_out.push(left_out(&last.name.name, statement));
        }
        let properties = spec.properties[..room].to_vec();
        let spec = &Spec { properties, ..spec.clone() };
        self.properties += room;
        for part in Part::of(spec, resolved, &self.settings) {
            let of = Some(self.parts.len());
            let searches = searches(&part, (session, &self.settings), source, names, order)?;
            self.analyses.extend(searches.into_iter().map(|analysis| (of, analysis)));
            self.parts.push(part);
        }
        Ok(())
    }
}

/// What is said of properties that are not looked at, the first or last of which has this name.
fn left_out(name: &str, statement: String) -> Analysed {
    Analysed {
        name: OBSERVED,
        property: Some(name.to_owned()),
        outcome: Outcome::MemoryLimit,
        conclusion: Conclusion::Other,
        statement,
        notes: Vec::new(),
        stats: Vec::new(),
    }
}

/// All searches that are wanted for some properties, the simplest first. Each has monitors of its
/// own, which grow apart.
fn searches(
    part: &Part,
    (session, settings): (&Session, &Settings),
    source: &Specification,
    names: &Names,
    order: FileOrder,
) -> Result<Vec<Box<dyn Analysis>>, BadSpec> {
    let mut analyses: Vec<Box<dyn Analysis>> = Vec::new();
    let Part { spec, resolved, is_patterns } = part;
    let compile = || source.compile(spec);
    let sharing = || Sharing::new(Arc::clone(&session.decided), session.deciding.clone());
    // Whoever decides for others leaves out what takes no search.
    let is_part = session.deciding.is_some();
    if *is_patterns {
        // This one watches the observed run, too.
        let mut patterns = Patterns::new(compile()?, resolved, names, Algorithm::Auto);
        if settings.is_live {
            patterns = patterns.reporting_early();
        }
        analyses.push(Box::new(patterns));
    } else if !is_part {
        analyses.push(Box::new(Observed::new(spec, compile()?, resolved, names)));
    }
    let is_asked = session.asks_for(MONITORABILITY);
    // Patterns look at every order anyway, by the thousands; but not if the order comes from notes.
    if !is_part && (!is_patterns || is_asked || order == FileOrder::Notes) {
        let options = settings.monitorability(order, is_asked);
        let monitorability = Monitorability::new(spec, compile()?, resolved, names, options);
        analyses.push(Box::new(monitorability));
    }
    // The observed run alone needs no lattice, and no more memory than its monitor; and who asks
    // for its monitorability alone wants nothing else.
    if settings.limits.window == Some(1) || is_asked && !session.asks_for(SPEC) {
        return Ok(analyses);
    }
    if !is_patterns {
        let mut lattice = Lattice::new(spec, compile()?, resolved, names, settings.lattice());
        if settings.is_live {
            lattice = lattice.reporting_early();
        }
        analyses.push(Box::new(lattice.in_parts(sharing())));
    }
    if settings.searches_sliced() {
        let sliced = Sliced::new(spec, compile()?, resolved, names, settings.sliced());
        if sliced.has_patterns() {
            analyses.push(Box::new(sliced.in_parts(sharing())));
        }
    }
    if settings.searches_correct() {
        let correct = Correct::new(spec, compile()?, resolved, names, settings.correct());
        if correct.has_properties() {
            analyses.push(Box::new(correct.in_parts(sharing())));
        }
    }
    Ok(analyses)
}
