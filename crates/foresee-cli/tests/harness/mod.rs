//! A folder in which tests build programs for capture and run them.
#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

pub(crate) const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");

/// A folder to build and run in, with a cache of its own.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn foresee(&self) -> Command {
        let mut command = Command::new(FORESEE);
        command.current_dir(self.dir.path());
        command.env("FORESEE_CACHE", cache());
        command.env_remove("FORESEE_CC").env_remove("FORESEE_CXX");
        command
    }

    /// Builds with `foresee cc WORDS`.
    pub(crate) fn build(&self, words: &str) -> Output {
        self.foresee().args(words.split_whitespace()).output().unwrap()
    }

    pub(crate) fn built(&self, words: &str) {
        let output = self.build(words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
    }

    /// Runs `foresee run WORDS`; status, standard output and error.
    pub(crate) fn run(&self, words: &str) -> (i32, String, String) {
        let output = self.foresee().arg("run").args(words.split_whitespace()).output().unwrap();
        said(&output)
    }

    /// Runs a script of the shell under `foresee run WORDS`.
    pub(crate) fn run_script(&self, words: &str, script: &str) -> (i32, String, String) {
        let mut command = self.foresee();
        command.arg("run").args(words.split_whitespace()).args(["--", "sh", "-c", script]);
        said(&command.output().unwrap())
    }
}

/// Status, standard output and error.
pub(crate) fn said(output: &Output) -> (i32, String, String) {
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// One cache for all tests: the runtime in it is the same.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Two threads, one after the other.
pub(crate) const RACE: &str = "#include <pthread.h>\nint shared, done;\n\
    static void *work(void *p) { shared = 1; return p; }\n\
    int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);\n\
    done = 1; return shared - 1; }\n";

/// `done` comes last whatever happens.
pub(crate) const ORDERED: &str = "property ordered: done == 1 -> shared == 1\n";

/// A deadlock that depends on what `done` is read as.
const CONDITIONAL: &str = "T1|acq(l)|a.c:2(put)\nT1|acq(m)|a.c:3(put)\nT1|rel(m)|\nT1|rel(l)|\n\
    T1|vw(done)=1|a.c:4(put)\nT2|vr(done)=1|a.c:8(get)\n\
    T2|acq(m)|a.c:9(get)\nT2|acq(l)|a.c:10(get)\nT2|rel(l)|\nT2|rel(m)|\n";

/// Arguments of `foresee check`, from the root of the project, that yield findings of every kind. Traces
/// that exist nowhere else are written to the folder.
pub(crate) fn every_kind(folder: &Path) -> Vec<String> {
    let conditional = folder.join("conditional.std");
    std::fs::write(&conditional, CONDITIONAL).unwrap();
    let conditional = format!("{} --check deadlock", conditional.display());
    let cmd = "crates/foresee-cli/tests/cmd";
    vec![
        "examples/landing/landing.std --spec examples/landing/landing.spec".to_owned(),
        "examples/dbplayer/play.std --spec examples/dbplayer/play.spec".to_owned(),
        "examples/locked-log/close.std --spec examples/locked-log/close.spec".to_owned(),
        "examples/locked-log/use.std --spec examples/locked-log/use.spec".to_owned(),
        "examples/races/hidden.std --check race".to_owned(),
        "examples/deadlocks/five.std --check deadlock".to_owned(),
        "examples/deadlocks/lost.std --check deadlock".to_owned(),
        "examples/deadlocks/nested.std --check deadlock".to_owned(),
        "examples/lock-swap/swap.std --check nondeterminism".to_owned(),
        "testdata/monitorability/account-failed.std --check monitorability \
         --spec testdata/monitorability/exclusion.spec"
            .to_owned(),
        format!("{cmd}/regions.in/deposit.std --check atomicity"),
        format!("{cmd}/regions.in/session.std --check lifetime"),
        format!("{cmd}/regions.in/split.std --infer-regions"),
        format!("{cmd}/verdicts.in/observed.std --check atomicity"),
        format!("{cmd}/verdicts.in/escape.std --check race"),
        conditional,
    ]
}
