//! For machines: the object described in the contract. Fields are added, never renamed.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use foresee_predict::{Analysed, Stat};
use foresee_trace::{Finding, FindingKind, Witness, is_hidden};

use crate::report::Report;

/// Up to so many events that happen as observed are listed in a witness all the same.
const LISTED: u64 = 10_000;

#[derive(Serialize)]
struct Root<'a> {
    foresee: &'static str,
    assumptions: &'static str,
    trace: Trace<'a>,
    analyses: Vec<Analysis<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<JsonSuppression<'a>>,
    summary: Summary,
}

#[derive(Serialize)]
struct JsonSuppression<'a> {
    pattern: &'a str,
    at: &'a str,
    findings: u64,
}

#[derive(Serialize)]
struct Trace<'a> {
    name: &'a str,
    events: u64,
    threads: u64,
    variables: u64,
    locks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Analysis<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    property: Option<&'a str>,
    outcome: &'static str,
    statement: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    findings: Vec<JsonFinding<'a>>,
    stats: Map<String, Json>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    id: usize,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<&'static str>,
    property: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<JsonWitness<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    details: Map<String, Json>,
}

#[derive(Serialize)]
struct JsonWitness<'a> {
    /// Events that come first, as observed, and are not listed in `order`: only in witnesses that
    /// would be too long otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<u64>,
    order: Vec<u64>,
    /// Missing if the order keeps the property.
    #[serde(skip_serializing_if = "Option::is_none")]
    violated_at: Option<usize>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    next: &'a [u64],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changed_reads: &'a [u64],
}

#[derive(Serialize)]
struct Summary {
    observed: usize,
    predicted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    schedule_dependent: usize,
    #[serde(skip_serializing_if = "is_zero")]
    conditional: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<u64>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The report as one JSON object and a newline.
pub fn report(report: &Report) -> String {
    let facts = report.trace;
    let found = |analysis: &Analysed| -> Vec<JsonFinding<'_>> {
        let all = report.findings.iter().enumerate();
        all.filter(|(_, f)| f.analysis == analysis.name)
            .filter(|(_, f)| analysis.property.as_ref().is_none_or(|p| *p == f.property))
            .map(|(i, f)| finding(i, f))
            .collect()
    };
    let analyses = report
        .analysed
        .iter()
        .map(|a| Analysis {
            name: a.name,
            property: a.property.as_deref(),
            outcome: a.outcome.word(),
            statement: &a.statement,
            notes: &a.notes,
            findings: found(a),
            stats: a.stats.iter().map(|(name, s)| (name.to_string(), stat(s))).collect(),
        })
        .collect();
    let count = |kind| report.findings.iter().filter(|f| f.kind == kind).count();
    let root = Root {
        foresee: env!("CARGO_PKG_VERSION"),
        assumptions: crate::text::ASSUMPTIONS,
        trace: Trace {
            name: &report.name,
            events: facts.events,
            threads: facts.threads,
            variables: facts.variables,
            locks: facts.locks,
            cut_short: report.remarks.cut_short.as_deref(),
            partial: report.remarks.partial.as_deref(),
            warnings: &report.remarks.warnings,
        },
        analyses,
        suppressions: report
            .suppressions
            .all
            .iter()
            .map(|one| JsonSuppression { pattern: &one.text, at: &one.place, findings: one.used })
            .collect(),
        summary: Summary {
            observed: count(FindingKind::Observed),
            predicted: count(FindingKind::Predicted),
            schedule_dependent: count(FindingKind::ScheduleDependent),
            conditional: count(FindingKind::Conditional),
            suppressed: (!report.suppressions.all.is_empty()).then(|| report.suppressions.used()),
        },
    };
    let mut text = serde_json::to_string(&root).expect("the report has only text keys");
    text.push('\n');
    visible(&text)
}

/// JSON that says the same in characters that terminals do not obey: what the standard lets stand as
/// it is stands outside of texts only if it is a space.
pub fn visible(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            c if c != '\n' && is_hidden(c) => {
                let mut units = [0; 2];
                // Writing to a string cannot fail.
                let _ =
                    c.encode_utf16(&mut units).iter().try_for_each(|u| write!(out, "\\u{u:04x}"));
            }
            c => out.push(c),
        }
    }
    out
}

/// One finding as one JSON object, as it stands in a report.
pub fn one(finding: &Finding) -> String {
    serde_json::to_string(&self::finding(0, finding)).expect("a finding has only text keys")
}

fn finding(index: usize, finding: &Finding) -> JsonFinding<'_> {
    JsonFinding {
        id: index + 1,
        kind: finding.kind.word(),
        reorder: finding.witness.as_ref().map(|w| w.reorder.word()),
        property: &finding.property,
        message: &finding.message,
        event: finding.event,
        witness: finding.witness.as_ref().map(witness),
        details: finding
            .details
            .iter()
            .map(|(name, value)| (name.clone(), Json::from(value.as_str())))
            .collect(),
    }
}

fn witness(witness: &Witness) -> JsonWitness<'_> {
    let is_listed = witness.observed <= LISTED;
    JsonWitness {
        observed: (!is_listed).then_some(witness.observed),
        order: if is_listed { witness.run().collect() } else { witness.order.clone() },
        violated_at: Some(witness.violated_at)
            .filter(|&at| (at as u64) < witness.observed + witness.order.len() as u64),
        next: &witness.next,
        changed_reads: &witness.changed_reads,
    }
}

fn stat(stat: &Stat) -> Json {
    match stat {
        Stat::Count(n) => Json::from(*n),
        Stat::Text(text) => Json::from(text.as_str()),
    }
}
