//! Regions and objects of real programs, captured and checked.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// How often each program is run.
const RUNS: usize = 5;

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path).canonicalize().unwrap()
}

/// Runs a command in a folder: its status, and what it prints.
fn foresee(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foresee"));
    command.current_dir(folder).args(words);
    // The same as for all other tests: the runtime in it is the same.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache");
    command.env("FORESEE_CACHE", cache).env_remove("FORESEE_CC").env_remove("FORESEE_CXX");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Builds a program in a folder of its own.
fn built(compiler: &str, source: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    let words = [compiler, "-Wall", "-Werror", "-g", "-o", "program", source.to_str().unwrap()];
    let (status, text) = foresee(folder.path(), &words);
    assert_eq!(status, Some(0), "{text}");
    folder
}

/// Runs it again and again; what is printed has all of these words each time.
fn always(folder: &Path, flags: &[&str], status: i32, words: &[&str]) {
    for run in 0..RUNS {
        let command = [&["run"], flags, &["--", "./program"]].concat();
        let (code, text) = foresee(folder, &command);
        assert_eq!(code, Some(status), "run {run}:\n{text}");
        for word in words {
            assert!(text.contains(word), "run {run}, {word}:\n{text}");
        }
    }
}

#[test]
fn a_block_that_is_meant_to_be_atomic() {
    let folder = built("cc", &example("bank-atomic/transfer.c"));
    let words = [
        "PREDICTED atomicity",
        "the region `transfer`",
        "alice.balance",
        "transfer.c:18(set)",
        "0 and 0",
    ];
    always(folder.path(), &[], 1, &words);
}

#[test]
fn memory_that_another_thread_frees() {
    let folder = built("cc", &example("use-after-free/session.c"));
    let words = ["PREDICTED lifetime", "session.c:44(main))#1 after T2 has freed it", "served"];
    always(folder.path(), &["--check", "lifetime"], 1, &words);
    // It is found without being asked for. Nothing races, and no thread waits forever.
    always(folder.path(), &[], 1, &words);
    let (status, text) =
        foresee(folder.path(), &["run", "--check", "race,deadlock", "--", "./program"]);
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn memory_that_is_freed_after_a_join_is_fine() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("joined.c");
    let text = fs::read_to_string(example("use-after-free/session.c")).unwrap();
    // The owner waits for the worker before it begins.
    let joined = text.replace(
        "    pthread_create(&owner, NULL, end, session);\n    pthread_join(worker, NULL);",
        "    pthread_join(worker, NULL);\n    pthread_create(&owner, NULL, end, session);",
    );
    assert_ne!(joined, text);
    fs::write(&source, joined).unwrap();
    let folder = built("cc", &source);
    let words = ["no use of an object out of order is possible", "reads what it read in this run"];
    // The check's former name is still accepted.
    always(folder.path(), &["--check", "order"], 0, &words);
}

const METHODS: &str = r#"
#include <mutex>
#include <thread>
#include <unistd.h>
#include <foresee.h>

struct Account {
    std::mutex lock;
    int balance = 100;

    int get() { std::lock_guard<std::mutex> guard(lock); return balance; }
    void set(int now) { std::lock_guard<std::mutex> guard(lock); balance = now; }
    __attribute__((noinline)) void deposit(int amount);
    __attribute__((noinline)) void withdraw(int amount);
};

void Account::deposit(int amount) { set(get() + amount); }

void Account::withdraw(int amount) {
    FORESEE_ATOMIC("withdrawal");
    if (get() < amount) return;
    set(get() - amount);
}

static Account account;

int main(int count, char **) {
    std::thread customer([count] { count > 1 ? account.withdraw(10) : account.deposit(10); });
    std::thread bank([] { usleep(20000); account.set(500); });
    customer.join();
    bank.join();
    return 0;
}
"#;

#[test]
fn methods_are_regions_by_name_and_findings_can_be_suppressed() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("account.cc");
    fs::write(&source, METHODS).unwrap();
    let program = built("c++", &source);
    let folder = program.path();
    // Nothing says that a deposit is atomic.
    let (_, text) = foresee(folder, &["run", "--check", "atomicity", "--", "./program"]);
    assert!(text.contains("no region is declared to be atomic"), "{text}");
    let words = ["PREDICTED atomicity", "the region `Account::deposit`", "account.balance"];
    always(folder, &["--check", "atomicity", "--region", "Account::*"], 1, &words);
    // A specification says the same, and asks for the check.
    fs::write(folder.join("bank.spec"), "atomic Account::*\n").unwrap();
    let (status, text) = foresee(folder, &["run", "--spec", "bank.spec", "--", "./program"]);
    assert!(status == Some(1) && words.iter().all(|word| text.contains(word)), "{text}");
    // The settings are found from a folder below.
    fs::write(folder.join("foresee.toml"), "[atomicity]\nregions = [\"deposit\"]\n").unwrap();
    fs::create_dir(folder.join("below")).unwrap();
    let below = folder.join("below");
    let (status, text) = foresee(&below, &["run", "--check", "atomicity", "--", "../program"]);
    assert!(status == Some(1) && text.contains("Account::deposit"), "{text}");
    let with_suppressions = "suppressions = \"my.supp\"\n[atomicity]\nregions = [\"deposit\"]\n";
    fs::write(folder.join("foresee.toml"), with_suppressions).unwrap();
    fs::write(folder.join("my.supp"), "atomicity:account.cc\nrace:nothing\n").unwrap();
    let (status, text) = foresee(&below, &["run", "--check", "atomicity", "--", "../program"]);
    assert!(status != Some(1) && text.contains(" suppressed"), "{text}");
    assert!(text.contains("race:nothing") && text.contains("unused"), "{text}");
}

#[test]
fn a_block_of_a_cxx_program_is_a_region_however_it_is_left() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("account.cc");
    fs::write(&source, METHODS).unwrap();
    let program = built("c++", &source);
    let words = ["run", "--check", "atomicity", "--", "./program", "withdraw"];
    let (status, text) = foresee(program.path(), &words);
    assert!(status == Some(1) && text.contains("the region `withdrawal`"), "{text}");
}
