//! For code scanners and editors: SARIF 2.1.0.
//!
//! A finding is a result. Its witness is one code flow with a single thread flow, because viewers
//! show only the first one: each step starts with its thread in brackets. An answer that is not
//! complete is an unsuccessful invocation, so that a log without results is not taken for a clean
//! bill of health.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use foresee_predict::info::AnalysisInfo;
use foresee_trace::{Finding, FindingKind, Location, Outcome, Verdict, Visible};

use crate::diagram::{Diagram, Row};
use crate::json::visible;
use crate::report::{Report, Suppressed, exit_status, missing};
use crate::uri;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool,
    invocations: [Invocation; 1],
    results: Vec<SarifResult<'a>>,
    column_kind: &'static str,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    information_uri: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Message,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

impl Message {
    fn new(text: impl Into<String>) -> Message {
        Message { text: text.into() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [SarifLocation<'a>; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<SarifLocation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<Stack<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_flows: Vec<CodeFlow<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    partial_fingerprints: BTreeMap<&'static str, String>,
    /// Empty for what counts, if there are suppressions at all: viewers need both.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressions: Option<Vec<SarifSuppression<'a>>>,
    /// Whether the baseline has it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
    properties: BTreeMap<&'static str, Json>,
}

/// A call stack, innermost frame first.
#[derive(Serialize)]
struct Stack<'a> {
    message: Message,
    frames: Vec<StackFrame<'a>>,
}

#[derive(Serialize)]
struct StackFrame<'a> {
    location: SarifLocation<'a>,
}

#[derive(Serialize)]
struct SarifSuppression<'a> {
    kind: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<Physical>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<Logical<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical<'a> {
    fully_qualified_name: &'a str,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeFlow<'a> {
    message: Message,
    thread_flows: [ThreadFlow<'a>; 1],
}

#[derive(Serialize)]
struct ThreadFlow<'a> {
    locations: Vec<FlowStep<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlowStep<'a> {
    location: SarifLocation<'a>,
    execution_order: usize,
    importance: &'static str,
}

/// The report as one SARIF log and a newline.
pub fn report(report: &Report) -> String {
    let mut rules: Vec<Rule> = Vec::new();
    let mut rule_index = |finding: &Finding| {
        let id = rule_id(finding);
        rules.iter().position(|rule| rule.id == id).unwrap_or_else(|| {
            let short_description = Message::new(rule_text(finding));
            rules.push(Rule { id, short_description });
            rules.len() - 1
        })
    };
    let entries = &report.suppressions.all;
    let has_baseline = entries.iter().any(|one| one.is_baseline);
    let has_suppressions = entries.iter().any(|one| !one.is_baseline);
    let counting = report.findings.iter().enumerate().map(|(i, finding)| {
        let drawn = report.witnesses.get(i).and_then(Option::as_ref);
        SarifResult {
            suppressions: has_suppressions.then(Vec::new),
            baseline_state: has_baseline.then_some("new"),
            ..result(finding, drawn, rule_index(finding), &report.name)
        }
    });
    let mut results: Vec<SarifResult<'_>> = counting.collect();
    results.extend(report.suppressed.iter().map(|Suppressed { finding, by }| {
        let one = &entries[*by];
        let suppression = SarifSuppression {
            kind: "external",
            status: "accepted",
            justification: one.reason.as_deref(),
        };
        let suppressions: Vec<SarifSuppression<'_>> =
            Some(suppression).filter(|_| !one.is_baseline).into_iter().collect();
        SarifResult {
            suppressions: has_suppressions.then_some(suppressions),
            baseline_state: has_baseline.then_some(match one.is_baseline {
                true => "unchanged",
                false => "new",
            }),
            ..result(finding, None, rule_index(finding), &report.name)
        }
    }));
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "foresee",
                    semantic_version: env!("CARGO_PKG_VERSION"),
                    information_uri: env!("CARGO_PKG_REPOSITORY"),
                    rules,
                },
            },
            invocations: [invocation(report)],
            results,
            column_kind: "unicodeCodePoints",
        }],
    };
    let mut text = serde_json::to_string(&log).expect("the log has only text keys");
    text.push('\n');
    visible(&text)
}

/// Findings or not, a run that left something out is not a success.
fn invocation(report: &Report) -> Invocation {
    let missing = missing(report);
    let is_mistaken = report.analysed.iter().any(|one| one.outcome == Outcome::Mistake);
    let level = if is_mistaken { "error" } else { "warning" };
    let notes = missing.iter().map(|why| Notification {
        level,
        message: Message::new(format!("not complete: {}", Visible(why))),
    });
    let warnings = report.remarks.warnings.iter().map(|warning| Notification {
        level: "note",
        message: Message::new(Visible(warning).to_string()),
    });
    Invocation {
        execution_successful: missing.is_empty() && exit_status(report) < 2,
        tool_execution_notifications: notes.chain(warnings).collect(),
    }
}

fn rule_id(finding: &Finding) -> String {
    format!("foresee/{}", Visible(&finding.rule()))
}

/// What a rule stands for, whatever the finding.
fn rule_text(finding: &Finding) -> String {
    let about = AnalysisInfo::of(finding.analysis).map_or("", |info| info.about);
    match finding.verdict {
        Verdict::Violated => format!("the property {} is violated", Visible(&finding.property)),
        verdict => format!("{about} ({})", verdict.word()),
    }
}

fn result<'a>(
    finding: &'a Finding,
    drawn: Option<&'a Diagram>,
    rule_index: usize,
    trace: &str,
) -> SarifResult<'a> {
    // A variable may have had its value for long; what matters are the steps that go wrong.
    let places = || finding.sites.iter().filter(|site| site.location().is_some());
    let first = places().position(|site| site.role.identifies()).unwrap_or(0);
    let primary = places().nth(first).and_then(|site| site.location());
    let mut related: Vec<SarifLocation<'a>> = Vec::new();
    for (i, site) in places().enumerate() {
        if i != first {
            let message = format!("{}: {site}", site.role.word());
            related.push(located(site.location(), Some(message)));
        }
        for lock in site.locks.iter().flatten().filter(|lock| lock.location.is_some()) {
            let message = format!("{} holds {lock}", Visible(site.thread_name()));
            related.push(located(lock.location.as_ref(), Some(message)));
        }
    }
    let stacks = places().filter(|site| site.frames.len() > 1).map(|site| {
        let frames = site.frames.iter().flat_map(Location::frames);
        let frames = frames.map(|frame| StackFrame { location: located(Some(frame), None) });
        Stack {
            message: Message::new(format!("{}: {site}", site.role.word())),
            frames: frames.collect(),
        }
    });
    for (id, location) in related.iter_mut().enumerate() {
        location.id = Some(id + 1);
    }
    // A result without any place is shown at the trace.
    let primary = match primary {
        Some(location) => located(Some(location), None),
        None => SarifLocation { physical_location: Some(file(trace)), ..located(None, None) },
    };
    let mut partial_fingerprints = BTreeMap::new();
    if let Some(fingerprint) = finding.fingerprint {
        partial_fingerprints.insert("foresee/v1", fingerprint.to_string());
        // GitHub recognises results by this one, and computes it from source text if it is missing.
        partial_fingerprints.insert("primaryLocationLineHash", fingerprint.to_string());
    }
    let mut properties = BTreeMap::new();
    properties.insert("kind", Json::from(finding.kind.word()));
    if let Some(witness) = &finding.witness {
        properties.insert("reorder", Json::from(witness.reorder.word()));
    }
    if let Some(shown) = finding.shown_by.as_ref().filter(|shown| !shown.traces.is_empty()) {
        properties.insert("traces", Json::from(shown.traces.clone()));
    }
    SarifResult {
        rule_id: rule_id(finding),
        rule_index,
        level: level(finding.kind),
        message: Message::new(headline(finding)),
        locations: [primary],
        related_locations: related,
        stacks: stacks.collect(),
        code_flows: drawn.map(flow).into_iter().collect(),
        partial_fingerprints,
        suppressions: None,
        baseline_state: None,
        properties,
    }
}

/// What happens, with what is observed and what is predicted kept apart.
pub(crate) fn headline(finding: &Finding) -> String {
    let (kind, property) = (finding.kind.word(), Visible(&finding.property));
    format!("{kind} {property}: {}", Visible(&finding.message))
}

/// How much a kind of finding matters.
pub(crate) fn level(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Observed | FindingKind::Predicted => "error",
        FindingKind::ScheduleDependent => "warning",
        FindingKind::Conditional => "note",
    }
}

fn flow(diagram: &Diagram) -> CodeFlow<'_> {
    let step = |(order, row): (usize, &'_ Row)| {
        let what = if row.is_next { "is about to do " } else { "" };
        let text = format!("[{}] {what}{}", diagram.threads[row.column], row.text);
        let is_essential = row.is_next || row.overtakes.is_some();
        (order + 1, text, if is_essential { "essential" } else { "important" })
    };
    let locations = diagram.rows.iter().enumerate().map(|(i, row)| {
        let (execution_order, text, importance) = step((i, row));
        let location = located(row.location.as_ref(), Some(text));
        FlowStep { location, execution_order, importance }
    });
    CodeFlow {
        message: Message::new("a schedule that shows it"),
        thread_flows: [ThreadFlow { locations: locations.collect() }],
    }
}

fn located(location: Option<&Location>, message: Option<String>) -> SarifLocation<'_> {
    let function = location.and_then(|location| location.function.as_deref());
    let logical = function.map(|name| Logical { fully_qualified_name: name, kind: "function" });
    SarifLocation {
        id: None,
        physical_location: location.and_then(physical),
        logical_locations: logical.into_iter().collect(),
        message: message.map(Message::new),
    }
}

fn physical(location: &Location) -> Option<Physical> {
    let mut physical = file(location.file.as_deref()?);
    let line = location.line.filter(|&line| line > 0);
    let start_column = location.column.filter(|&column| column > 0);
    physical.region = line.map(|start_line| Region { start_line, start_column });
    Some(physical)
}

fn file(name: &str) -> Physical {
    Physical { artifact_location: Artifact { uri: uri::of_file(name) }, region: None }
}
