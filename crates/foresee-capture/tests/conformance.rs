//! For small programs of every primitive, the captured events equal those that the programs' first comments list.

mod native;

use foresee_testkit::tools::compilers;
use native::{Workshop, by_thread, only_trace, programs};

/// `thread: events…` in the lines behind `expect`.
fn expected(text: &str) -> Vec<(String, Vec<String>)> {
    let comment = text.split_once("expect\n").expect("an `expect` line").1;
    let comment = comment.split_once("*/").expect("the comment's end").0;
    let line = |line: &str| {
        let (thread, events) = line.split_once(':').expect("a thread");
        // Events are separated by spaces, and may contain some between parentheses.
        let (mut out, mut depth, mut word) = (Vec::new(), 0, String::new());
        for c in events.chars() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if c == ' ' && depth == 0 {
                out.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()));
            } else {
                word.push(c);
            }
        }
        out.extend(Some(word).filter(|w| !w.is_empty()));
        (thread.to_owned(), out)
    };
    comment.lines().filter(|l| !l.is_empty()).map(line).collect()
}

#[test]
fn captured_events_are_the_expected_ones() {
    let workshop = Workshop::new();
    let (mut seen, mut wrong) = (0, Vec::new());
    for compiler in compilers() {
        let mut sources: Vec<_> =
            std::fs::read_dir(programs()).unwrap().map(|e| e.unwrap().path()).collect();
        sources.sort();
        for source in sources {
            let text = std::fs::read_to_string(&source).unwrap();
            if !text.contains("expect\n") {
                continue;
            }
            let program = workshop.build(compiler, &source, &["-O0"]);
            let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
            let (_, trace, _) = only_trace(&out, &logs, &program);
            let found = by_thread(&trace);
            for (thread, events) in expected(&text) {
                let found = found.get(&thread).cloned().unwrap_or_default();
                if found != events {
                    let (name, found, events) =
                        (program.display(), found.join(" "), events.join(" "));
                    wrong.push(format!("{thread} of {name}\n   found {found}\nexpected {events}"));
                }
            }
            // libstdc++ has no hooks and writes to its callers' stacks, but to nothing that the programs name.
            assert!(!found.contains_key("external"), "{}: {found:?}", program.display());
            // With the filter there is less, but it is a trace all the same, and no value is wrong.
            for mode in ["sync", "async"] {
                let (out, logs) = workshop.capture(&program, &[("FORESEE_MODE", mode)]);
                let (_, thin, _) = only_trace(&out, &logs, &program);
                assert!(
                    !by_thread(&thin).contains_key("external"),
                    "{} with the filter",
                    program.display()
                );
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 20, "all programs were looked at with both compilers");
}
