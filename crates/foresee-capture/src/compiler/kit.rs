//! Installs the files that compilers and linkers need.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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
    /// The user has no folder for caches.
    #[error("neither HOME nor XDG_CACHE_HOME is set: FORESEE_CACHE names a folder for the runtime")]
    Homeless,
    /// Other users could replace the files.
    #[error(
        "{path} is not yours alone, so others could have put another runtime there: FORESEE_CACHE names another folder",
        path = path.display()
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// Other users could replace the folder.
    #[error(
        "others may write to {open}, so they could put another runtime in the place of {path}: FORESEE_CACHE names another folder",
        open = open.display(), path = path.display()
    )]
    Replaceable {
        /// The folder.
        path: PathBuf,
        /// The folder above it that others may write to.
        open: PathBuf,
    },
    /// The runtime itself is broken.
    #[error("internal error: the runtime is not an object file: {0}")]
    Broken(String),
}

/// Appended to the options of `cc1` and `cc1plus`; the driver, which would link the sanitizer's own
/// library, does not see it.
const SPECS: &str = "*cc1_options:\n+ -fsanitize=thread\n\n";

impl Kit {
    /// The files in the user's cache, installed if necessary. This program is the assembler.
    pub fn install() -> Result<Kit, KitError> {
        let own = std::env::current_exe().map_err(|e| KitError::Broken(e.to_string()))?;
        Kit::install_under(&cache()?, &own)
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
        own_folder(&folder)?;
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

/// The user's cache. A folder that users share is not used: another user could own the name.
fn cache() -> Result<PathBuf, KitError> {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    path("FORESEE_CACHE")
        .or_else(|| path("XDG_CACHE_HOME").map(|p| p.join("foresee")))
        .or_else(|| path("HOME").map(|p| p.join(".cache/foresee")))
        .ok_or(KitError::Homeless)
}

/// A folder of this name in the user's cache, which only the user can change or read.
pub fn own_cache(name: &str) -> Result<PathBuf, KitError> {
    let folder = cache()?.join(name);
    own_folder(&folder)?;
    Ok(folder)
}

/// Makes a folder that only this user can change or read, or checks that it is one.
fn own_folder(folder: &Path) -> Result<(), KitError> {
    let failed = |source| KitError::Write { path: folder.to_owned(), source };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    if let Some(open) = folder.parent().map(open_to_others).transpose().map_err(failed)?.flatten() {
        return Err(KitError::Replaceable { path: folder.to_owned(), open });
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Links are not followed.
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(KitError::NotOurs { path: folder.to_owned() });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// The first folder, from the root on, in which any other user may replace what leads to `folder`. A group is one that its
/// members trust: many systems give each user one of their own.
fn open_to_others(folder: &Path) -> io::Result<Option<PathBuf>> {
    const WRITTEN_BY_ALL: u32 = 0o002;
    const ONLY_BY_OWNERS: u32 = 0o1000;
    let folder = fs::canonicalize(folder)?;
    let ours = [0, rustix::process::geteuid().as_raw()];
    let mut above: Vec<&Path> = folder.ancestors().collect();
    above.reverse();
    for path in above {
        let about = fs::metadata(path)?;
        let is_shared = about.mode() & WRITTEN_BY_ALL != 0 && about.mode() & ONLY_BY_OWNERS == 0;
        if is_shared || !ours.contains(&about.uid()) {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

/// Writes a file unless it is there with these contents. Other processes may do the same at the same time, so it appears
/// atomically.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|there| there == bytes)
    {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Creates a link unless it exists and leads there.
fn link_to(target: &Path, path: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|there| there == target) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // It replaces a link to something else in one step.
    let made =
        tempfile::Builder::new().make_in(folder, |at| std::os::unix::fs::symlink(target, at))?;
    made.into_temp_path().persist(path)?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(root: &Path) -> Result<Kit, KitError> {
        Kit::install_under(root, Path::new("/bin/true"))
    }

    #[test]
    fn what_is_not_ours_is_mended_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let kit = installed(root.path()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&kit.folder), 0o700);
        // Of the same length, so that only the contents differ.
        let mut bad = runtime::OBJECT.to_vec();
        bad[1000] ^= 1;
        fs::write(&kit.object, bad).unwrap();
        fs::set_permissions(&kit.folder, fs::Permissions::from_mode(0o777)).unwrap();
        let link = kit.assembler.join("as");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("/bin/false", &link).unwrap();
        // A link in the place of a file is replaced, not followed.
        let other = root.path().join("other");
        fs::write(&other, "mine").unwrap();
        fs::remove_file(&kit.specs).unwrap();
        std::os::unix::fs::symlink(&other, &kit.specs).unwrap();
        installed(root.path()).unwrap();
        assert_eq!(fs::read(&kit.object).unwrap(), runtime::OBJECT);
        assert_eq!(mode(&kit.folder), 0o700);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("/bin/true"));
        assert_eq!(fs::read_to_string(&kit.specs).unwrap(), SPECS);
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        // A link in place of the folder may be an attack.
        let elsewhere = root.path().join("elsewhere");
        fs::rename(&kit.folder, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &kit.folder).unwrap();
        assert!(matches!(installed(root.path()), Err(KitError::NotOurs { .. })));
    }

    #[test]
    fn a_folder_that_others_could_replace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        let inner = shared.join("inner");
        fs::create_dir_all(&inner).unwrap();
        for (mode, is_refused) in [(0o755, false), (0o777, true), (0o1777, false), (0o775, false)] {
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            for folder in [&shared, &inner] {
                match installed(folder) {
                    Ok(_) => assert!(!is_refused, "{mode:o} {folder:?}"),
                    Err(KitError::Replaceable { open, .. }) => {
                        assert!(is_refused && open.ends_with("shared"), "{mode:o} {folder:?}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
