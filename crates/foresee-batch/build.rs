//! Names the sources that results depend on, so that those of two builds of one version are not taken for each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    // Beside a published crate there are no others; but then its version says everything.
    let all = own.parent().filter(|folder| folder.join("foresee-batch").join("src").is_dir());
    let sources = all.map(|all| digest(all).expect("the sources can be read"));
    let build = sources.map_or_else(String::new, |digest| format!("+{digest:016x}"));
    println!("cargo::rustc-env=FORESEE_VERSION={version}{build}");
}

/// A digest of the sources of this crate and of all others here that it is built with. It is the same wherever they are.
fn digest(all: &Path) -> io::Result<u64> {
    let (mut known, mut open) = (BTreeSet::new(), vec!["foresee-batch".to_owned()]);
    while let Some(name) = open.pop() {
        if all.join(&name).join("src").is_dir() && known.insert(name.clone()) {
            open.extend(dependencies(&fs::read_to_string(all.join(name).join("Cargo.toml"))?));
        }
    }
    let mut digest = Digest::new();
    for name in known {
        for part in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", all.join(&name).join(part).display());
        }
        let mut files = BTreeSet::new();
        list(&all.join(&name), Path::new("src"), &mut files)?;
        for file in files {
            digest.add(name.as_bytes());
            digest.add(file.to_string_lossy().replace('\\', "/").as_bytes());
            digest.add(&fs::read(all.join(&name).join(file))?);
        }
    }
    Ok(digest.0)
}

/// The crates of this workspace that a manifest asks for, other than for tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let (mut names, mut is_asking) = (Vec::new(), false);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            is_asking = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if is_asking && line.starts_with("foresee") {
            let name = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).next();
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

/// The files in a folder and all folders in it, without what is before `within`.
fn list(root: &Path, within: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(within))? {
        let path = within.join(entry?.file_name());
        if root.join(&path).is_dir() {
            list(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// FNV-1a: nobody makes sources that collide on purpose, and a build script needs no crate for it.
struct Digest(u64);

impl Digest {
    fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    /// Takes some bytes, and how many there are.
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
