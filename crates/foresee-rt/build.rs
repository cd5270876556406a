//! Lists the sources of this crate, which `foresee-capture` compiles again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let root = PathBuf::from(root).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let mut list = String::from(
        "/// The text of every source file, by its path under `src`.\n\
         pub const SOURCES: &[(&str, &str)] = &[\n",
    );
    for file in files {
        let name = file.strip_prefix(&root).expect("it was found there");
        writeln!(list, "    ({name:?}, include_str!({file:?})),").expect("strings can be written");
    }
    list.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("sources.rs"), list).expect("OUT_DIR is writable");
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources can be read") {
        let path = entry.expect("the sources can be read").path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
