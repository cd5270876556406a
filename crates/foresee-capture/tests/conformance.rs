//! For small programs of every primitive, the captured events equal those that the programs' first comments list.

use std::ffi::OsString;

use foresee_capture::compiler::{self, Language};
use foresee_testkit::tools::compilers;

use crate::native::{Workshop, by_thread, only_trace, programs};

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

/// Optimising compilers carry small copies and comparisons out themselves; `foresee cc` has them seen all the same.
#[test]
fn copies_of_known_sizes_are_seen_in_optimised_programs() {
    let workshop = Workshop::new();
    let source = programs().join("copies.c");
    let text = std::fs::read_to_string(&source).unwrap();
    let expected = &expected(&text.replace("optimised\n", "expect\n"))[0].1;
    for [name, _] in compilers() {
        for level in ["-O1", "-O2", "-Os", "-O3"] {
            let program = workshop.path(&format!("copies.{name}{level}"));
            let mut arguments: Vec<OsString> =
                ["--", name, level, "-D_FORTIFY_SOURCE=2", "-pthread", "-o"]
                    .map(Into::into)
                    .to_vec();
            arguments.extend([program.clone().into(), source.clone().into()]);
            let mut command =
                compiler::command(Language::C, &arguments, None, || workshop.kit()).unwrap();
            let built = command.output().unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
            let (_, trace, _) = only_trace(&out, &logs, &program);
            // Which part of a copy comes first, and in how many pieces it is read, is the compiler's business.
            let mut found = by_thread(&trace).remove("main").unwrap_or_default();
            found.dedup();
            for event in expected {
                assert!(found.contains(event), "{name} {level}: no {event} in {found:?}");
            }
        }
    }
}

/// Compilers place hooks before statements of their inner languages, and what becomes loads and stores only later has
/// none: `foresee cc` adds them.
#[test]
fn every_part_of_structures_is_seen() {
    let workshop = Workshop::new();
    let mut wrong = Vec::new();
    for compiler in compilers() {
        for name in ["structures.c", "objects.cpp"] {
            let source = programs().join(name);
            let text = std::fs::read_to_string(&source).unwrap();
            let parts = text.split_once("parts\n").unwrap().1.split_once("*/").unwrap().0;
            for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
                let program = workshop.build(compiler, &source, &[level]);
                let (out, logs) = workshop.capture(&program, &[("FORESEE_FILTER", "none")]);
                let (_, trace, _) = only_trace(&out, &logs, &program);
                let found = by_thread(&trace);
                let how = program.file_name().unwrap().to_string_lossy().into_owned();
                if let Some(unseen) = found.get("external") {
                    wrong.push(format!("{how}: {unseen:?}"));
                }
                let main = &found["main"];
                for line in parts.lines() {
                    let [variable, kinds, words] = line.split(' ').collect::<Vec<_>>()[..] else {
                        panic!("{line}: a name, kinds and a number");
                    };
                    for word in 0..words.parse::<usize>().unwrap() {
                        let place = match word {
                            0 => format!("({variable})"),
                            n => format!("({variable}+{})", 8 * n),
                        };
                        for kind in ['r', 'w'] {
                            let is_seen =
                                main.iter().any(|e| e.starts_with(&format!("{kind}{place}")));
                            // What is expected must be there; a variable that is only read must not be written.
                            if kinds.contains(kind) != is_seen
                                && (kinds.contains(kind) || kind == 'w')
                            {
                                wrong.push(format!("{how}: {kind}{place} seen: {is_seen}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
