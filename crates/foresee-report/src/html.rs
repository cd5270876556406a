//! For people: one page with every finding, whose schedules are played step by step.
//!
//! The page is the JSON report, a style sheet and a script. It loads nothing, and shows text from a
//! trace as text only. What the sources say at the places of findings is put into it as far as the
//! files are at hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use foresee_trace::{Visible, is_hidden};
use serde_json::{Map, Value as Json, json};

use crate::uri;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// How many lines of source are shown before and after the one that matters.
const AROUND: usize = 3;

/// How many places are shown with their source, and how long a file and a line of it may be.
const MOST_PLACES: usize = 2_000;
const MOST_BYTES: u64 = 4 << 20;
const MOST_CHARS: usize = 300;

/// Only these are read: a trace may name any file.
const SOURCES: &[&str] = &[
    "c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "ipp", "inl", "tcc", "rs", "java",
    "kt", "kts", "scala", "groovy", "go", "m", "mm",
];

/// The page for a report in JSON; `None` if the text is not one.
///
/// ```
/// assert!(foresee_report::html::page("{}", &[]).is_none());
/// ```
///
/// `lattices` are pictures in SVG, each with the name of its property.
pub fn page(report: &str, lattices: &[(String, String)]) -> Option<String> {
    let mut report: Json = serde_json::from_str(report).ok()?;
    let is_report = report.get("foresee").is_some_and(Json::is_string)
        && report.get("trace").is_some_and(Json::is_object)
        && report.get("summary").is_some_and(Json::is_object)
        && report.get("analyses").is_some_and(Json::is_array);
    if !is_report {
        return None;
    }
    let sources = sources(&report);
    report.as_object_mut()?.insert("sources".to_owned(), Json::Object(sources));
    // A picture that is an image cannot run anything.
    let drawn = lattices.iter().map(|(property, svg)| {
        json!({ "property": property, "image": format!("data:image/svg+xml,{}", uri::escaped(svg)) })
    });
    report.as_object_mut()?.insert("lattices".to_owned(), drawn.collect());
    make_visible(&mut report);
    // In a script element only a less-than sign can start something else.
    let data = report.to_string().replace('<', "\\u003c");
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = PAGE;
    for (mark, content) in [("/*STYLE*/", STYLE), ("/*DATA*/", &data), ("/*SCRIPT*/", SCRIPT)] {
        let (before, after) = rest.split_once(mark)?;
        page.extend([before, content]);
        rest = after;
    }
    page.push_str(rest);
    Some(page)
}

/// Replaces characters that a browser would obey, such as those that turn the writing direction, by
/// what the text report shows. Sources keep their tabs and their ends of lines.
fn make_visible(json: &mut Json) {
    let is_wanted = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    let shown = |text: &str| -> String {
        let parts = text.split_inclusive(is_wanted).map(|part| {
            match part.char_indices().next_back().filter(|&(_, c)| is_wanted(c)) {
                Some((at, _)) => format!("{}{}", &part[..at], Visible(&part[at..])),
                None => part.to_owned(),
            }
        });
        parts.collect()
    };
    match json {
        Json::String(text) if text.contains(is_wanted) => *text = shown(text),
        Json::Array(items) => items.iter_mut().for_each(make_visible),
        Json::Object(fields) => {
            let old = std::mem::take(fields);
            *fields = old.into_iter().map(|(key, value)| (shown(&key), value)).collect();
            fields.values_mut().for_each(make_visible);
        }
        _ => {}
    }
}

/// The lines around each place that the report names, by `file:line`.
fn sources(report: &Json) -> Map<String, Json> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut count = 0;
    collect(report, &mut |file, line| {
        let lines = places.entry(file).or_default();
        if count < MOST_PLACES && !lines.contains(&line) {
            lines.push(line);
            count += 1;
        }
    });
    let mut sources = Map::new();
    for (file, lines) in places {
        let Some(text) = read(Path::new(file)) else { continue };
        let all: Vec<&str> = text.lines().collect();
        for line in lines.into_iter().filter(|line| (1..=all.len()).contains(line)) {
            let first = line.saturating_sub(AROUND).max(1);
            let last = (line + AROUND).min(all.len());
            let shown = all[first - 1..last].iter();
            let shown: Vec<String> =
                shown.map(|line| line.chars().take(MOST_CHARS).collect()).collect();
            sources.insert(format!("{file}:{line}"), json!({ "first": first, "lines": shown }));
        }
    }
    sources
}

/// Calls `found` with each frame that has a file and a line.
fn collect<'a>(json: &'a Json, found: &mut impl FnMut(&'a str, usize)) {
    match json {
        Json::Object(fields) => {
            let line = fields.get("line").and_then(Json::as_u64);
            if let (Some(Json::String(file)), Some(line)) = (fields.get("file"), line) {
                found(file, line as usize);
            }
            fields.values().for_each(|value| collect(value, found));
        }
        Json::Array(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// The text of a source file, if it is one and not too long.
fn read(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_lowercase();
    let is_source = SOURCES.contains(&extension.as_str());
    if !is_source || !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
