//! A filtered capture has every access only of the variables that were named when it was made.

use foresee_spec::Diagnostic;
use foresee_trace::{Batch, EventSource, FileOrder, Op, ReadError};

use super::error::SessionError;
use super::spec::Specification;

/// Rejects specifications about variables that a filtered trace has only in part: the missing
/// events could cause a false alarm, or hide a true one. Variables that are whole have an initial
/// value, which `foresee run` writes for every variable it was asked about.
pub(super) fn ensure_whole<'s>(
    order: FileOrder,
    open: impl FnOnce() -> Result<Box<dyn EventSource + 's>, ReadError>,
    specs: &[Specification],
) -> Result<(), SessionError> {
    if order != FileOrder::Filtered {
        return Ok(());
    }
    let mut source = open()?;
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
    for spec in specs {
        let variables = foresee_spec::variables(&spec.spec);
        let partial = variables.iter().filter(|(name, _)| !whole.iter().any(|w| w == name));
        let diagnostics: Vec<Diagnostic> = partial
            .map(|(name, span)| {
                let message = format!("the capture left out accesses of `{name}`");
                Diagnostic::error("filtered-variable", message, *span, "not named at capture")
                    .help("capture again with this specification, or everything, with --all")
            })
            .collect();
        if !diagnostics.is_empty() {
            return Err(spec.bad(diagnostics).into());
        }
    }
    Ok(())
}
