//! Installs the files that compilers and linkers need.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use crate::runtime;

/// The paths of the installed files.
#[derive(Clone, Debug)]
pub struct Kit {
    /// The directory of all the others.
    pub folder: PathBuf,
    /// The runtime that programs are linked with.
    pub object: PathBuf,
    /// The runtime that libraries are linked with.
    pub library: PathBuf,
    /// The names of the object that libraries loaded later may need.
    pub exports: PathBuf,
    /// gcc's specs that place the hooks.
    pub specs: PathBuf,
    /// The directory of `foresee.h`.
    pub include: PathBuf,
    /// The directory of headers that precede libstdc++'s.
    pub cxx_include: PathBuf,
    /// The directory of the assembler that completes the compiler's hooks.
    pub assembler: PathBuf,
}

/// Why the files could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// This foresee was built without a runtime.
    #[error(
        "foresee was built for a machine on which it cannot capture programs: that takes x86-64 Linux with glibc"
    )]
    Unsupported,
    /// A file could not be written.
    #[error("cannot write {path}: {source}; FORESEE_CACHE names another folder for the runtime", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The runtime itself is broken.
    #[error("internal error: the runtime is no object file: {0}")]
    Broken(String),
}

/// Appended to the options of `cc1` and `cc1plus`; the driver, which would link the sanitizer's own
/// library, does not see it.
const SPECS: &str = "*cc1_options:\n+ -fsanitize=thread\n\n";

impl Kit {
    /// The files in the user's cache, installed if necessary. This program is the assembler.
    pub fn install() -> Result<Kit, KitError> {
        let own = std::env::current_exe().map_err(|e| KitError::Broken(e.to_string()))?;
        Kit::install_under(&cache(), &own)
    }

    /// The files in a directory under `root` that is named after their contents, so that each
    /// version of foresee has its own. `assembler` is the program that acts as [`crate::assembler`]
    /// when it is called `as`.
    pub fn install_under(root: &Path, assembler: &Path) -> Result<Kit, KitError> {
        if runtime::OBJECT.is_empty() {
            return Err(KitError::Unsupported);
        }
        let exports = exports(runtime::OBJECT)?;
        let mut files: Vec<(String, &[u8])> = vec![
            ("foresee_rt.o".to_owned(), runtime::OBJECT),
            ("libforesee_rt.so".to_owned(), runtime::LIBRARY),
            ("foresee_rt.list".to_owned(), exports.as_bytes()),
            ("foresee.specs".to_owned(), SPECS.as_bytes()),
            ("include/foresee.h".to_owned(), runtime::HEADER.as_bytes()),
        ];
        files.extend(
            runtime::CXX_HEADERS
                .iter()
                .map(|(path, text)| (format!("c++/{path}"), text.as_bytes())),
        );
        let mut sum = crc32fast::Hasher::new();
        files.iter().for_each(|(_, bytes)| sum.update(bytes));
        let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let folder = root.join(format!("runtime-{:08x}-{size:x}", sum.finalize()));
        for (name, bytes) in files {
            let path = folder.join(name);
            put(&path, bytes).map_err(|source| KitError::Write { path, source })?;
        }
        let link = folder
            .join(format!("as-{:08x}", crc32fast::hash(assembler.as_os_str().as_encoded_bytes())));
        let path = link.join("as");
        link_to(assembler, &path).map_err(|source| KitError::Write { path, source })?;
        Ok(Kit {
            assembler: link,
            object: folder.join("foresee_rt.o"),
            library: folder.join("libforesee_rt.so"),
            exports: folder.join("foresee_rt.list"),
            specs: folder.join("foresee.specs"),
            include: folder.join("include"),
            cxx_include: folder.join("c++"),
            folder,
        })
    }
}

fn cache() -> PathBuf {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    path("FORESEE_CACHE")
        .or_else(|| path("XDG_CACHE_HOME").map(|p| p.join("foresee")))
        .or_else(|| path("HOME").map(|p| p.join(".cache/foresee")))
        .unwrap_or_else(|| std::env::temp_dir().join("foresee-cache"))
}

/// Writes a file unless it exists. Other processes may do the same at the same time, so it appears
/// atomically.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|m| m.len() == bytes.len() as u64) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // One user may build a program that another runs.
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// Creates a link unless it exists.
fn link_to(target: &Path, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match std::os::unix::fs::symlink(target, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Everything that the object defines, as a list for the linker: a plugin must find the program's
/// copy.
fn exports(object: &[u8]) -> Result<String, KitError> {
    let file = object::File::parse(object).map_err(|e| KitError::Broken(e.to_string()))?;
    let mut names: Vec<&str> = file
        .symbols()
        .filter(|s| s.is_global() && s.is_definition())
        .filter_map(|s| s.name().ok())
        .collect();
    names.sort_unstable();
    let list: String = names.iter().map(|name| format!("  {name};\n")).collect();
    Ok(format!("{{\n{list}}};\n"))
}
