#![no_main]
//! Any bytes as the content of an index's pages, with right checksums: it is refused or answers
//! something, and what it says it has can be counted.

use foresee_index::{Index, Question};
use foresee_spec::{parse, resolve};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut index) = Index::new(foresee_fuzz::pages(bytes)) else { return };
    let _ = index.census();
    let spec = parse("pattern p: write(x) .. acquire(_) .. read(x)@T1").spec;
    let resolved = resolve(&spec, index.names()).resolved;
    let question = Question::new(&spec.properties[0], &resolved, index.names());
    if let Ok(Ok(question)) = question {
        let _ = index.answer(&question);
        let _ = index.earliest(&question);
    }
});
