//! Compiles the runtime that captured programs are linked with, from the sources that `foresee-rt` carries: once as a
//! single object, once as a shared library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let (object, library) = (out.join("foresee_rt.o"), out.join("libforesee_rt.so"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    // The runtime is built for the platform of foresee itself; on others, capture reports that it
    // is not supported.
    if target != "x86_64-unknown-linux-gnu" {
        for file in [object, library] {
            fs::write(file, []).expect("OUT_DIR is writable");
        }
        return;
    }
    let sources = out.join("foresee-rt");
    for (path, text) in foresee_rt::SOURCES {
        let path = sources.join(path);
        let folder = path.parent().expect("sources lie in a folder");
        fs::create_dir_all(folder).expect("OUT_DIR is writable");
        fs::write(path, text).expect("OUT_DIR is writable");
    }
    let archive = out.join("libforesee_rt.a");
    compile(&sources, &target, "staticlib", &archive);
    compile(&sources, &target, "cdylib", &library);
    let mut member = first_member(&fs::read(&archive).expect("rustc wrote the archive"));
    weaken(&mut member);
    fs::write(object, member).expect("OUT_DIR is writable");
}

fn compile(sources: &Path, target: &str, kind: &str, to: &Path) {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // Link-time optimisation makes it one object that depends only on libc. Unwinding tables allow
    // threads to be cancelled while one of our functions is on their stack.
    let status = Command::new(rustc)
        .arg(sources.join("lib.rs"))
        .args(["--edition", "2024", "--crate-name", "foresee_rt", "--cfg", "foresee_object"])
        .args(["--target", target, "--crate-type", kind, "-C", "opt-level=3", "-C", "panic=abort"])
        .args(["-C", "codegen-units=1", "-C", "lto=fat", "-C", "relocation-model=pic"])
        .args(["-C", "force-unwind-tables=yes", "-o"])
        .arg(to)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .expect("rustc runs");
    assert!(status.success(), "the runtime could not be compiled as {kind}");
}

/// The first file in an archive that is not a symbol table: ours, which rustc writes before those
/// of its library.
fn first_member(archive: &[u8]) -> Vec<u8> {
    assert!(archive.starts_with(b"!<arch>\n"), "rustc writes archives");
    let mut at = 8;
    loop {
        let head = &archive[at..at + 60];
        let size = std::str::from_utf8(&head[48..58]).expect("a number");
        let size: usize = size.trim().parse().expect("a number");
        let body = &archive[at + 60..at + 60 + size];
        if body.starts_with(b"\x7fELF") {
            return body.to_vec();
        }
        at += 60 + size + size % 2;
    }
}

/// Makes the definitions of functions with foreign names weak, so that a program's own `malloc`,
/// for example, overrides ours.
fn weaken(object: &mut [u8]) {
    const TABLE: u32 = 2;
    let long = |object: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(object[at..at + 8].try_into().expect("eight bytes")))
            .expect("fits")
    };
    let word = |object: &[u8], at: usize| {
        u32::from_le_bytes(object[at..at + 4].try_into().expect("four bytes"))
    };
    let sections = long(object, 0x28);
    let count = usize::from(u16::from_le_bytes([object[0x3c], object[0x3d]]));
    for section in (0..count).map(|i| sections + 64 * i) {
        if word(object, section + 4) != TABLE {
            continue;
        }
        let (symbols, size) = (long(object, section + 0x18), long(object, section + 0x20));
        let names = sections + 64 * word(object, section + 0x28) as usize;
        let names = long(object, names + 0x18);
        for symbol in (symbols..symbols + size).step_by(24) {
            let name = &object[names + word(object, symbol) as usize..];
            let ours = name.starts_with(b"__tsan_") || name.starts_with(b"foresee_");
            let defined = object[symbol + 6] != 0 || object[symbol + 7] != 0;
            if object[symbol + 4] >> 4 == 1 && defined && !ours {
                object[symbol + 4] = object[symbol + 4] & 0xf | 2 << 4;
            }
        }
    }
}
