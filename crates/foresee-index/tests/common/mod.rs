//! Shared by the tests of the index.

use std::io::Cursor;

use foresee_index::{About, Builder, Identity, Index, Question, ReadAt, Unsupported};
use foresee_spec::{parse, resolve};
use foresee_trace::Trace;

/// The bytes of the index of a trace, built with this much memory.
pub(crate) fn bytes_of(trace: &Trace, memory: usize) -> Vec<u8> {
    let mut builder = Builder::new(&std::env::temp_dir(), memory);
    builder.read(&mut trace.source(), &mut |_| {}).unwrap();
    let about = About {
        format: "std",
        repaired: false,
        names: &trace.names,
        remarks: &trace.remarks,
        identity: Identity::default(),
    };
    builder.write(Cursor::new(Vec::new()), &about).unwrap().into_inner()
}

/// A pattern bound to an index.
pub(crate) fn question<S: ReadAt>(
    index: &Index<S>,
    pattern: &str,
) -> Result<Question, Unsupported> {
    let parsed = parse(&format!("pattern p: {pattern}"));
    assert!(!parsed.has_errors(), "{pattern}: {:?}", parsed.diagnostics);
    let resolved = resolve(&parsed.spec, index.names()).resolved;
    Question::new(&parsed.spec.properties[0], &resolved, index.names()).unwrap()
}
