//! The lattice of one property as data to be drawn: cuts, steps between them, and two runs.
//!
//! This is for lattices that people can look at. It is plain code over clocks, cut after cut, and
//! shares nothing with the packed search, so the two check each other in tests.

mod cuts;

use std::collections::HashMap;

use foresee_causality::TooLong;
use foresee_spec::ast::Spec;
use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::Projection;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::{Diagnostic, Resolved, print};
use foresee_trace::{DescribedValue, Name, Names, ThreadId, Trace};
use num_bigint::BigUint;

use crate::observed::describe;
use cuts::{Cut, Cuts, Item, Items};

/// The lattice of one property, or of one binding of its parameters.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of the property.
    pub property: String,
    /// Its text, with the named formulas it uses.
    pub text: String,
    /// What each parameter stands for.
    pub binding: Vec<(String, String)>,
    /// The threads that have relevant events.
    pub threads: Vec<String>,
    /// The cuts level by level, from the initial state to the end.
    pub nodes: Vec<Node>,
    /// The steps between them.
    pub edges: Vec<Edge>,
    /// How many runs there are: ways from the first cut to the last.
    pub runs: BigUint,
    /// How many of them violate the property, if a violating one is drawn.
    pub violating_runs: Option<BigUint>,
    /// A violating order that is no way through the lattice, because critical sections swap or events are
    /// left out in it: its relevant events, each with its thread.
    pub beyond: Vec<Beyond>,
}

/// A step of an order that is not in the lattice.
#[derive(Clone, Debug)]
pub struct Beyond {
    /// The event's index in the trace.
    pub event: u64,
    /// Its thread.
    pub thread: String,
    /// What was done.
    pub text: String,
}

/// A consistent cut.
#[derive(Clone, Debug)]
pub struct Node {
    /// How many relevant events of each thread have happened.
    pub counts: Vec<u32>,
    /// The counts in short: `12`, or `1,12` where one of them has two digits.
    pub label: String,
    /// The property's variables and their values, `?` where a value is not known.
    pub values: Vec<(String, String)>,
    /// Whether the observed run passes here.
    pub observed: bool,
    /// Whether the violating run passes here.
    pub violating: bool,
    /// Whether some run violates the property by the step that leads here. Only set if a violating
    /// run is drawn: a picture shows no more than the report.
    pub violated: bool,
}

impl Node {
    /// The level of the cut: how many relevant events have happened.
    pub fn level(&self) -> usize {
        self.counts.iter().map(|&n| n as usize).sum()
    }
}

/// A step from one cut to another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The cut before the event, by its place among the nodes.
    pub from: usize,
    /// The cut after it.
    pub to: usize,
    /// The event's index in the trace.
    pub event: u64,
    /// Its thread, by its place among the threads.
    pub thread: usize,
    /// What was done.
    pub text: String,
    /// Whether the observed run takes this step.
    pub observed: bool,
    /// Whether the violating run takes it.
    pub violating: bool,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum NoPicture {
    /// No event concerns the property, so there is only the initial state.
    #[error("no event of the trace concerns it")]
    NothingRelevant,
    /// The lattice has too many cuts to draw.
    #[error("its lattice has more than {0} cuts, which is too large for a picture")]
    TooLarge(usize),
    /// The monitor can be in too many states.
    #[error(transparent)]
    Monitor(#[from] TooManyStates),
    /// The trace is longer than clocks can count.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The order that was given is not a run of the trace.
    #[error("the order to be drawn is not a run of the trace")]
    NoRun,
    /// The property cannot be compiled.
    #[error("the property cannot be compiled: {}", .0.message)]
    Property(Diagnostic),
}

impl Picture {
    /// How many cuts are drawn at most.
    pub const MAX_CUTS: usize = 400;

    /// The lattice of a property, with all initial values in the specification. The observed run is
    /// always marked; the violating one, if any, is `witness`: the beginning of
    /// an order of the trace's events, the observed one or another, that ends with the violation.
    pub fn new(
        trace: &Trace,
        spec: &Spec,
        resolved: &Resolved,
        property: usize,
        binding: &[(String, Object)],
        witness: Option<&[u64]>,
    ) -> Result<Picture, NoPicture> {
        let mut compiled =
            Compiled::new(&spec.properties[property]).map_err(NoPicture::Property)?;
        let projection = Projection::new(&compiled.alphabet, &spec.inits, resolved, &trace.names);
        let items = Items::of(trace, &projection, &compiled.params, binding)?;
        let mut start = compiled.monitor.start();
        if compiled.reads_initial {
            start = compiled.monitor.step(start, projection.initial().letter())?;
        }
        let cuts = Cuts::of(&items, &projection, &mut compiled.monitor, start)?;
        let observed = cuts.path(&items, items.items.iter().map(|item| item.index))?;
        let violating =
            witness.map(|order| cuts.path(&items, order.iter().copied())).transpose()?;
        let told = violating.is_some();
        let violating_runs = cuts.last().runs.get(&StateId::BAD).filter(|_| told).cloned();
        let names = &trace.names;
        let describe_binding =
            |(name, object): &(String, Object)| (name.clone(), describe(*object, names).text(&[]));
        let mut picture = Picture {
            property: compiled.name,
            text: text(spec, property),
            binding: binding.iter().map(describe_binding).collect(),
            threads: items.threads.iter().map(|&t| thread_name(t, names)).collect(),
            nodes: cuts.nodes(&projection, names, told),
            edges: cuts.edges(&items, trace),
            runs: cuts.last().runs.values().sum(),
            violating_runs,
            beyond: Vec::new(),
        };
        picture.mark(&observed, |node| &mut node.observed, |edge| &mut edge.observed);
        if let Some(path) = violating {
            picture.nodes[path[path.len() - 1]].violated = true;
            picture.mark(&path, |node| &mut node.violating, |edge| &mut edge.violating);
        }
        Ok(picture)
    }

    /// Adds a violating order that is no way through the lattice.
    pub fn add_beyond(&mut self, trace: &Trace, order: &[u64]) {
        let relevant: HashMap<u64, &Edge> =
            self.edges.iter().map(|edge| (edge.event, edge)).collect();
        let step = |index: &u64| {
            let edge = relevant.get(index)?;
            let thread = trace.events.get(*index as usize)?.thread();
            let thread = thread_name(thread, &trace.names);
            Some(Beyond { event: *index, thread, text: edge.text.clone() })
        };
        self.beyond = order.iter().filter_map(step).collect();
    }

    /// Marks a path.
    fn mark(
        &mut self,
        path: &[usize],
        on_node: impl Fn(&mut Node) -> &mut bool,
        on_edge: impl Fn(&mut Edge) -> &mut bool,
    ) {
        for &node in path {
            *on_node(&mut self.nodes[node]) = true;
        }
        for step in path.windows(2) {
            let edges = self.edges.iter_mut();
            let taken = edges.filter(|edge| (edge.from, edge.to) == (step[0], step[1]));
            taken.for_each(|edge| *on_edge(edge) = true);
        }
    }
}

impl Cuts {
    fn nodes(&self, projection: &Projection, names: &Names, tell_violations: bool) -> Vec<Node> {
        let short = self.last().counts.iter().all(|&count| count < 10);
        let node = |cut: &Cut| {
            let counts: Vec<String> = cut.counts.iter().map(u32::to_string).collect();
            let values = projection.variables().zip(cut.program.values()).map(|(name, value)| {
                let value = value.map(|value| DescribedValue { value, names }.to_string());
                (name.to_owned(), value.unwrap_or_else(|| "?".to_owned()))
            });
            Node {
                counts: cut.counts.clone(),
                label: counts.join(if short { "" } else { "," }),
                values: values.collect(),
                observed: false,
                violating: false,
                violated: tell_violations && cut.violated,
            }
        };
        self.cuts.iter().map(node).collect()
    }

    fn edges(&self, items: &Items, trace: &Trace) -> Vec<Edge> {
        let edge = |&(from, to, item): &(usize, usize, usize)| {
            let Item { index, column, .. } = items.items[item];
            let event = &trace.events[index as usize];
            Edge {
                from,
                to,
                event: index,
                thread: column,
                text: event.describe(&trace.names, &trace.pool).to_string(),
                observed: false,
                violating: false,
            }
        };
        self.edges.iter().map(edge).collect()
    }
}

/// A property as written in its specification, after the named formulas it uses.
fn text(spec: &Spec, property: usize) -> String {
    let mut used = Spec { properties: vec![spec.properties[property].clone()], ..Spec::default() };
    // A named formula can use only those before it.
    for named in spec.lets.iter().rev() {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        if print(&used).split(|c| !in_word(c)).any(|word| word == named.name.name) {
            used.lets.insert(0, named.clone());
        }
    }
    print(&used).trim_end().to_owned()
}

fn thread_name(t: ThreadId, names: &Names) -> String {
    Name(names.threads.get(t)).to_string()
}
