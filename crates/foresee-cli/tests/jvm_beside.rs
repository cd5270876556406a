//! Java programs: what is left out on request, and what may be in the agent's way.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, root, said, text};
use crate::jvm::{agent, classes, run};

#[test]
fn what_is_left_out_is_said_and_not_claimed() {
    for (words, reason) in [
        (["--exclude", "RacyCounter"], "the code of RacyCounter were left out (--exclude)"),
        (["--include", "org.example.*"], "outside of org.example were left out (--include)"),
    ] {
        let (status, out, err) = run(&["--check", "race", words[0], words[1]], &["RacyCounter"]);
        assert_eq!(status, 3, "{out}{err}");
        assert!(out.contains(reason) && out.contains("NOT complete"), "{out}{err}");
    }
    // A package is not the beginning of a word, and one that is excluded is not included.
    let (status, out, err) =
        run(&["--include", "RacyCounter", "--exclude", "Racy"], &["RacyCounter"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(!out.contains("were left out"), "{out}{err}");
}

#[test]
fn what_a_specification_names_and_what_orders_threads_is_never_left_out() {
    let spec = "examples/jvm/landing/Landing.spec";
    let (status, out, err) = run(&["--spec", spec, "--exclude", "Landing"], &["Landing"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("PREDICTED safe_landing"), "{out}{err}");
    let words = ["--check", "deadlock", "--exclude", "LockOrder"];
    let (status, out, err) = run(&words, &["LockOrder"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("PREDICTED deadlock"), "{out}{err}");
}

#[test]
fn filters_that_name_nothing_are_refused() {
    let (status, _, err) = run(&["--exclude", "org..example"], &["RacyCounter"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("not the name of a package or class"), "{err}");
    let bench = Bench::new();
    let mut command = bench.foresee();
    command.args(["run", "--include", "org.example", "--", "/bin/true"]);
    let (status, _, err) =
        said(&command.env("FORESEE_JVM_AGENT", "/nonexistent").output().unwrap());
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("packages of Java programs"), "{err}");
}

#[test]
fn a_specification_about_a_class_that_never_loads_is_no_success() {
    let bench = Bench::new();
    let spec = bench.path("never.spec");
    std::fs::write(&spec, "property never: Never.value == 0\n").unwrap();
    let (status, out, err) = run(&["--spec", spec.to_str().unwrap()], &["RacyCounter"]);
    assert_eq!(status, 2, "{out}{err}");
    assert!(err.contains("Never.value"), "{out}{err}");
}

/// Runs a program with the agent, but without `foresee run`; its status and what it said.
fn alone(options: &[&str], settings: &str, program: &str) -> (i32, String, String) {
    let mut java = Command::new("java");
    java.args(options).arg(format!("-javaagent:{}={settings}", agent().display()));
    java.arg("-Xshare:off").arg("-cp").arg(classes()).arg(program);
    said(&java.output().unwrap())
}

#[test]
fn an_interrupt_that_comes_while_records_are_written_out_is_not_lost() {
    let bench = Bench::new();
    classes();
    let (status, out, err) = alone(&[], &format!("out={}", bench.path("").display()), "Interrupts");
    assert_eq!(status, 0, "{out}{err}");
}

#[test]
fn a_copy_records_itself_without_a_flag() {
    let bench = Bench::new();
    let copy = bench.path("copy");
    let instrument = |files: &[&str], words: &[&str]| {
        let mut command = bench.foresee();
        command.arg("instrument-jvm").args(files.iter().map(|file| classes().join(file)));
        command.args(words).arg("-o").arg(&copy).env("FORESEE_JVM_AGENT", agent());
        said(&command.output().unwrap())
    };
    for (files, words, reason) in [
        (["Nothing.class"], &[][..], "there is no file"),
        (["OtherAgent.class"], &[], "name it with --main"),
    ] {
        let (status, out, err) = instrument(&files, words);
        assert_eq!(status, 2, "{out}{err}");
        assert!(err.contains(reason) && !copy.exists(), "{out}{err}");
    }
    let spec = root().join("examples/jvm/landing/Landing.spec");
    let spec = spec.to_str().unwrap();
    let all: Vec<String> = std::fs::read_dir(classes())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("Landing") && name.ends_with(".class"))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (status, out, err) = instrument(&all, &["--spec", spec, "--main", "Landing"]);
    assert_eq!(status, 0, "{out}{err}");
    let (status, out, err) = instrument(&all, &[]);
    assert!(status == 2 && err.contains("is not empty"), "{out}{err}");
    let mut java = Command::new("java");
    let ran = java.arg("-jar").arg(copy.join("run.jar")).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let log = std::fs::read_dir(copy.join("logs")).unwrap().next().unwrap().unwrap().path();
    let mut command = bench.foresee();
    let (status, out, err) =
        said(&command.arg("check").arg(log).args(["--spec", spec]).output().unwrap());
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("PREDICTED safe_landing"), "{out}{err}");
    let mut command = bench.foresee();
    let (status, _, err) = said(&command.arg("check").arg(copy).output().unwrap());
    assert!(status == 2 && err.contains("not the log of a JVM"), "{err}");
}

#[test]
fn a_folder_that_cannot_be_written_is_reported() {
    let bench = Bench::new();
    classes();
    let file = bench.path("file");
    std::fs::write(&file, "").unwrap();
    let out = format!("out={}", file.join("logs").display());
    let (status, said, err) = alone(&[], &out, "RacyCounter");
    assert_eq!(status, 0, "{said}{err}");
    assert!(err.contains("this program is not captured") && err.contains("file"), "{err}");
}

#[test]
fn an_old_java_can_load_what_tells_that_it_is_too_old() {
    classes();
    let folder = root().join("agents/jvm/target/classes/foresee/jvm");
    // The version of a class file: 52 is Java 8, 61 is Java 17.
    for (class, version) in [("Agent", 52), ("Install", 61)] {
        let bytes = std::fs::read(folder.join(format!("{class}.class"))).unwrap();
        assert_eq!(bytes[7], version, "{class}");
    }
}

/// Builds a program of one module into a folder.
fn build_module(folder: &Path) {
    let package = folder.join("src/shop");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(folder.join("src/module-info.java"), "module shop { }\n").unwrap();
    let source = "package shop;\npublic class Shop {\n    static int sold;\n    public static void \
                  main(String[] a) throws Exception {\n        Thread t = new Thread(() -> \
                  sold++);\n        t.start();\n        sold++;\n        t.join();\n    }\n}\n";
    std::fs::write(package.join("Shop.java"), source).unwrap();
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(folder.join("mods/shop"));
    compiler.args([folder.join("src/module-info.java"), package.join("Shop.java")]);
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled.stderr));
}

#[test]
fn modules_other_agents_and_security_managers_are_no_obstacle() {
    let bench = Bench::new();
    build_module(&bench.path(""));
    std::fs::write(bench.path("manifest"), "Premain-Class: OtherAgent\n").unwrap();
    let other = bench.path("other.jar");
    let mut jar = Command::new("jar");
    jar.arg("cfm").arg(&other).arg(bench.path("manifest")).arg("-C").arg(classes());
    assert!(jar.arg("OtherAgent.class").status().unwrap().success());
    let policy = bench.path("policy");
    let grants = [agent(), other.clone()].map(|jar| {
        format!(
            "grant codeBase \"file:{}\" {{ permission java.security.AllPermission; }};\n",
            jar.display()
        )
    });
    std::fs::write(&policy, grants.concat()).unwrap();
    let mut command = bench.foresee();
    command.args(["run", "--check", "race", "--", "java"]);
    command.arg(format!("-javaagent:{}", other.display()));
    command.arg("-Djava.security.manager");
    command.arg(format!("-Djava.security.policy={}", policy.display()));
    command.arg("-p").arg(bench.path("mods")).args(["-m", "shop/shop.Shop"]);
    let (status, out, err) = said(&command.env("FORESEE_JVM_AGENT", agent()).output().unwrap());
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("race on shop.Shop.sold ["), "{out}{err}");
}
