//! Java programs, captured by the agent: small ones with known answers, the examples, and what goes wrong.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::harness::{Bench, root, said, text};

/// The agent, and the classes of all programs in `testdata/jvm` and `examples/jvm`, built once.
pub(crate) fn classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let agent = Command::new(root().join("scripts/jvm-agent")).output().unwrap();
        assert!(
            agent.status.success(),
            "Java programs need a JDK and Maven (scripts/test installs them): {}{}",
            text(&agent.stdout),
            text(&agent.stderr)
        );
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jvm-classes");
        std::fs::create_dir_all(&classes).unwrap();
        let mut compiler = Command::new("javac");
        compiler.args(["-Xlint:all", "-Werror", "-g", "-d"]).arg(&classes);
        for folder in ["testdata/jvm".into(), "examples/jvm".into()] {
            sources(&root().join::<PathBuf>(folder), &mut compiler);
        }
        let compiled = compiler.output().unwrap();
        assert!(compiled.status.success(), "{}", text(&compiled.stderr));
        classes
    })
}

fn sources(folder: &Path, compiler: &mut Command) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Those with libraries are built by `scripts/example`.
        if path.is_dir() && !path.join("libraries").exists() {
            sources(&path, compiler);
        } else if path.extension().is_some_and(|ending| ending == "java") {
            compiler.arg(path);
        }
    }
}

/// Runs a program under `foresee run WORDS`, with the JVM's verifier on; status, standard output and error.
pub(crate) fn run(words: &[&str], program: &[&str]) -> (i32, String, String) {
    let mut command = Bench::new().foresee();
    command.current_dir(root()).arg("run").args(words).args(["--", "java", "-Xverify:all", "-cp"]);
    command.arg(classes()).args(program);
    said(&command.env("FORESEE_JVM_AGENT", agent()).output().unwrap())
}

pub(crate) fn agent() -> PathBuf {
    root().join("agents/jvm/target/foresee-jvm.jar")
}

/// Runs a program several times, and expects a status and a text every time.
pub(crate) fn expect(words: &[&str], program: &str, status: i32, said: &str) {
    for _ in 0..3 {
        let (found, out, err) = run(words, &[program]);
        assert_eq!(found, status, "{program} {words:?}\n{out}{err}");
        assert!(out.contains(said), "{program} {words:?}: {said}\n{out}{err}");
    }
}

pub(crate) const COMPLETE: &str = "0 observed, 0 predicted; complete";

#[test]
fn races() {
    for (program, variable) in [
        ("RacyCounter", "RacyCounter.count"),
        ("PlainFlag", "PlainFlag.ready"),
        ("SharedList", "java.util.ArrayList"),
        ("SharedFormat", "java.text.SimpleDateFormat"),
        ("HiddenRace", "HiddenRace.data"),
        ("WritingReaders", "java.util.HashMap"),
        ("FlagsWithoutTurn", "FlagsWithoutTurn.count"),
    ] {
        expect(&["--check", "race"], program, 1, "PREDICTED race");
        expect(&["--check", "race"], program, 1, variable);
    }
}

#[test]
fn what_is_ordered_does_not_race() {
    let (status, out, err) = run(&["--check", "race"], &["SharedFormat", "own"]);
    assert!(status == 0 && out.contains(COMPLETE), "{out}{err}");
    for program in [
        "GuardedCounter",
        "VolatileFlag",
        "PoolAndFutures",
        "FixedOrder",
        "WaitNotify",
        "OrderedByTheJdk",
        "HandedOver",
        "FieldHandles",
        "Inherited",
        "LazyHolder",
        "WholeUpdate",
        "Ended",
        "TryLocks",
        "SharedLater",
    ] {
        expect(&["--check", "race"], program, 0, COMPLETE);
    }
}

/// The cases of a program that is told by an argument which of them to run.
fn cases(program: &str) -> Vec<String> {
    let source = std::fs::read_to_string(root().join(format!("testdata/jvm/{program}.java")));
    let is_case =
        |line: &str| Some(line.trim().strip_prefix("case \"")?.split_once('"')?.0.to_owned());
    source.unwrap().lines().filter_map(is_case).collect()
}

#[test]
fn what_only_this_run_kept_apart_is_found_or_said() {
    let cases = cases("ByChance");
    assert!(cases.len() > 25);
    for case in cases {
        let (status, out, err) = run(&["--check", "race,deadlock"], &["ByChance", &case]);
        assert!(status == 1 || status == 3, "{case}: {status}\n{out}{err}");
        let reasons = [
            "PREDICTED",
            "OBSERVED",
            "in the order of this run",
            "matter of chance",
            "wait forever",
            "forever",
            "one thread executed",
        ];
        assert!(reasons.iter().any(|reason| out.contains(reason)), "{case}: {out}{err}");
    }
}

#[test]
fn what_does_not_depend_on_chance_is_complete() {
    let cases = cases("ByDesign");
    assert!(cases.len() > 20);
    for case in cases {
        let (status, out, err) = run(&["--check", "race,deadlock"], &["ByDesign", &case]);
        assert_eq!(status, 0, "{case}\n{out}{err}");
    }
}

/// The findings of a run, without the numbers of objects.
fn findings(words: &[&str], program: &[&str]) -> Vec<String> {
    let (status, out, err) = run(words, program);
    assert_eq!(status, 1, "{program:?} {words:?}\n{out}{err}");
    let is_finding = |line: &&str| line.contains(" at the same time");
    let mut found: Vec<String> = out
        .lines()
        .filter(is_finding)
        .map(|line| {
            let words: String = line.chars().filter(|c| !c.is_ascii_digit() && *c != '#').collect();
            // Which of the two accesses comes first is not the same in every run.
            let mut words: Vec<&str> = words.split_whitespace().collect();
            words.sort_unstable();
            words.join(" ")
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn objects_of_one_thread_are_left_out_and_nothing_is_lost() {
    for program in [
        &["RacyCounter"][..],
        &["PlainFlag"],
        &["HiddenRace"],
        &["SharedList"],
        &["SharedLater", "racy"],
    ] {
        let race = ["--check", "race"];
        let all = findings(&["--check", "race", "--all"], program);
        assert_eq!(findings(&race, program), all, "{program:?}");
        assert!(!all.is_empty(), "{program:?}");
    }
    let (_, out, _) = run(&["--check", "race"], &["SharedLater"]);
    assert!(out.contains("objects that only one thread could reach are left out"), "{out}");
    let (_, out, _) = run(&["--check", "race", "--all"], &["SharedLater"]);
    assert!(!out.contains("are left out"), "{out}");
}

/// A way of sharing that the agent does not know of is noticed.
#[test]
fn an_object_that_is_shared_unseen_ends_prediction() {
    let (status, out, err) = run(&["--check", "race"], &["SharedUnseen"]);
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("how they came to share it was not seen"), "{out}{err}");
}

#[test]
fn what_the_jdk_does_not_order_races() {
    let (status, out, err) = run(&["--check", "race"], &["NotHandedOver"]);
    assert_eq!(status, 1, "{out}{err}");
    let variables = [
        "Names",
        "besideLatch",
        "besideFutures",
        "beforeGet",
        "inTasks",
        "afterBarrier",
        "throughHandle",
        "afterUnparks",
    ];
    for variable in variables {
        assert!(out.contains(&format!("race on NotHandedOver.{variable} [")), "{variable}\n{out}");
    }
    // The increment of one of them is a read and a write, which race as one pair or as two.
    let headlines = out.lines().filter_map(|line| line.strip_prefix("PREDICTED race on "));
    let mut found: Vec<&str> = headlines.filter_map(|line| line.split(" [").next()).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), variables.len(), "{out}");
}

#[test]
fn deadlocks() {
    expect(&["--check", "deadlock"], "LockOrder", 1, "PREDICTED deadlock");
    expect(&["--check", "deadlock"], "LockOrderGuarded", 0, COMPLETE);
}

#[test]
fn atomicity() {
    let check = |region| ["--check", "atomicity", "--region", region];
    expect(&check("SplitUpdate.deposit"), "SplitUpdate", 1, "PREDICTED atomicity");
    expect(&check("WholeUpdate.deposit"), "WholeUpdate", 0, COMPLETE);
}

#[test]
fn nondeterminism() {
    expect(&["--check", "nondeterminism"], "LastWriter", 1, "1 of 1 read could see another write");
    expect(&["--check", "nondeterminism"], "FixedOrder", 0, COMPLETE);
}

#[test]
fn what_is_not_followed_ends_prediction_with_a_reason() {
    let (status, out, err) = run(&[], &["Unfollowed"]);
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("AtomicIntegerFieldUpdater.updateAndGet"), "{out}");
    assert!(out.contains("NOT complete"), "{out}");
}

#[test]
fn examples() {
    let spec = |name: &str| format!("examples/jvm/{name}.spec");
    for (name, program, property) in [
        ("landing/Landing", "Landing", "PREDICTED safe_landing"),
        ("water-level/Water", "Water", "PREDICTED level"),
        ("xyz/Xyz", "Xyz", "PREDICTED ordered"),
        ("dbplayer/Player", "Player", "PREDICTED fail"),
        ("unsafe-iteration/Legend", "Legend", "PREDICTED unsafe_iteration"),
    ] {
        expect(&["--spec", &spec(name)], program, 1, property);
    }
    // Without locks, not every pair is proved to be ordered; but none is said to race.
    for _ in 0..3 {
        let (status, out, err) = run(&["--check", "race"], &["Bakery"]);
        assert!(status != 1 && out.contains("6 loaves"), "{out}{err}");
        assert!(out.contains("0 observed, 0 predicted"), "{out}{err}");
    }
    expect(&["--check", "race"], "BakeryPlain", 1, "PREDICTED race");
    expect(&["--check", "race"], "Producers", 0, COMPLETE);
    expect(&["--check", "race"], "Unlocked", 1, "PREDICTED race");
    expect(&["--check", "nondeterminism"], "Account", 1, "1 predicted");
}

#[test]
fn the_programs_streams_are_its_own() {
    let plain = Command::new("java").arg("-cp").arg(classes()).arg("Streams").output().unwrap();
    let bench = Bench::new();
    let report = bench.path("out");
    let mut command = bench.foresee();
    let script =
        format!("exec java -cp {} Streams >{} 2>&1", classes().display(), report.display());
    command.env("FORESEE_JVM_AGENT", agent());
    command.args(["run", "--", "sh", "-c", &script]);
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    let captured = std::fs::read_to_string(&report).unwrap();
    // The JVM itself says that it takes options from the environment.
    let own: Vec<&str> = captured.lines().filter(|line| !line.starts_with("Picked up ")).collect();
    let mut expected = text(&plain.stdout);
    expected.push_str(&text(&plain.stderr));
    assert_eq!(own, expected.lines().collect::<Vec<_>>());
    assert!(out.contains("captured"), "{out}{err}");
}

#[test]
fn endings() {
    // `System.exit` is an orderly end; halting is not, and a status is a failure.
    let (status, out, err) = run(&["--check", "race"], &["Endings", "exit"]);
    assert_eq!(status, 0, "{out}{err}");
    let (status, out, err) = run(&["--check", "race"], &["Endings", "halt"]);
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("without shutting down"), "{out}{err}");
    let (status, out, err) = run(&["--check", "race"], &["Endings", "throw"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("program-failure") && out.contains("exit status 1"), "{out}{err}");
    assert!(err.contains("IllegalStateException"), "{err}");
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let (status, out, err) = run(&["--check", "race"], &["Endings", "kill"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("PREDICTED race") && out.contains("Endings.shared"), "{out}{err}");
    assert!(out.contains("SIGKILL"), "{out}{err}");
}

#[test]
fn jvms_that_a_jvm_starts_are_captured() {
    for how in ["direct", "shell"] {
        let (status, out, err) = run(&["--check", "race"], &["Parent", how]);
        assert_eq!(status, 1, "{how}\n{out}{err}");
        assert!(out.contains("race on RacyCounter.count ["), "{how}\n{out}{err}");
        // A launcher gets an argument, which it does not mention.
        assert_eq!(err.contains("Picked up"), how == "shell", "{how}\n{err}");
    }
}

#[test]
fn an_agent_that_cannot_begin_leaves_the_program_alone() {
    let bench = Bench::new();
    let unknown = bench.path("unknown");
    std::fs::write(&unknown, "wrong 1\n").unwrap();
    let unknown = unknown.to_str().unwrap();
    let options =
        [("", "needs its settings"), ("=/nonexistent", "cannot be read"), ("=mode=fast", "`fast`")];
    for (option, reason) in options.into_iter().chain([(&*format!("={unknown}"), "`wrong`")]) {
        let mut java = Command::new("java");
        java.arg(format!("-javaagent:{}{option}", agent().display())).arg("-cp").arg(classes());
        let (status, out, err) = said(&java.arg("RacyCounter").output().unwrap());
        assert_eq!(status, 0, "{out}{err}");
        assert!(err.contains("not captured") && err.contains(reason), "{err}");
    }
    // If the agent knows where to leave the reason, the report has it.
    let script = format!(
        "echo wrong 1 >>${{JAVA_TOOL_OPTIONS##*=}}; exec java -cp {} RacyCounter",
        classes().display()
    );
    let mut command = bench.foresee();
    command.args(["run", "--", "sh", "-c", &script]).env("FORESEE_JVM_AGENT", agent());
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("a JVM was not captured: ") && out.contains("`wrong`"), "{out}{err}");
    // Under a security manager that does not know the agent, nothing is captured, and that is not a success.
    let mut command = bench.foresee();
    command.args(["run", "--", "java", "-Djava.security.manager", "-cp"]).arg(classes());
    command.arg("RacyCounter").env("FORESEE_JVM_AGENT", agent());
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 3, "{out}{err}");
    assert!(err.contains("nothing was captured of java"), "{out}{err}");
    assert!(err.contains("must grant the agent's file all permissions"), "{out}{err}");
}

#[test]
fn asynchronous_capture_claims_nothing_of_other_runs() {
    let (status, out, err) = run(&["--check", "race", "--mode", "async"], &["RacyCounter"]);
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("nothing is claimed of other runs"), "{out}{err}");
}

#[test]
fn a_missing_agent_is_an_error_with_a_remedy() {
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.env("FORESEE_JVM_AGENT", "/nonexistent.jar").args(["run", "--", "java", "Main"]);
    let (status, out, err) = said(&command.output().unwrap());
    assert_eq!(status, 2, "{out}{err}");
    assert!(err.contains("./scripts/jvm-agent"), "{err}");
}

#[test]
fn a_kept_trace_gives_the_same_answer() {
    let bench = Bench::new();
    let kept = bench.path("kept.fse");
    let kept = kept.to_str().unwrap();
    let (status, out, err) = run(&["--check", "race", "--keep", kept], &["RacyCounter"]);
    assert_eq!(status, 1, "{out}{err}");
    let (status, out, err) =
        said(&bench.foresee().args(["check", kept, "--check", "race"]).output().unwrap());
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("RacyCounter.java:6"), "{out}{err}");
}

#[test]
fn every_instruction_keeps_its_meaning() {
    // The program checks itself, with each kind of field, array, call and class.
    for stacks in ["off", "on"] {
        let (status, out, err) = run(&["--check", "race", "--stacks", stacks], &["Conformance"]);
        // It also overflows a stack, and where exactly that happens is the JVM's business: if it is in a
        // hook, a step is lost, which is said.
        let is_lost = out.contains("a step was lost because the stack of its thread was full");
        assert_eq!(status, if is_lost { 3 } else { 0 }, "{stacks}: {out}{err}");
        assert!(out.contains("all as it should be"), "{stacks}: {out}{err}");
    }
}
