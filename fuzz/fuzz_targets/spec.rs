#![no_main]
//! Any text: it is read, what is wrong with it is shown, and what is right comes back from the
//! formatter with the same meaning, and a second time with the same text.

use foresee_spec::{format, parse, render};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let parsed = parse(text);
    render(&parsed.diagnostics, "spec", text, true);
    let Ok(neat) = format(text) else { return assert!(parsed.has_errors()) };
    assert_eq!(parse(&neat).spec, parsed.spec);
    assert_eq!(format(&neat).as_ref(), Ok(&neat));
});
