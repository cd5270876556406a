//! The command lines of the pages are run: each block of `sh` on a page, line by line, in a folder that has what the page speaks of.
//! The blocks of `console` have tests that compare what is printed (`tests/golden.rs`, `tests/tutorial.rs`).

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{FORESEE, cache, root, text};

/// Lines that are not run here: the page, how the line begins, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "./scripts/example", "tests/capture.rs runs the examples"),
    ("README.md", "./scripts/test", "runs this test"),
    ("docs/explore.md", "foresee worker --queue", "needs a server; tests/queues.rs starts one"),
    ("docs/explore.md", "foresee explore --queue", "needs a server; tests/queues.rs starts one"),
    ("docs/batch.md", "nats-server", "needs a server; tests/batch.rs starts one"),
    ("docs/batch.md", "foresee worker --queue", "needs a server; tests/batch.rs starts one"),
    (
        "docs/batch.md",
        "foresee batch runs/ specs/ --queue",
        "needs a server; tests/batch.rs starts one",
    ),
    ("docs/capture/jvm.md", "", "needs a JDK and Maven; tests/jvm.rs and tests/jvm_uses.rs"),
    ("docs/editors.md", "", "needs Node and VS Code"),
    (
        "docs/library.md",
        "",
        "makes a project; the code is tested by the documentation of the crate",
    ),
    ("docs/observe.md", "", "goes on until it is interrupted; tests/observe.rs"),
    ("docs/operations.md", "", "needs a server; tests/batch.rs starts one"),
    (
        "docs/replay.md",
        "foresee replay schedules/1.schedule --debug",
        "needs gdb and a person; tests/replay_debug.rs",
    ),
    ("docs/tutorial.md", "", "tests/tutorial.rs follows it"),
    ("docs/tutorial-java.md", "", "tests/tutorial.rs follows it"),
    ("docs/tutorial-rust.md", "", "tests/tutorial.rs follows it"),
];

/// A counter that two threads change, at times that never meet, with an assertion that holds in that order alone.
const PROGRAM: &str = "#include <assert.h>\n#include <pthread.h>\nint counter, seen;\n\
    static void *add(void *p) { counter = counter + 1; return p; }\n\
    static void *look(void *p) { seen = counter; return p; }\n\
    int main(void) { pthread_t a, b; pthread_create(&a, 0, add, 0); pthread_create(&b, 0, look, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); assert(counter == 1); return 0; }\n";

/// Fails in some schedules.
const BANK: &str = "#include <assert.h>\n#include <pthread.h>\nint balance;\n\
    static void *pay(void *p) { int now = balance; balance = now + 10; return p; }\n\
    int main(void) { pthread_t a, b; pthread_create(&a, 0, pay, 0); pthread_create(&b, 0, pay, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); assert(balance == 20); return 0; }\n";

const MAKEFILE: &str = "BUILD ?= build\n\
    all: program $(BUILD)/tests/threads\n\
    program: program.c\n\t$(CC) -g -pthread -o $@ $<\n\
    $(BUILD)/tests/threads: program.c\n\tmkdir -p $(BUILD)/tests && $(CC) -g -pthread -o $@ $<\n";

/// A folder with what the pages speak of.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        for part in ["examples", "testdata", "specs"] {
            std::os::unix::fs::symlink(root().join(part), place.path(part)).unwrap();
        }
        place.write("program.c", PROGRAM);
        place.write("Makefile", MAKEFILE);
        place.write("my.spec", "property low: counter <= 1\n");
        place.write("bank.c", BANK);
        place.write("bank.spec", "property positive: balance >= 0\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// Runs a line of the shell; its status and everything that it prints.
    fn run(&self, line: &str) -> (i32, String) {
        let bin = Path::new(FORESEE).parent().unwrap().to_owned();
        let others = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&others)));
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.env("PATH", path.unwrap()).env("FORESEE_CACHE", cache());
        let output = shell.output().unwrap();
        let printed = text(&output.stdout) + &text(&output.stderr);
        (output.status.code().unwrap_or(-1), printed)
    }

    /// What must be there before the first line of a page.
    fn prepare(&self, page: &str) {
        let run = |line: &str| {
            let (status, printed) = self.run(line);
            assert!(status == 0 || status == 1, "{line}: {status}\n{printed}");
        };
        match page {
            "docs/replay.md" | "docs/reports.md" => run("make program CC='foresee cc'"),
            "docs/formats/report.md" | "docs/formats/tools.md" => {
                run("make program CC='foresee cc' && foresee run --keep run.fse -- ./program");
            }
            "docs/ci.md" => {
                run("make program CC='foresee cc' && mkdir tests && cp program tests/shop");
                run("foresee run --schedules schedules -- tests/shop");
                fs::rename(
                    self.path("schedules/1.schedule"),
                    self.path("tests/closed-shop.schedule"),
                )
                .unwrap();
            }
            "docs/cookbook.md" => {
                let page = fs::read_to_string(root().join(page)).unwrap();
                let spec = page.split("```spec shutdown.spec\n").nth(1).unwrap();
                self.write("shutdown.spec", spec.split("```").next().unwrap());
            }
            "docs/batch.md" => {
                fs::remove_file(self.path("specs")).unwrap();
                let landing = root().join("examples/landing");
                let trace = fs::read_to_string(landing.join("landing.std")).unwrap();
                for i in 1..=5 {
                    let trace = format!("{}\nT1|r(other)|x.c:{i}\n", trace.trim_end());
                    self.write(&format!("runs/{i}.std"), &trace);
                }
                let spec = fs::read_to_string(landing.join("landing.spec")).unwrap();
                self.write("specs/landing.spec", &spec);
                self.write(
                    "fleet.toml",
                    "[[batch]]\ntraces = [\"runs/*.std\"]\nspecs = [\"specs/landing.spec\"]\n",
                );
            }
            _ => {}
        }
    }
}

/// The lines of a page's blocks of `sh`, and of those without a language that call foresee; without their comments.
fn command_lines(page: &str) -> Vec<String> {
    let (mut lines, mut fence) = (Vec::new(), None);
    for line in page.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(info.trim().to_owned()) };
            continue;
        }
        let is_wanted = match fence.as_deref() {
            Some("sh") => true,
            Some("") => line.starts_with("foresee "),
            _ => false,
        };
        let command = line.split("  #").next().unwrap().trim();
        if is_wanted && !command.is_empty() && !command.starts_with('#') {
            lines.push(command.to_owned());
        }
    }
    lines
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_command_line_of_the_pages_can_be_run() {
    let mut found = vec![root().join("README.md")];
    pages(&root().join("docs"), &mut found);
    found.sort();
    let (mut ran, mut used) = (0, vec![false; NOT_RUN.len()]);
    let mut wrong = Vec::new();
    for file in found {
        let page = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let lines = command_lines(&fs::read_to_string(&file).unwrap());
        let is_left_out = |line: &String| {
            let reasons = NOT_RUN.iter().enumerate();
            let mut reasons =
                reasons.filter(|(_, (of, start, _))| *of == page && line.starts_with(start));
            reasons.next().map(|(i, _)| i)
        };
        let mut place = None;
        for line in &lines {
            if let Some(reason) = is_left_out(line) {
                used[reason] = true;
                continue;
            }
            let place = place.get_or_insert_with(|| {
                let place = Place::new();
                place.prepare(&page);
                place
            });
            // What others do with the output is theirs.
            let (status, printed) = place.run(line.split(" | jq ").next().unwrap());
            ran += 1;
            if !matches!(status, 0 | 1 | 3) || printed.contains("not found") {
                wrong.push(format!("{page}: {line}\nexit status {status}\n{printed}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unused = NOT_RUN
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|((page, start, _), _)| format!("{page} {start}"));
    assert_eq!(
        unused.collect::<Vec<_>>(),
        Vec::<String>::new(),
        "these are no longer on the pages"
    );
    assert!(ran >= 20, "only {ran} lines");
}
