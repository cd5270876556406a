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

#[test]
fn the_action_builds_runs_and_reports() {
    let scripts = scripts();
    let [install, build, run] = &scripts[..] else { panic!("{scripts:?}") };
    assert!(install.starts_with("cargo install"), "{install}");
    let bench = Bench::new();
    let program = "#include <pthread.h>\nint count;\nstatic void *add(void *p) { count++; return p; }\n\
        int main(void) { pthread_t a, b; pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
        pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";
    bench.write("program.c", program);
    let step = |script: &str| {
        let mut path = Path::new(FORESEE).parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        bash.current_dir(bench.path(".")).env("PATH", path).env("FORESEE_CACHE", cache());
        bash.env_remove("FORESEE_CC").env_remove("FORESEE_CXX");
        bash.envs([("CC", "foresee cc"), ("CXX", "foresee c++")]);
        bash.envs([("BUILD", "$CC -o program program.c"), ("COMMAND", "./program")]);
        bash.envs([("ARGUMENTS", "--check race --runs 2"), ("GITHUB_OUTPUT", "outputs")]);
        bash.envs([("SARIF", "found.sarif"), ("HTML", "found.html")]);
        said(&bash.output().unwrap())
    };
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
