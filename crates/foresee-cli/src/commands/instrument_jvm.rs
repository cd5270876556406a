//! `foresee instrument-jvm`: a copy of a Java program that brings the agent along.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use foresee_capture::jvm::Agent;

use crate::args::InstrumentJvmArgs;
use crate::commands::run::jvm::named;
use crate::{output, specs};

/// What the agent is called in the copy; the copy's manifest names it.
const JAR: &str = "foresee-jvm.jar";

pub(crate) fn run(args: &InstrumentJvmArgs) -> anyhow::Result<u8> {
    let mut settings = vec![("out", "logs".to_owned())];
    for file in &args.spec {
        let (spec, _) = specs::compile(&specs::read(file)?)?;
        settings.extend(named(&spec));
    }
    settings.extend(args.include.iter().map(|name| ("include", name.clone())));
    settings.extend(args.exclude.iter().map(|name| ("exclude", name.clone())));
    for file in &args.files {
        ensure!(file.is_file(), "there is no file {}", file.display());
    }
    let java = OsStr::new("java");
    let agent = Agent::find(java)?.context("the agent for Java programs is missing")?;
    let out = &args.output;
    let is_free = fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
    ensure!(is_free, "{} is not empty: name a new folder", out.display());
    let copy = out.join(JAR);
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    fs::copy(agent.path(), &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    let lines: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    fs::write(out.join("settings"), lines.concat()).context("cannot write the settings")?;
    let mut bundle = Command::new(java);
    bundle.arg("-cp").arg(&copy).arg("foresee.jvm.Bundle").arg(out);
    bundle.arg(args.main.as_deref().unwrap_or("-")).args(&args.files);
    let made = bundle.output().context("cannot run java")?;
    if !made.status.success() {
        // What is left of the copy would run, and not be what was asked for.
        let _ = fs::remove_dir_all(out);
        bail!("{}", String::from_utf8_lossy(&made.stderr).trim());
    }
    let path = out.display();
    output::note(&format!("run it with `java -jar {path}/run.jar`; it records into {path}/logs"));
    Ok(0)
}
