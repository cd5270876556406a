//! Builds small programs for capture, runs them and reads their logs.
#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use foresee_capture::compiler::{self, Kit, KitError, Language};
use foresee_capture::log::{self, Block, Log, Names, Pc, Piece, Stats};
use foresee_capture::runtime;
use foresee_trace::{Mode, Op, Trace, Validated};
use object::{Object, ObjectSymbol};

/// A directory with the runtime and the header.
pub(crate) struct Workshop {
    pub(crate) dir: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Workshop {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("foresee_rt.o"), runtime::OBJECT).unwrap();
        std::fs::write(dir.path().join("libforesee_rt.so"), runtime::LIBRARY).unwrap();
        std::fs::write(dir.path().join("foresee.h"), runtime::HEADER).unwrap();
        Workshop { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles and links a program as `foresee cc` does.
    pub(crate) fn build(&self, compiler: [&str; 2], source: &Path, flags: &[&str]) -> PathBuf {
        let is_cpp = source.extension().is_some_and(|e| e == "cpp");
        let compiler = compiler[usize::from(is_cpp)];
        let language = if is_cpp { Language::Cpp } else { Language::C };
        let name = source.file_stem().unwrap().to_string_lossy();
        let program = self.path(&format!("{name}.{compiler}{}", flags.concat()));
        let mut arguments: Vec<OsString> =
            ["--", compiler, "-O1", "-pthread"].map(Into::into).to_vec();
        arguments.extend(flags.iter().map(Into::into));
        arguments.extend([source.into(), "-o".into(), program.clone().into()]);
        run(&mut compiler::command(language, &arguments, None, || self.kit()).unwrap());
        program
    }

    /// What `foresee cc` needs.
    pub(crate) fn kit(&self) -> Result<Kit, KitError> {
        let assembler = Path::new(env!("CARGO_BIN_EXE_foresee-assembler"));
        Kit::install_under(self.dir.path(), assembler)
    }

    /// Runs a program under capture; the directory of its logs is made for it.
    pub(crate) fn capture(&self, program: &Path, settings: &[(&str, &str)]) -> (Output, PathBuf) {
        let logs = tempfile::tempdir_in(self.dir.path()).unwrap().keep();
        // No test waits forever.
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60"]).arg(program).env("FORESEE_CAPTURE", &logs);
        command.envs(settings.iter().copied());
        (command.output().unwrap(), logs)
    }
}

fn run(command: &mut Command) {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Names from the table of symbols, which is enough for programs that use global variables.
pub(crate) struct Globals {
    symbols: BTreeMap<u64, (u64, String)>,
}

impl Globals {
    pub(crate) fn new(log: &Log, program: &Path) -> Globals {
        let data = std::fs::read(program).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let base =
            log.modules.iter().find(|m| m.path == program.canonicalize().unwrap()).unwrap().base;
        let mut symbols = BTreeMap::new();
        for symbol in file.symbols().filter(|s| s.is_global() && s.size() > 0) {
            let name = symbol.name().unwrap();
            let name = match cpp_demangle::Symbol::new(name).ok().filter(|_| name.starts_with("_Z"))
            {
                Some(symbol) => symbol.demangle().unwrap_or_else(|_| name.to_owned()),
                None => name.to_owned(),
            };
            symbols.insert(base + symbol.address(), (symbol.size(), name));
        }
        Globals { symbols }
    }
}

impl Names for Globals {
    fn scalar(&mut self, _address: u64, _block: Option<&Block>) -> Option<Piece> {
        None
    }

    fn variable(&mut self, start: u64, _size: u64, _block: Option<&Block>, out: &mut String) {
        let symbol = self.symbols.range(..=start).next_back().filter(|(at, s)| start < *at + s.0);
        match symbol {
            Some((at, (_, name))) if *at == start => out.push_str(name),
            Some((at, (_, name))) => out.push_str(&format!("{name}+{}", start - at)),
            None => out.push_str(&format!("?{start:x}")),
        }
    }

    fn block(&mut self, _block: &Block, out: &mut String) {
        out.push_str("?block");
    }

    fn location(&mut self, _pc: Pc, _out: &mut String) {}

    fn function(&mut self, pc: Pc, out: &mut String) {
        self.variable(pc.address, 0, None, out);
    }
}

/// The trace in one log, checked.
pub(crate) fn trace(tail: &Path, program: &Path) -> (Log, Trace, Stats) {
    let log = Log::open(tail).unwrap();
    let names = Globals::new(&log, program);
    let mut source = Validated::new(log.source(names).unwrap(), Mode::Reject);
    let trace = Trace::load(&mut source).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let stats = source.inner().stats();
    (log, trace, stats)
}

/// The only trace of a run that ended well.
pub(crate) fn only_trace(out: &Output, logs: &Path, program: &Path) -> (Log, Trace, Stats) {
    assert!(
        out.status.success(),
        "{}: {:?} {}",
        program.display(),
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    let tails = log::find(logs).unwrap();
    assert_eq!(tails.len(), 1, "{tails:?}");
    trace(&tails[0], program)
}

/// What each thread did to things that have names, thread by thread.
pub(crate) fn by_thread(trace: &Trace) -> BTreeMap<String, Vec<String>> {
    let mut threads = BTreeMap::<String, Vec<String>>::new();
    // Initial values are no steps of threads.
    for event in trace.events.iter().filter(|event| event.op() != Op::Init) {
        let text = event.describe(&trace.names, &trace.pool).to_string();
        if !text.contains('?') {
            threads
                .entry(trace.names.threads.get(event.thread()).to_owned())
                .or_default()
                .push(text);
        }
    }
    threads
}

/// Whether a program was killed by a signal.
pub(crate) fn killed(status: ExitStatus) -> bool {
    // `timeout` reports the signal of its child as 128 and the signal.
    status.code().is_none_or(|c| c > 128)
}

/// The folder of the programs.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/conformance/c")
}
