//! Initial values of variables that the specification does not give.

use foresee_spec::Resolved;
use foresee_spec::ast::{Ident, Init, Literal, Span, Spec};
use foresee_spec::observe::{InitialValues, Projection};
use foresee_spec::property::Compiled;
use foresee_trace::{Batch, EventSource, Names, ReadError, Value};

/// Adds the initial values in the trace to a specification: from `init` lines, or from a read
/// before any write. Every later analysis, and the judge of witnesses, then starts from the same
/// state. Reads only as much of the trace as is needed.
pub fn learn_initial_values<'s>(
    spec: &mut Spec,
    properties: &[Compiled],
    resolved: &Resolved,
    names: &Names,
    open: impl FnOnce() -> Result<Box<dyn EventSource + 's>, ReadError>,
) -> Result<(), ReadError> {
    let projection = |p: &Compiled| Projection::new(&p.alphabet, &spec.inits, resolved, names);
    let mut open_values: Vec<(Projection, InitialValues)> = properties
        .iter()
        .map(projection)
        .map(|projection| {
            let initial = InitialValues::new(&projection);
            (projection, initial)
        })
        .filter(|(projection, _)| projection.initial().values().contains(&None))
        .collect();
    if open_values.is_empty() {
        return Ok(());
    }
    let mut source = open()?;
    let mut batch = Batch::default();
    'trace: while source.next_batch(&mut batch)? {
        for event in &batch.events {
            for (projection, initial) in open_values.iter_mut().filter(|(_, it)| !it.settled()) {
                initial.learn(projection, event, &batch.pool);
            }
        }
        if open_values.iter().all(|(_, initial)| initial.settled()) {
            break 'trace;
        }
    }
    for (projection, initial) in &open_values {
        let state = initial.state(projection, &mut Default::default());
        for (name, value) in projection.variables().zip(state.values()) {
            let known = spec.inits.iter().any(|init| init.var.name == name);
            if let (false, Some(value)) = (known, value) {
                let var = Ident { name: name.to_owned(), span: Span::default() };
                spec.inits.push(Init { var, value: literal(*value, names) });
            }
        }
    }
    Ok(())
}

fn literal(value: Value, names: &Names) -> Literal {
    match value {
        Value::Int(n) => Literal::Int(n.into()),
        Value::Uint(n) => Literal::Int(n.into()),
        Value::Float(x) => Literal::Float(x),
        Value::Bool(b) => Literal::Bool(b),
        Value::Str(s) => Literal::Str(names.syms.get(s).to_owned()),
    }
}
