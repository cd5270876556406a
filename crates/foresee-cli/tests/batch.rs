//! `foresee batch`: one report on many traces, and results that are kept.

use std::fs;
use std::process::Command;

use crate::harness::{FORESEE, root, text};

const RACE: &str = "T1|w(x)|a.c:1(f)\nT2|w(x)|a.c:2(g)\n";
const CLEAN: &str =
    "T1|acq(m)|\nT1|w(x)|a.c:1(f)\nT1|rel(m)|\nT2|acq(m)|\nT2|w(x)|a.c:2(g)\nT2|rel(m)|\n";
const BAD: &str = "T1|rel(m)|a.c:9\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, content) in files {
            let path = folder.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    /// Status, standard output and error of `foresee batch WORDS`.
    fn batch(&self, words: &str) -> (i32, String, String) {
        let mut command = Command::new(FORESEE);
        command.current_dir(self.0.path()).env("FORESEE_CACHE", self.0.path().join(".cache"));
        let output = command.arg("batch").args(words.split_whitespace()).output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn a_finding_is_told_once_with_the_traces_that_show_it() {
    let folder = Folder::new(&[("t/a.std", RACE), ("t/deep/b.std", RACE), ("t/c.std", CLEAN)]);
    let (status, json, _) = folder.batch("t --check race --format json");
    assert_eq!(status, 1);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let found = report["analyses"][0]["findings"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{json}");
    let traces = serde_json::json!(["t/a.std", "t/deep/b.std"]);
    assert_eq!(found[0]["runs"]["traces"], traces);
    assert_eq!(report["trace"]["name"], "3 traces");
    let (_, told, _) = folder.batch("t --check race");
    assert!(told.contains("traces: 2 of 3 show it, t/a.std, t/deep/b.std"), "{told}");
    for format in ["sarif", "junit"] {
        let (status, told, _) = folder.batch(&format!("t --check race --format {format}"));
        assert_eq!(status, 1);
        assert!(told.contains("t/deep/b.std"), "{told}");
    }
}

#[test]
fn a_trace_that_cannot_be_read_makes_the_batch_incomplete() {
    let folder = Folder::new(&[("t/bad.std", BAD), ("t/clean.std", CLEAN), ("t/race.std", RACE)]);
    let (status, told, error) = folder.batch("t/bad.std t/clean.std --check race");
    assert_eq!(status, 3, "{told}");
    assert!(told.contains("batch t/bad.std (race): in 1 trace: not answered"), "{told}");
    assert!(error.contains("1 without an answer"), "{error}");
    let (status, told, _) = folder.batch("t --check race");
    assert_eq!(status, 1, "what was found in the others stays: {told}");
    assert!(told.contains("not answered"), "{told}");
    assert_eq!(folder.batch("t/clean.std --check race").0, 0);
}

#[test]
fn what_was_done_is_not_done_again() {
    let folder = Folder::new(&[("a.std", RACE), ("b.std", CLEAN)]);
    let (_, first, error) = folder.batch("a.std b.std --check race");
    assert!(error.contains("2 jobs, 0 of them done before"), "{error}");
    let (status, again, error) = folder.batch("a.std b.std --check race");
    assert!(error.contains("2 jobs, 2 of them done before"), "{error}");
    assert_eq!((status, &again), (1, &first));
    fs::write(folder.0.path().join("b.std"), RACE.replace("w(x)", "w(y)")).unwrap();
    let (_, _, error) = folder.batch("a.std b.std --check race");
    assert!(error.contains("2 jobs, 1 of them done before"), "{error}");
    let (_, _, error) = folder.batch("a.std b.std --check race --look-back 7");
    assert!(error.contains("2 jobs, 0 of them done before"), "{error}");
    let (_, _, error) = folder.batch("a.std b.std --check race --no-cache");
    assert!(error.contains("2 jobs, 0 of them done before"), "{error}");
}

#[test]
fn shards_do_everything_together() {
    let names = ["a.std", "b.std", "c.std", "d.std", "e.std"];
    // Jobs are alike if their traces are, so these differ.
    let files: Vec<(&str, String)> =
        names.iter().map(|name| (*name, RACE.replace("w(x)", &format!("w({name})")))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    let folder = Folder::new(&files);
    for (shard, jobs) in [("1/2", 3), ("2/2", 2)] {
        let (status, _, error) = folder.batch(&format!(". --check race --shard {shard}"));
        assert_eq!(status, 1);
        assert!(error.contains(&format!("{jobs} jobs, 0 of them done before")), "{error}");
    }
    let (_, _, error) = folder.batch(". --check race");
    assert!(error.contains("5 jobs, 5 of them done before"), "{error}");
    let (status, _, error) = folder.batch(". --check race --shard 7/9");
    assert_eq!(status, 2);
    assert!(error.contains("shard 7/9 has no job: there are only 5"), "{error}");
}

#[test]
fn a_manifest_says_what_goes_with_what() {
    let manifest = "[[batch]]\ntraces = [\"t/*.std\"]\nchecks = [\"race\"]\n\n\
                    [[batch]]\ntraces = [\"u/c.std\"]\nspecs = [\"p.spec\"]\n";
    let folder = Folder::new(&[
        ("m/t/a.std", RACE),
        ("m/t/b.std", CLEAN),
        ("m/u/c.std", "T1|w(x)=1|\nT2|w(x)=2|\n"),
        ("m/p.spec", "property low: x <= 1\n"),
        ("m/batch.toml", manifest),
        ("m/wrong.toml", "[[batch]]\ntrace = [\"t\"]\n"),
    ]);
    let (status, told, error) = folder.batch("--manifest m/batch.toml");
    assert_eq!(status, 1, "{error}");
    assert!(error.contains("3 jobs"), "{error}");
    assert!(told.contains("low") && told.contains("race"), "{told}");
    let (_, told, error) = folder.batch("--manifest m/batch.toml m/t/a.std --check deadlock");
    assert!(error.contains("5 jobs"), "{error}");
    assert!(told.contains("traces: 1 of 3 show it; this is from m/t/a.std"), "{told}");
    let (status, _, error) = folder.batch("--manifest m/wrong.toml");
    assert_eq!(status, 2);
    assert!(error.contains("unknown field `trace`") && error.contains("wrong.toml"), "{error}");
}

#[test]
fn a_trace_that_is_named_often_counts_once() {
    let folder = Folder::new(&[
        ("t/a.std", RACE),
        ("t/b.std", "T1|w(y)=1|\n"),
        (
            "often.toml",
            "[[batch]]\ntraces = [\"t/a.std\", \"./t/a.std\", \"t/*.std\"]\nchecks = [\"race\"]\n\
                        [[batch]]\ntraces = [\"t\"]\nchecks = [\"race\"]\n",
        ),
    ]);
    let (status, once, _) = folder.batch("t --check race");
    assert_eq!(status, 1);
    assert!(once.contains("1 of 2 show it"), "{once}");
    let (_, often, _) = folder.batch("t ./t/a.std t/../t/a.std t/b.std --check race");
    assert!(often.contains("2 of 3 show it"), "by another way it is another one: {often}");
    let (_, often, _) = folder.batch("t ./t/a.std t/b.std --check race");
    assert_eq!(often, once);
    let (_, often, _) = folder.batch("--manifest often.toml");
    assert_eq!(often, once);
}

#[test]
fn bad_requests_are_refused() {
    let folder = Folder::new(&[
        ("a.std", RACE),
        ("bad.spec", "property p: ("),
        ("empty/x.txt", ""),
        ("specs/fine.spec", "property p: x <= 9\n"),
        ("none.toml", "[[batch]]\ntraces = []\n"),
        ("short.toml", "[[batch]]\ntraces = [\"a.std\"]\n[[batch]]\ntraces = [\"empty\"]\n"),
    ]);
    for (words, part) in [
        ("missing.std", "there is no file or folder missing.std"),
        ("*.none", "no file matches *.none"),
        ("empty", "empty has neither a trace"),
        // Part of a batch that has nothing to check is a mistake, too.
        ("a.std empty", "empty has neither a trace"),
        ("specs", "there are no traces to check in specs"),
        ("specs --manifest short.toml", "there are no traces to check in specs"),
        ("--manifest short.toml", "empty has neither a trace"),
        ("a.std --manifest none.toml", "no traces to check in a group of the manifest"),
        ("a.std --check nonsense", "there is no check named `nonsense`"),
        ("a.std --check monitorability", "needs a specification"),
        ("a.std bad.spec", "bad.spec"),
        ("a.std --shard 3/2", "a shard is K/N"),
        ("a.std --input-format nonsense", "there is no trace format"),
        ("a.std --lattice x.svg --spec bad.spec", "--lattice draws one trace"),
    ] {
        let (status, _, error) = folder.batch(words);
        assert_eq!(status, 2, "{words}: {error}");
        assert!(error.contains(part), "{words}: {error}");
    }
}

#[test]
fn one_trace_in_a_batch_gets_the_status_of_a_check() {
    let root = root();
    let mut tried = 0;
    for example in ["landing/landing", "water-level/water", "xyz/xyz"] {
        let (trace, spec) = (format!("{example}.std"), format!("{example}.spec"));
        let paths = [&trace, &spec].map(|name| root.join("examples").join(name));
        if paths.iter().any(|path| !path.exists()) {
            continue;
        }
        tried += 1;
        let [trace, spec] = paths.map(|path| path.display().to_string());
        let folder = Folder::new(&[]);
        let (status, _, _) = folder.batch(&format!("{trace} {spec}"));
        let check =
            Command::new(FORESEE).args(["check", &trace, "--spec", &spec]).output().unwrap();
        assert_eq!(Some(status), check.status.code(), "{trace}");
    }
    assert!(tried > 0);
}

/// Whoever only checks traces does not compile what queues need.
#[cfg(not(feature = "nats"))]
#[test]
fn the_default_build_has_no_asynchronous_runtime() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What a user builds, whatever these tests are built with.
    command.env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
    command.current_dir(root()).args([
        "tree",
        "-p",
        "foresee-cli",
        "-e",
        "normal,build",
        "--prefix",
        "none",
    ]);
    let tree = command.output().unwrap();
    assert!(tree.status.success(), "{}", text(&tree.stderr));
    let tree = text(&tree.stdout);
    assert!(tree.contains("foresee-batch"), "{tree}");
    for unwanted in ["tokio", "async-nats", "futures", "rustls", "foresee-nats"] {
        assert!(!tree.lines().any(|line| line.starts_with(unwanted)), "{unwanted} is compiled in");
    }
}

#[cfg(not(feature = "nats"))]
#[test]
fn queues_are_missed_with_a_remedy() {
    let folder = Folder::new(&[("a.std", RACE)]);
    let (status, _, error) = folder.batch("a.std --queue nats://localhost");
    assert_eq!(status, 2);
    assert!(error.contains("--features nats"), "{error}");
    let worker = Command::new(FORESEE).args(["worker", "--queue", "nats://localhost"]).output();
    assert_eq!(worker.unwrap().status.code(), Some(2));
}

/// `scripts/test` runs these with the feature; what a queue promises is tested in `foresee-nats`.
#[cfg(feature = "nats")]
mod queue {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Stdio};
    use std::time::Duration;

    use super::*;

    struct Process(Child);

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn workers_give_the_same_report() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = Folder::new(&[
            ("t/a.std", RACE),
            ("t/b.std", CLEAN),
            ("t/bad.std", BAD),
            ("t/p.spec", "property p: x <= 1 || true\n"),
        ]);
        let mut server = Command::new("/usr/sbin/nats-server");
        server.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]);
        server.arg(folder.0.path().join(".store")).stderr(Stdio::null());
        let _server = Process(server.spawn().expect("apt-get install nats-server"));
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("nats://127.0.0.1:{port}");
        let mut worker = Command::new(FORESEE);
        worker.args(["worker", "--queue", &url, "--jobs", "2", "--cache"]);
        worker.arg(folder.0.path().join(".fetched")).stderr(Stdio::null());
        let _worker = Process(worker.spawn().unwrap());
        let asked = "t --check race --no-cache --format json";
        let here = folder.batch(asked);
        let there = folder.batch(&format!("{asked} --queue {url} --patience 20"));
        assert_eq!(here.0, 1, "{}", here.2);
        assert_eq!(here, there);
        let (status, _, error) = folder.batch(&format!("{asked} --queue {url} --queue-name a.b"));
        assert_eq!(status, 2);
        assert!(error.contains("the name of a queue"), "{error}");
        let (status, _, error) =
            folder.batch(&format!("{asked} --queue nats://127.0.0.1:9 --patience 1"));
        assert_eq!(status, 2);
        assert!(error.contains("cannot reach nats://127.0.0.1:9"), "{error}");
    }
}
