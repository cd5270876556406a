//! What is known about a program before it runs: whether it was built for capture, and the
//! addresses of its variables and functions.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use object::{Object, ObjectSymbol};

use crate::symbols::{Module, Symbols};

/// How much capture can see of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Built {
    /// Its runtime is linked in, or that of one of its libraries.
    ForCapture,
    /// It was built without capture.
    Plain,
    /// It has no dynamic linker, so the runtime cannot intercept its library calls.
    Static,
    /// The compiler's own sanitizer runtime is linked in.
    Sanitizer,
    /// Both runtimes are linked in, so it will crash at start.
    TwoRuntimes,
    /// It is a script or something else that starts programs.
    Starter,
}

/// A program, as described by its files.
pub struct Program {
    /// The file that is run.
    pub path: PathBuf,
    /// What kind of program it is.
    pub built: Built,
    /// Its files, each at an artificial base address: a variable's module and its address in it are
    /// known, but not yet its address in the process.
    pub symbols: Symbols,
    /// Whether it may load more at run time.
    pub loads_more: bool,
}

impl Program {
    /// Examines the program that a command names; `None` if there is no such file.
    pub fn find(command: &OsStr) -> Option<Program> {
        let path = fs::canonicalize(which(command)?).ok()?;
        let mut program =
            Program { path, built: Built::Starter, symbols: Symbols::default(), loads_more: true };
        let Ok(bytes) = fs::read(&program.path) else { return Some(program) };
        let Ok(file) = object::File::parse(&*bytes) else { return Some(program) };
        let facts = Facts::of(&file);
        if !facts.is_dynamic {
            program.built = Built::Static;
            return Some(program);
        }
        let mut all = vec![facts];
        let mut files = vec![program.path.clone()];
        for library in libraries(&program.path) {
            let Ok(bytes) = fs::read(&library) else { continue };
            let Ok(file) = object::File::parse(&*bytes) else { continue };
            all.push(Facts::of(&file));
            files.push(library);
        }
        let any = |fact: fn(&Facts) -> bool| all.iter().any(fact);
        program.built = match (any(|f| f.has_runtime), any(|f| f.has_sanitizer)) {
            (true, true) => Built::TwoRuntimes,
            (true, false) => Built::ForCapture,
            (false, true) => Built::Sanitizer,
            (false, false) => Built::Plain,
        };
        program.loads_more = all[0].calls_dlopen;
        for (i, path) in files.into_iter().enumerate() {
            let bias = SPACING * (i as u64 + 1);
            program.symbols.add(Module { path, bias, range: bias..bias + SPACING });
        }
        Some(program)
    }

    /// The linker's fingerprint of the program; empty if it has none.
    pub fn build_id(&self) -> Vec<u8> {
        let Ok(bytes) = fs::read(&self.path) else { return Vec::new() };
        let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
        file.build_id().ok().flatten().map_or_else(Vec::new, <[u8]>::to_vec)
    }

    /// The file that contains an address of `symbols`, and the address there; no file means the
    /// program itself.
    pub fn place(&self, address: u64) -> Option<(Option<&Path>, u64)> {
        let module = self.symbols.modules().find(|m| m.range.contains(&address))?;
        let path = (module.path != self.path).then_some(module.path.as_path());
        Some((path, address - module.bias))
    }
}

/// Far enough apart for any file.
const SPACING: u64 = 1 << 40;

struct Facts {
    is_dynamic: bool,
    has_runtime: bool,
    has_sanitizer: bool,
    calls_dlopen: bool,
}

impl Facts {
    fn of(file: &object::File<'_>) -> Facts {
        let mut facts = Facts {
            is_dynamic: file.dynamic_symbol_table().is_some(),
            has_runtime: false,
            has_sanitizer: false,
            calls_dlopen: false,
        };
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            match symbol.name() {
                Ok("foresee_runtime") if symbol.is_definition() => facts.has_runtime = true,
                // Only the sanitizer's own runtime defines this.
                Ok(
                    "__tsan_default_options" | "__tsan_on_report" | "__sanitizer_print_stack_trace",
                ) if symbol.is_definition() => {
                    facts.has_sanitizer = true;
                }
                Ok("dlopen") if symbol.is_undefined() => facts.calls_dlopen = true,
                _ => {}
            }
        }
        facts
    }
}

/// The libraries that the dynamic linker would load, in its order, according to the linker itself.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let mut ask = Command::new(program);
    ask.env("LD_TRACE_LOADED_OBJECTS", "1").stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(output) = ask.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| {
        let line = line.split(" (0x").next()?.trim();
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        path.starts_with('/').then(|| fs::canonicalize(path).ok())?
    };
    text.lines().filter_map(path).collect()
}

/// The file of a command, as the shell finds it.
fn which(command: &OsStr) -> Option<PathBuf> {
    if command.as_encoded_bytes().contains(&b'/') {
        return Path::new(command).is_file().then(|| command.into());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    env::split_paths(&path).map(|dir| dir.join(command)).find(|file| file.is_file())
}
