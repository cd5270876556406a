//! The computation lattice as the papers' pseudo-code has it: a map from cuts to a program state
//! and a set of monitor states for each level, vectors and maps copied wherever they are needed.

use std::collections::{BTreeSet, HashMap};

use foresee_causality::{Clocks, Order};
use foresee_spec::letter::Letter;
use foresee_spec::monitor::StateId;
use foresee_spec::observe::{EvalWarnings, Projection, Step};
use foresee_spec::property::Compiled;
use foresee_trace::{Id, ThreadId, Trace};

/// How many cuts there are, and whether some run violates the property.
pub(crate) fn search(
    trace: &Trace,
    lens: &Projection,
    property: &mut Compiled,
) -> anyhow::Result<(u64, bool)> {
    let threads = trace.names.threads.len();
    let mut clocks: Clocks<2> = Clocks::new(Order::Mazurkiewicz);
    let mut events: Vec<Vec<(Vec<u32>, Step)>> = vec![Vec::new(); threads];
    for event in &trace.events {
        let step = lens.step(event, &trace.pool);
        let stamp = clocks.event_if(event, step.is_some())?;
        if let Some(step) = step {
            let vector = (0..threads).map(|t| clocks.count(&stamp, ThreadId::new(t))[1]).collect();
            events[event.thread().index()].push((vector, step));
        }
    }
    let initial = lens.initial().clone();
    let mut start = property.monitor.start();
    if property.reads_initial {
        start = property.monitor.step(start, initial.letter())?;
    }
    let mut level = HashMap::from([(vec![0u32; threads], (initial, BTreeSet::from([start])))]);
    let (mut cuts, mut violated) = (0, false);
    while !level.is_empty() {
        cuts += level.len() as u64;
        let mut next: HashMap<Vec<u32>, (_, BTreeSet<StateId>)> = HashMap::new();
        for (cut, (state, monitors)) in &level {
            for t in 0..threads {
                let Some((vector, step)) = events[t].get(cut[t] as usize) else { continue };
                let mut new = cut.clone();
                new[t] += 1;
                if !vector.iter().zip(&new).all(|(need, have)| need <= have) {
                    continue;
                }
                let mut state = state.clone();
                let letter: Letter = lens.apply(&mut state, *step, &mut EvalWarnings::default());
                let entry = next.entry(new).or_insert_with(|| (state, BTreeSet::new()));
                for &monitor in monitors {
                    match property.monitor.step(monitor, letter)? {
                        StateId::BAD => violated = true,
                        monitor => drop(entry.1.insert(monitor)),
                    }
                }
            }
        }
        level = next;
    }
    Ok((cuts, violated))
}
