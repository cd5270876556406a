//! Programs that tests run. A test without its tool fails and says what is missing; `scripts/test` installs them all.

use std::path::Path;
use std::process::Command;

/// Compilers for C and C++: each kind that programs are captured with.
pub const COMPILERS: [[&str; 2]; 2] = [["gcc", "g++"], ["clang-19", "clang++-19"]];

/// [`COMPILERS`], present.
///
/// # Panics
/// If one is missing: a test that leaves out half of what it is for must not pass.
pub fn compilers() -> [[&'static str; 2]; 2] {
    need("g++", "g++");
    need("clang-19", "clang-19");
    COMPILERS
}

/// Requires a command.
///
/// # Panics
/// If it is missing, with the name of Debian's package.
pub fn need(command: &str, package: &str) {
    let runs = Command::new(command).arg("--version").output().is_ok();
    assert!(runs, "{}", missing(command, package));
}

/// The same for a file, a library for example.
///
/// # Panics
/// If it is missing, with the name of Debian's package.
pub fn need_file(path: &str, package: &str) {
    assert!(Path::new(path).exists(), "{}", missing(path, package));
}

fn missing(what: &str, package: &str) -> String {
    format!(
        "`{what}` is missing, and this test needs it: run scripts/test as root, which installs what \
         tests need, or install it yourself (Debian: apt-get install {package})"
    )
}
