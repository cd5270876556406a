//! Programs that tests run: found, installed where that can be done, or missed loudly.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Compilers for C and C++: each kind that programs are captured with.
pub const COMPILERS: [[&str; 2]; 2] = [["gcc", "g++"], ["clang-19", "clang++-19"]];

/// [`COMPILERS`], present.
///
/// # Panics
/// If one is missing and cannot be installed: a test that leaves out half of what it is for must
/// not pass.
pub fn compilers() -> [[&'static str; 2]; 2] {
    need("g++", "g++");
    need("clang-19", "clang-19");
    COMPILERS
}

/// Sees to it that a command is there, by installing Debian's package if it has to.
///
/// # Panics
/// If it is still missing then.
pub fn need(command: &str, package: &str) {
    need_that(command, package, || runs(command));
}

/// The same for a file, a library for example.
///
/// # Panics
/// If it is still missing then.
pub fn need_file(path: &str, package: &str) {
    need_that(path, package, || Path::new(path).exists());
}

fn need_that(what: &str, package: &str, is_there: impl Fn() -> bool) {
    // One test installs, the others wait and find it there.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let installing = INSTALLING.lock();
    if !is_there() {
        apt(&["update", "-qq"]);
        apt(&["install", "-qqy", "-o", "DPkg::Lock::Timeout=300", package]);
    }
    drop(installing);
    assert!(
        is_there(),
        "`{what}` is missing and could not be installed: this test needs it (Debian: apt-get install {package})"
    );
}

fn runs(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok()
}

fn apt(words: &[&str]) {
    // Whether it helped shows when the command is looked for again.
    let _ = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
}
