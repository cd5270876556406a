//! The GitHub action: its steps are run as they stand in `action.yml`, with the variables that it gives them.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, FORESEE, cache, root, said};

/// The scripts of the steps, in their order. Those of several lines are indented below `run: |`.
fn scripts() -> Vec<String> {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let mut scripts = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(script) = line.trim_start().strip_prefix("run: ") else { continue };
        if script != "|" {
            scripts.push(script.to_owned());
            continue;
        }
        let mut script = String::new();
        let indent = lines.peek().map_or(0, |line| line.len() - line.trim_start().len());
        while let Some(line) = lines.next_if(|line| line.starts_with(&" ".repeat(indent))) {
            script += &line[indent..];
            script.push('\n');
        }
        scripts.push(script);
    }
    scripts
}

/// A step as a runner starts it, with the foresee of a folder in the path.
fn step(bench: &Bench, foresee: &Path, script: &str, command: &str) -> (i32, String, String) {
    let mut path = foresee.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    bash.current_dir(bench.path(".")).env("PATH", path).env("FORESEE_CACHE", cache());
    bash.env_remove("FORESEE_CC").env_remove("FORESEE_CXX").env_remove("FORESEE_JVM_AGENT");
    bash.envs([("CC", "foresee cc"), ("CXX", "foresee c++")]);
    bash.envs([("BUILD", "$CC -o program program.c"), ("COMMAND", command)]);
    bash.envs([("ARGUMENTS", "--check race --runs 2"), ("GITHUB_OUTPUT", "outputs")]);
    bash.envs([("SARIF", "found.sarif"), ("HTML", "found.html")]);
    bash.env("GITHUB_ACTION_PATH", root());
    said(&bash.output().unwrap())
}

#[test]
fn the_action_builds_runs_and_reports() {
    let scripts = scripts();
    let [install, _, build, run] = &scripts[..] else { panic!("{scripts:?}") };
    assert!(install.starts_with("cargo install"), "{install}");
    let bench = Bench::new();
    let program = "#include <pthread.h>\nint count;\nstatic void *add(void *p) { count++; return p; }\n\
        int main(void) { pthread_t a, b; pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
        pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";
    bench.write("program.c", program);
    let step =
        |script: &str| step(&bench, Path::new(FORESEE).parent().unwrap(), script, "./program");
    let (status, out, err) = step(build);
    assert_eq!(status, 0, "{out}{err}");
    let (status, out, err) = step(run);
    assert_eq!(status, 1, "{out}{err}");
    assert_eq!(fs::read_to_string(bench.path("outputs")).unwrap(), "status=1\n");
    let sarif = fs::read_to_string(bench.path("found.sarif")).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1, "{sarif}");
    assert!(fs::read_to_string(bench.path("found.html")).unwrap().contains("<html"));
}

/// A foresee that `cargo install` put somewhere finds the agent that the action puts beside it.
#[test]
fn the_action_brings_the_agent_for_java() {
    crate::jvm::classes();
    let scripts = scripts();
    let [_, agent, _, run] = &scripts[..] else { panic!("{scripts:?}") };
    let bench = Bench::new();
    let source = "public class Count { static int count; public static void main(String[] a) throws Exception {\n\
        Thread one = new Thread(() -> count++), two = new Thread(() -> count++);\n\
        one.start(); Thread.sleep(100); two.start(); one.join(); two.join(); } }\n";
    bench.write("Count.java", source);
    let installed = bench.path("home/bin");
    fs::create_dir_all(&installed).unwrap();
    fs::copy(FORESEE, installed.join("foresee")).unwrap();
    let step = |script: &str| step(&bench, &installed, script, "java -cp . Count");
    for script in [agent, "javac -g Count.java"] {
        let (status, out, err) = step(script);
        assert_eq!(status, 0, "{out}{err}");
    }
    let (status, out, err) = step(run);
    assert_eq!(status, 1, "{out}{err}");
    let sarif = fs::read_to_string(bench.path("found.sarif")).unwrap();
    assert!(sarif.contains("Count.count"), "{sarif}");
}
