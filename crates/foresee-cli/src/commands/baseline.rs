//! `foresee baseline`: which findings are known, so that only new ones count.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use foresee_predict::checks::{Day, Suppressions};
use foresee_trace::Visible;
use serde_json::Value as Json;

use crate::args::{BaselineArgs, BaselineCommand, BaselineUpdateArgs};
use crate::store::Stored;
use crate::{output, settings, whole_file};

/// The file that is used if nothing else is said.
const DEFAULT: &str = "foresee.baseline";

/// How much of a message is written beside a fingerprint.
const LONGEST: usize = 120;

pub(crate) fn run(args: &BaselineArgs) -> anyhow::Result<u8> {
    match &args.command {
        BaselineCommand::Update(args) => update(args),
    }
}

/// A finding as the file has it.
struct Known {
    fingerprint: String,
    about: String,
}

fn update(args: &BaselineUpdateArgs) -> anyhow::Result<u8> {
    let path = match &args.baseline {
        Some(path) => path.clone(),
        None => settings::file_setting("baseline")?.unwrap_or_else(|| PathBuf::from(DEFAULT)),
    };
    let name = path.display().to_string();
    let (found, known) = match &args.report {
        Some(report) => (of_report(report)?, Vec::new()),
        None => of_last()?,
    };
    // A pipe or a device that is written to has nothing to say.
    let old = match path.metadata() {
        Ok(about) if about.is_file() => whole_file::read(&path, whole_file::BASELINE)?,
        _ => HEADER.to_owned(),
    };
    let mut entries = Suppressions::default();
    entries.read_baseline(&name, &old, Day::today()).map_err(|mistake| anyhow!(mistake))?;
    let there: BTreeSet<&str> = entries.all.iter().filter_map(|one| one.fingerprint()).collect();
    let still: BTreeSet<&str> =
        found.iter().map(|one| &*one.fingerprint).chain(known.iter().map(String::as_str)).collect();
    let mut text = String::new();
    let mut removed = 0;
    for line in old.lines() {
        let entry = line.split_whitespace().next().unwrap_or("");
        if args.prune && there.contains(entry) && !still.contains(entry) {
            removed += 1;
            continue;
        }
        text += line;
        text.push('\n');
    }
    let mut added = 0;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for Known { fingerprint, about } in &found {
        if !there.contains(&**fingerprint) && seen.insert(fingerprint) {
            text += &format!("{fingerprint}  # {about}\n");
            added += 1;
        }
    }
    output::write_file(&path, &text)?;
    let total = there.len() - removed + added;
    output::print(&format!("{name}: {added} added, {removed} removed, {total} known\n"))?;
    Ok(0)
}

const HEADER: &str = "\
# Findings that are known: with --baseline they do not fail a run.
# `foresee baseline update` adds what the last report found. The text behind # is for people.
";

/// The findings of the last report.
fn of_last() -> anyhow::Result<(Vec<Known>, Vec<String>)> {
    let stored = Stored::load()?;
    let found = stored.findings.into_iter();
    let found = found.map(|one| Known::new(one.fingerprint, &one.rule, &one.message)).collect();
    Ok((found, stored.known))
}

/// The findings of a report in JSON, or of several, one after another.
fn of_report(path: &Path) -> anyhow::Result<Vec<Known>> {
    let name = path.display().to_string();
    let text = whole_file::read_or_stdin(path, whole_file::REPORT)?;
    let mut found = Vec::new();
    for report in serde_json::Deserializer::from_str(&text).into_iter::<Json>() {
        let report = report.with_context(|| format!("{name} is not a report"))?;
        let Some(analyses) = report.get("analyses").and_then(Json::as_array) else {
            bail!(
                "{name} is not a report: make one with `foresee check --format json --output FILE`"
            )
        };
        let findings = analyses.iter().filter_map(|one| one.get("findings")?.as_array()).flatten();
        found.extend(findings.filter_map(|one| {
            let text = |key: &str| one.get(key).and_then(Json::as_str);
            let fingerprint = text("fingerprint")?.to_owned();
            Some(Known::new(fingerprint, text("rule")?, text("message")?))
        }));
    }
    Ok(found)
}

impl Known {
    fn new(fingerprint: String, rule: &str, message: &str) -> Known {
        let about: String = format!("{rule}: {message}").chars().take(LONGEST).collect();
        Known { fingerprint, about: Visible(&about).to_string() }
    }
}
