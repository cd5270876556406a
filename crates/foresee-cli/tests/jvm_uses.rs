//! What Java capture is for: the programs of the papers, real libraries, tests as units, other JDKs.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Bench, root, said, text};
use crate::jvm::{COMPLETE, agent, classes, expect, run};

/// What a script prints.
pub(crate) fn script(name: &str, arguments: &[&str]) -> String {
    let script = Command::new(root().join("scripts").join(name)).args(arguments).output().unwrap();
    assert!(script.status.success(), "{name}: {}{}", text(&script.stdout), text(&script.stderr));
    text(&script.stdout).trim().to_owned()
}

/// The figures of the lattice of a property, by name.
fn lattice(report: &str) -> Value {
    let report: Value = serde_json::from_str(report).unwrap();
    let analyses = report["analyses"].as_array().unwrap().iter();
    let mut lattice =
        analyses.filter(|one| one["name"] == "lattice").map(|one| one["stats"].clone());
    lattice.next_back().unwrap()
}

#[test]
fn the_lattices_are_those_of_the_papers() {
    // A static initialiser writes the initial values, which are steps of a Java program.
    for (name, folder, runs, violating, initial) in [
        ("water", "water-level", "6", "4", 2),
        ("xyz", "xyz", "3", "1", 1),
        ("landing", "landing", "3", "1", 1),
    ] {
        let spec = format!("examples/{folder}/{name}.spec");
        let flags = ["--spec", &spec, "--reorder", "maz", "--format", "json"];
        let (status, out, err) = run(&flags, &["PaperRuns", name]);
        assert_eq!(status, 1, "{out}{err}");
        let captured = lattice(&out);
        assert_eq!(
            (&captured["runs"], &captured["violating_runs"]),
            (&runs.into(), &violating.into())
        );
        let mut check = Bench::new().foresee();
        check.current_dir(root()).arg("check").args(flags);
        let (_, out, err) =
            said(&check.arg(format!("examples/{folder}/{name}.std")).output().unwrap());
        let paper = lattice(&out);
        for figure in ["states", "levels"] {
            let (captured, paper) = (captured[figure].as_u64(), paper[figure].as_u64());
            assert_eq!(captured, paper.map(|n| n + initial), "{name} {figure}: {err}");
        }
        assert_eq!(captured["widest_level"], paper["widest_level"]);
    }
}

/// Runs `plant.Plant` with a specification.
fn plant(spec: &str, arguments: &[&str]) -> (i32, String) {
    let bench = Bench::new();
    bench.write("s.spec", spec);
    let spec = bench.path("s.spec");
    let program = [&["plant.Plant"], arguments].concat();
    let (status, out, err) = run(&["--spec", spec.to_str().unwrap()], &program);
    (status, out + &err)
}

#[test]
fn properties_of_objects() {
    for valve in ["Valve", "plant.Plant.Valve", "Plant.Valve"] {
        let (status, said) =
            plant(&format!("property one(a: {valve}, b: {valve}): !(a.open && b.open)"), &[]);
        assert_eq!(status, 1, "{said}");
        let predicted = "PREDICTED one(plant.Plant.Valve#1, plant.Plant.Valve#2)";
        assert!(said.contains(predicted), "{said}");
        let (status, said) =
            plant(&format!("property held(a: {valve}): write(a.open) -> once a.open"), &[]);
        assert_eq!(status, 0, "{said}");
    }
    let (status, said) = plant("property p(a: Valves): a.open", &[]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("did you mean `plant.Plant.Valve`?"), "{said}");
}

#[test]
fn objects_of_a_subclass_have_its_type() {
    let both = "property one(a: Valve, b: SafetyValve): !(a.open && b.open)";
    let (status, said) = plant(both, &["safe"]);
    assert_eq!(status, 1, "{said}");
    let predicted = "PREDICTED one(plant.Plant.Valve, plant.Plant.SafetyValve)";
    assert!(said.contains(predicted), "{said}");
    // That they are not looked at is said.
    let (status, said) = plant("property held(a: Valve): write(a.open) -> once a.open", &["safe"]);
    assert_eq!(status, 3, "{said}");
    assert!(said.contains("objects of plant.Plant.SafetyValve"), "{said}");
    let (status, said) = plant("property one(a: Valve, b: Valve): !(a.open && b.open)", &["safe"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("stand for different objects"), "{said}");
}

#[test]
fn a_lock_in_a_field_is_not_a_part_of_the_object() {
    let guarded =
        "property guarded(a: Valve): write(a.open) -> !release(a.lock) since acquire(a.lock)";
    let (status, said) = plant(guarded, &[]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("has a lock `lock` in the trace"), "{said}");
}

#[test]
fn correct_programs_are_monitorable_and_faulty_ones_are_not() {
    let ask = |spec| ["--check", "monitorability", "--spec", spec];
    for (spec, program) in [
        ("examples/jvm/bakery/Bakery.spec", "Bakery"),
        ("examples/jvm/producers/Producers.spec", "Producers"),
    ] {
        expect(&ask(spec), program, 0, "monitorable: the execution ordered every two events");
    }
    for (spec, program) in [
        ("examples/jvm/bakery-jumped/BakeryJumped.spec", "BakeryJumped"),
        ("examples/jvm/producers-unlocked/Unlocked.spec", "Unlocked"),
    ] {
        for _ in 0..3 {
            let (status, out, err) = run(&ask(spec), &[program]);
            assert_eq!(status, 1, "{out}{err}");
            let is_warned = out.contains("are not ordered by the execution")
                || out.contains("is not ordered by the execution");
            assert!(is_warned || out.contains("OBSERVED exclusion"), "{out}{err}");
        }
    }
}

#[test]
fn bugs_of_real_libraries_are_predicted() {
    for (name, property) in [
        ("logstash", "manipulate_after_close"),
        ("jfreechart", "unsafe_iterator"),
        ("jfreechart-map", "unsafe_map_iterator"),
        ("exp4j", "unsynchronized_add_all"),
        ("antlrworks", "class_invariant"),
    ] {
        let bench = Bench::new();
        let mut example = Command::new(root().join("scripts/example"));
        example.arg(format!("jvm/{name}")).env("FORESEE", bench.foresee().get_program());
        let (status, out, err) = said(&example.env("FORESEE_JVM_AGENT", agent()).output().unwrap());
        assert_eq!(status, 1, "{name}: {out}{err}");
        assert!(out.contains(&format!("PREDICTED {property} ")), "{name}: {out}{err}");
        assert!(out.contains("0 observed, 1 predicted"), "{name}: {out}{err}");
    }
}

/// The tests that show the only bug of a report. An increment that another one overlaps races by its read and by its write,
/// so there may be several findings, each of them once.
fn tests_of(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let analyses = report["analyses"].as_array().unwrap().iter();
    let findings: Vec<&Value> =
        analyses.flat_map(|one| one["findings"].as_array().unwrap()).collect();
    assert!(!findings.is_empty(), "{report:#}");
    let is_same = |one: &&Value| one["about"] == findings[0]["about"];
    assert!(findings.iter().all(is_same), "{report:#}");
    let mut known: Vec<&str> =
        findings.iter().map(|one| one["fingerprint"].as_str().unwrap()).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), findings.len(), "{report:#}");
    let tests = findings.iter().flat_map(|one| one["tests"].as_array().unwrap());
    let mut tests: Vec<String> = tests.map(|test| test.as_str().unwrap().to_owned()).collect();
    tests.sort();
    tests.dedup();
    tests
}

#[test]
fn a_build_has_one_report_with_the_tests_of_all_its_processes() {
    classes();
    let bench = Bench::new();
    let (report, built) = (bench.path("report.json"), bench.path("built"));
    let mut command = bench.foresee();
    command.current_dir(root()).env("FORESEE_JVM_AGENT", agent());
    command.args(["run", "--check", "race", "--format", "json", "--output"]).arg(&report);
    command.args(["--", "mvn", "-q", "-B", "-f", "testdata/jvm-tests/pom.xml"]);
    command.arg(format!("-DbuildFolder={}", built.display())).arg("test");
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 1, "Maven is needed (scripts/test installs it): {out}{err}");
    let report = std::fs::read_to_string(&report).unwrap();
    assert_eq!(tests_of(&report), ["FiveTest.counts", "FourTest.countsToo"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["trace"]["name"], "mvn (2 processes)");
}

#[test]
fn tests_of_testng_are_named() {
    let bench = Bench::new();
    let classes = bench.path("classes");
    let libraries = script("jvm-libraries", &["testdata/jvm-testng/libraries"]);
    let path = format!("{libraries}:{}", classes.display());
    compile(&path, &classes, "testdata/jvm-testng/NgTest.java");
    let (status, out, err) = run(
        &[
            "--check",
            "race",
            "--format",
            "json",
            "--output",
            bench.path("report").to_str().unwrap(),
        ],
        &[
            "-cp",
            &path,
            "org.testng.TestNG",
            "-usedefaultlisteners",
            "false",
            "-testclass",
            "NgTest",
        ],
    );
    assert_eq!(status, 1, "{out}{err}");
    let report = std::fs::read_to_string(bench.path("report")).unwrap();
    assert_eq!(tests_of(&report), ["NgTest.counts"]);
}

fn compile(path: &str, to: &Path, source: &str) {
    let mut compiler = Command::new("javac");
    compiler.current_dir(root()).args(["-g", "-cp", path, "-d"]).arg(to).arg(source);
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
}

#[test]
fn the_planted_race_of_each_language_is_reported() {
    classes();
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.env("FORESEE_JVM_AGENT", agent()).args(["self-test", "c", "c++", "java", "rust"]);
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    assert_eq!(out.matches("ok, the planted race was reported").count(), 4, "{out}{err}");
}

#[test]
fn a_self_test_fails_without_what_it_needs() {
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.env("FORESEE_JVM_AGENT", "/nonexistent.jar").args(["self-test", "java"]);
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("Java: FAILED: ") && out.contains("./scripts/jvm-agent"), "{out}{err}");
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.env("FORESEE_JVM_AGENT", "/nonexistent.jar").env("PATH", "/nonexistent");
    let (status, out, err) = said(&command.arg("self-test").output().unwrap());
    assert_eq!(status, 3, "{out}{err}");
    assert_eq!(out.matches("not tried: ").count(), 3, "{out}{err}");
}

/// Runs a program on another JDK, with the verifier on.
fn on(java: &str, flags: &[&str], path: &Path, program: &[&str]) -> (i32, String, String) {
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.env("FORESEE_JVM_AGENT", agent()).args(["run", "--check", "race", "--", java]);
    command.args(flags).arg("-Xverify:all").arg("-cp").arg(path).args(program);
    said(&command.output().unwrap())
}

#[test]
fn newer_jdks_have_the_same_answers() {
    for (version, flag) in [("21", "-XX:+UseZGC"), ("25", "-XX:+UseZGC"), ("25", "-Xint")] {
        let java = script("jdk", &[version]);
        let (status, out, err) = on(&java, &[flag], classes(), &["Conformance"]);
        let is_lost = out.contains("a step was lost because the stack of its thread was full");
        assert_eq!(status, if is_lost { 3 } else { 0 }, "{version} {flag}: {out}{err}");
        assert!(out.contains("all as it should be"), "{out}{err}");
        assert!(out.contains(&format!("(Java {version}.")), "{out}{err}");
    }
    for version in ["21", "25"] {
        let java = script("jdk", &[version]);
        for program in ["OrderedByTheJdk", "PoolAndFutures"] {
            let (status, out, err) = on(&java, &[], classes(), &[program]);
            assert_eq!(status, 0, "{version} {program}: {out}{err}");
            assert!(out.contains(COMPLETE), "{version} {program}: {out}{err}");
        }
        let newest = newest_classes(version, &java);
        let (status, out, err) = on(&java, &[], &newest, &["Virtual"]);
        assert_eq!(status, 0, "{version}: {out}{err}");
        let (status, out, err) = on(&java, &[], &newest, &["Virtual", "racy"]);
        assert_eq!(status, 1, "{version}: {out}{err}");
        assert!(out.contains("PREDICTED race") && out.contains("Virtual.plain"), "{out}{err}");
    }
}

/// Class files of a JDK's own version, which `javac` of an older one cannot make.
fn newest_classes(version: &str, java: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jvm{version}-classes"));
    let compiler = script("jvm-libraries", &["testdata/jvm21/libraries"]);
    let mut ecj = Command::new(java);
    ecj.args(["-cp", &compiler, "org.eclipse.jdt.internal.compiler.batch.Main", "-nowarn", "-g"]);
    ecj.args(["-source", version, "-target", version, "-d"]).arg(&folder);
    let compiled = ecj.arg(root().join("testdata/jvm21/Virtual.java")).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
    folder
}
