//! Compiles the runtime that captured programs are linked with, from the sources in `foresee-rt`: once as a single
//! object, once as a shared library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use object::elf::{FileHeader64, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, Sym64};
use object::read::archive::ArchiveFile;
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::{FileKind, LittleEndian, pod};

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

/// The first object in an archive: ours, as rustc writes it before those of its library.
fn first_member(archive: &[u8]) -> Vec<u8> {
    let file = ArchiveFile::parse(archive).expect("rustc writes archives");
    let members = file.members().map(|member| member.expect("the archive is whole"));
    let mut contents = members.map(|member| member.data(archive).expect("the archive is whole"));
    let object = contents.find(|data| FileKind::parse(*data) == Ok(FileKind::Elf64));
    object.expect("rustc puts an object into the archive").to_vec()
}

/// Makes the definitions of functions that are not ours weak, so that a program's own `malloc`, say, takes precedence.
fn weaken(object: &mut [u8]) {
    let (table, count, weak) = not_ours(object);
    let (symbols, _) =
        pod::slice_from_bytes_mut::<Sym64<LittleEndian>>(&mut object[table..], count)
            .expect("the table of symbols was read there");
    for index in weak {
        let kind = symbols[index].st_type();
        symbols[index].set_st_info(STB_WEAK, kind);
    }
}

/// The offset and length of the symbol table, and the global definitions in it whose names are not ours.
fn not_ours(object: &[u8]) -> (usize, usize, Vec<usize>) {
    let header = FileHeader64::<LittleEndian>::parse(object).expect("rustc writes ELF");
    let sections = header.sections(LittleEndian, object).expect("the object has sections");
    let table = sections.symbols(LittleEndian, object, SHT_SYMTAB).expect("the table can be read");
    let section = sections.section(table.section()).expect("the object has a table of symbols");
    let (offset, _) = section.file_range(LittleEndian).expect("the table is in the file");
    let is_weakened = |symbol: &Sym64<LittleEndian>| {
        let name = table.symbol_name(LittleEndian, symbol).expect("symbols have names");
        let ours = name.starts_with(b"__tsan_") || name.starts_with(b"foresee_");
        symbol.st_bind() == STB_GLOBAL && !symbol.is_undefined(LittleEndian) && !ours
    };
    let weak = table.iter().enumerate().filter(|(_, s)| is_weakened(s)).map(|(index, _)| index);
    (usize::try_from(offset).expect("fits"), table.len(), weak.collect())
}
