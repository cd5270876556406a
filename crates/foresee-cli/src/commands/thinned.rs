//! A thinned capture has every access only of the variables that were named when it was made.

use foresee_spec::Diagnostic;
use foresee_spec::ast::Spec;
use foresee_trace::{Batch, EventSource, FileOrder, Op};

use crate::specs;

/// Refuses specifications about variables of which a thinned trace has only a part: what was left
/// out could make a false alarm of them, or hide a true one. Those that are whole have an initial
/// value, which `foresee run` writes for every variable it was asked about.
pub(crate) fn ensure_whole<'s>(
    order: FileOrder,
    source: &mut dyn EventSource,
    wanted: impl Iterator<Item = (&'s specs::Source, &'s Spec)>,
) -> anyhow::Result<()> {
    if order != FileOrder::Thinned {
        return Ok(());
    }
    let (mut batch, mut whole) = (Batch::default(), Vec::new());
    // Batches may be as small as their writer likes.
    while source.next_batch(&mut batch)? {
        let initial = batch.events.iter().take_while(|event| event.op() == Op::Init);
        let before = whole.len();
        whole.extend(initial.map(|event| source.names().vars.get(event.var()).to_owned()));
        if whole.len() - before < batch.events.len() {
            break;
        }
    }
    for (source, spec) in wanted {
        let variables = foresee_spec::variables(spec);
        let partial = variables.iter().filter(|(name, _)| !whole.iter().any(|w| w == name));
        let diagnostics: Vec<Diagnostic> = partial
            .map(|(name, span)| {
                let message = format!("the capture left out accesses of `{name}`");
                Diagnostic::error("thinned-variable", message, *span, "not named at capture")
                    .help("capture again with this specification, or everything, with --all")
            })
            .collect();
        if !diagnostics.is_empty() {
            return Err(specs::BadSpec::new(source, &diagnostics).into());
        }
    }
    Ok(())
}
