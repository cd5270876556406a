//! Names, types and places against what running programs print of themselves, through every
//! compiler, DWARF version and kind of executable.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use foresee_capture::symbols::{Kind, Module, NameError, Symbols, Tags};
use foresee_testkit::tools::compilers;
use tempfile::TempDir;

/// What a program said of itself.
struct Probe {
    symbols: Symbols,
    /// Name, address and size.
    objects: Vec<(String, u64, u64)>,
    code: Option<u64>,
    _dir: TempDir,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn call(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn build_c(compiler: &str, flags: &[&str]) -> Probe {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    call(
        Command::new(compiler)
            .args(flags)
            .args(["-shared", "-fPIC", "-o"])
            .arg(at("libnames.so"))
            .arg(source("names_library.c")),
    );
    call(Command::new(compiler).args(flags).arg("-rdynamic").arg("-o").arg(at("names")).args([
        source("names.c"),
        source("names_other.c"),
        at("libnames.so"),
    ]));
    probe(dir, "names")
}

fn probe(dir: TempDir, program: &str) -> Probe {
    let program = dir.path().join(program);
    let text = call(&mut Command::new(&program));
    let mut probe = Probe { symbols: Symbols::default(), objects: vec![], code: None, _dir: dir };
    for line in text.lines() {
        let words: Vec<&str> = line.rsplitn(3, ' ').collect();
        let hex = |s: &str| u64::from_str_radix(s, 16).unwrap();
        match words[..] {
            [end, bias, rest] if rest.starts_with("module ") => {
                let path = match rest.trim_start_matches("module ") {
                    "-" => program.clone(),
                    path => path.into(),
                };
                let bias = hex(bias);
                let range = bias.max(0x1000)..hex(end);
                probe.symbols.add(Module { path, bias, range });
            }
            [size, at, rest] => {
                let name = rest.trim_start_matches("object ").to_owned();
                probe.objects.push((name, hex(at), size.parse().unwrap()));
            }
            [code, _] => probe.code = Some(hex(code)),
            _ => panic!("{line}"),
        }
    }
    probe
}

fn check_objects(probe: &Probe, how: &str) {
    assert!(!probe.objects.is_empty());
    for (name, address, size) in &probe.objects {
        let part = probe
            .symbols
            .object(*address, *size, Tags::default())
            .unwrap_or_else(|| panic!("{how}: {name}"));
        assert_eq!(part.name, *name, "{how}");
        let slice = name.contains("..") || name.contains('+') || name == "matrix[0]";
        if !slice {
            let found = probe.symbols.find(name).unwrap_or_else(|e| panic!("{how}: {e}"));
            assert_eq!((found.address, found.scalar.size), (*address, *size), "{how}: {name}");
            assert_eq!(found.name, *name, "{how}");
        }
    }
}

/// The line of names.c with a mark.
fn line_of(mark: &str) -> u32 {
    let text = std::fs::read_to_string(source("names.c")).unwrap();
    1 + text.lines().position(|line| line.contains(mark)).unwrap() as u32
}

#[test]
fn c_names_places_and_types() {
    for [compiler, _] in compilers() {
        for flags in [
            &["-gdwarf-4", "-O0"][..],
            &["-gdwarf-5", "-O0"],
            &["-gdwarf-5", "-O2"],
            &["-gdwarf-4", "-O1", "-fdebug-types-section"],
            &["-gdwarf-5", "-no-pie", "-fno-pie", "-gz"],
        ] {
            let how = format!("{compiler} {}", flags.join(" "));
            let probe = build_c(compiler, flags);
            check_objects(&probe, &how);
            let symbols = &probe.symbols;
            let kind = |name: &str| symbols.find(name).unwrap().scalar.kind;
            assert_eq!(kind("ctl.valve.open"), Kind::Bool, "{how}");
            assert_eq!(kind("ctl.valve.level"), Kind::Float, "{how}");
            assert_eq!(kind("mode"), Kind::Signed, "{how}");
            assert_eq!(kind("big"), Kind::Unsigned, "{how}");
            assert_eq!(kind("text"), Kind::Pointer, "{how}");
            let initial = |name: &str| {
                let found = symbols.find(name).unwrap();
                found.scalar.value(symbols.initial(found.address, found.scalar.size).unwrap())
            };
            use foresee_trace::Value::*;
            assert_eq!(initial("ctl.valve.level"), Some(Float(2.5)), "{how}");
            assert_eq!(initial("ctl.valve.open"), Some(Bool(true)), "{how}");
            assert_eq!(initial("mode"), Some(Int(-1)), "{how}");
            assert_eq!(initial("big"), Some(Uint(u64::MAX)), "{how}");
            assert_eq!(initial("matrix[1][0]"), Some(Int(4)), "{how}");
            assert_eq!(initial("fleet[0].pos.x"), Some(Int(0)), "{how}");
            let place = symbols.place(probe.code.unwrap() - 1);
            let lines: Vec<_> = place.0.iter().map(|f| (f.function.as_deref(), f.line)).collect();
            let [leaf, outer] = ["/* LEAF */", "/* OUTER */"].map(line_of);
            let expected = [(Some("leaf"), Some(leaf)), (Some("outer"), Some(outer))];
            assert_eq!(lines[..2], expected, "{how}");
            assert!(place.line().unwrap().ends_with(&format!("names.c:{leaf}")), "{place}");
        }
    }
}

#[test]
fn names_that_mean_nothing_are_told_with_what_was_probably_meant() {
    let probe = build_c("gcc", &["-g"]);
    let reason = |name: &str| probe.symbols.find(name).unwrap_err().reason;
    match reason("landing") {
        NameError::Ambiguous(names) => {
            assert_eq!(names, ["names.c:landing", "names_other.c:landing"]);
        }
        other => panic!("{other}"),
    }
    assert_eq!(reason("fleat[1].pos.y"), NameError::Unknown(vec!["fleet".to_owned()]));
    assert!(
        matches!(reason("fleet[1].pos.z"), NameError::NoField { nearest, .. } if nearest.is_empty())
    );
    assert!(
        matches!(reason("ctl.valve.opened"), NameError::NoField { nearest, .. } if nearest == ["open"])
    );
    assert!(matches!(reason("fleet[3].pos.x"), NameError::NoElement { count: 3, .. }));
    assert!(matches!(reason("fleet[0].next.pos.x"), NameError::Pointer(_)));
    assert!(matches!(reason("ctl"), NameError::NotScalar(_)));
    assert_eq!(reason("fleet[1]..x"), NameError::Syntax);
    assert_eq!(
        probe.symbols.find("fleat").unwrap_err().to_string(),
        "`fleat` is not a global or static variable of the program; did you mean `fleet`?"
    );
    // Folders may be left out, namespaces and functions as well.
    assert_eq!(probe.symbols.find("names_library.c:last").unwrap().name, "library_next::last");
}

#[test]
fn without_debugging_information_the_symbol_table_still_names_variables() {
    let probe = build_c("gcc", &["-O0"]);
    let (_, address, size) = probe.objects.iter().find(|(name, ..)| name == "big").unwrap();
    let part = probe.symbols.object(*address, *size, Tags::default()).unwrap();
    assert_eq!((part.name.as_str(), part.scalar.kind), ("big", Kind::Unsigned));
    assert_eq!(probe.symbols.find("big").unwrap().address, *address);
    assert!(matches!(probe.symbols.find("ctl.inner").unwrap_err().reason, NameError::NoType(_)));
    let place = probe.symbols.place(probe.code.unwrap() - 1);
    assert_eq!(place.0[0].function.as_deref(), Some("outer"));
    let program = probe.symbols.modules().next().unwrap();
    assert_eq!(probe.symbols.coverage(program), None);
}

#[test]
fn cpp_names() {
    for [_, compiler] in compilers() {
        for flags in [&["-gdwarf-4", "-O0"][..], &["-gdwarf-5", "-O1"]] {
            let how = format!("{compiler} {}", flags.join(" "));
            let dir = TempDir::new().unwrap();
            let program = dir.path().join("names");
            call(
                Command::new(compiler).args(flags).arg("-o").arg(&program).arg(source("names.cc")),
            );
            let probe = probe(dir, "names");
            let atomic = probe.objects.iter().find(|(name, ..)| name == "bank::ready").unwrap();
            let found = probe.symbols.find("ready").unwrap();
            assert_eq!((found.name.as_str(), found.address), ("bank::ready", atomic.1), "{how}");
            assert_eq!(found.scalar.kind, Kind::Signed, "{how}");
            let rest = probe.objects.iter().filter(|(name, ..)| name != "bank::ready").cloned();
            let rest: Vec<_> = rest.collect();
            check_objects(&Probe { objects: rest, ..probe }, &how);
        }
    }
}

#[test]
fn files_that_are_no_programs_are_told() {
    let dir = TempDir::new().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    for path in [text, dir.path().join("absent")] {
        let mut symbols = Symbols::default();
        let module = Module { path, bias: 0, range: 0..1000 };
        symbols.add(module.clone());
        assert_eq!(symbols.object(10, 4, Tags::default()), None);
        assert_eq!(symbols.place(10).to_string(), "");
        assert!(symbols.error(&module).is_some());
    }
}
