//! For machines: the object described in the contract. Fields are added, never renamed.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use foresee_predict::{Analysed, Stat};
use foresee_trace::{
    Finding, FindingKind, Fork, HeldLock, Location, Op, ShownBy, Site, SiteThread, Subject, Target,
    TargetKind, Witness, is_hidden,
};

use crate::diagram::{Diagram, Row};
use crate::facts::{JsonFact, fact};
use crate::report::{Report, missing};

/// The maximum number of events that a witness lists although they happen as observed.
const LISTED: u64 = 10_000;

/// The report of `foresee check`, `run` and `observe` with `--format json`. Fields may be added.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Report"))]
pub(crate) struct Root<'a> {
    /// The version that wrote it.
    foresee: &'static str,
    /// What every claim about other runs rests on.
    assumptions: &'static str,
    trace: Trace<'a>,
    /// Whether everything that was asked was answered; what was found does not matter for it.
    complete: bool,
    /// What was looked for, and how far.
    analyses: Vec<Analysis<'a>>,
    /// What was not wanted, and how many findings that covered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<JsonSuppression<'a>>,
    summary: Summary,
}

/// Findings that are not wanted.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Suppression"))]
struct JsonSuppression<'a> {
    /// As it was written.
    pattern: &'a str,
    /// The file, and the line in it.
    at: &'a str,
    /// How many findings it has covered.
    findings: u64,
    /// Why these are not wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The last day on which it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Whether that day is over, so that it covers nothing.
    #[serde(skip_serializing_if = "is_false")]
    expired: bool,
    /// Whether it is an entry of the baseline: a finding that was known before.
    #[serde(skip_serializing_if = "is_false")]
    baseline: bool,
}

/// The trace.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Trace<'a> {
    /// The name of the file, or what stands for it.
    name: &'a str,
    events: u64,
    threads: u64,
    variables: u64,
    locks: u64,
    /// Why the trace ends before the program did.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<&'a str>,
    /// Why the trace does not hold everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

/// One search, and what it found.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Analysis<'a> {
    name: &'static str,
    /// The property, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    property: Option<&'a str>,
    /// How much of what could be searched was searched.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::outcomes"))]
    outcome: &'static str,
    /// The answer, in a sentence.
    statement: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    findings: Vec<JsonFinding<'a>>,
    /// Figures: numbers, and texts for numbers that may be too large.
    stats: Map<String, Json>,
}

/// A violation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Finding"))]
struct JsonFinding<'a> {
    /// From one, in the order of the report.
    id: usize,
    /// Identifies the finding from run to run. Missing if an index alone gave the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = r"^F-[0-9a-f]{12}$")))]
    fingerprint: Option<String>,
    #[cfg_attr(test, schemars(schema_with = "crate::schema::kinds"))]
    kind: &'static str,
    /// The smallest space of reorderings that is known to have the witness.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "crate::schema::reorderings"))]
    reorder: Option<&'static str>,
    /// The property or check that is violated.
    property: &'a str,
    /// The property, or the check with what goes wrong: `race/concurrent-access`.
    rule: String,
    /// What goes wrong.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::verdicts"))]
    verdict: &'static str,
    /// What happens, in one sentence.
    message: &'a str,
    /// The event at which it happens, if it is in the captured order.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    /// The events that it consists of.
    sites: Vec<JsonSite<'a>>,
    /// What it is about as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    about: Vec<JsonSubject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<JsonWitness<'a>>,
    /// What helps to understand it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<JsonFact<'a>>,
    /// The facts in words, by label. What programs need is in the other fields.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, String>"))]
    details: Map<String, Json>,
    /// Which of several runs or traces show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<JsonRuns<'a>>,
    /// The tests of the program that show it, where the trace marks them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tests: &'a [String],
    /// The order that shows it as a schedule for `foresee replay`: see schedule.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    /// Whether it was seen to happen in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "crate::schema::confirmations"))]
    confirmation: Option<&'static str>,
    /// How it happened there, or why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_how: Option<&'a str>,
}

/// Which of several runs or traces show a finding.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Runs"))]
struct JsonRuns<'a> {
    /// How many do.
    shown_by: usize,
    /// The total number.
    of: usize,
    /// The run or trace that the finding was taken from.
    from: &'a str,
    /// The traces that show it, in a report on a batch.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    traces: &'a [String],
}

/// Something with a name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Subject"))]
pub(crate) struct JsonSubject<'a> {
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
}

/// An event that a finding is about. Only its role is known for certain; of a program's failure
/// there is no event, and of a step that was not looked up there is nothing else.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Site"))]
struct JsonSite<'a> {
    #[cfg_attr(test, schemars(schema_with = "crate::schema::roles"))]
    role: &'static str,
    /// The index of the event in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    /// What is done, in the word of the std format.
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'static str>,
    /// To what.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JsonSubject<'a>>,
    /// Both, as the std format has it, with values where they are known.
    #[serde(skip_serializing_if = "str::is_empty")]
    step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<JsonThread<'a>>,
    /// Where in the source.
    frames: Vec<JsonFrame<'a>>,
    /// The locks that the thread holds just before the event, in the order in which they were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<Vec<JsonLock<'a>>>,
}

/// A thread.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Thread"))]
struct JsonThread<'a> {
    name: &'a str,
    /// The event that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked: Option<JsonFork<'a>>,
}

/// How a thread was started.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Fork"))]
struct JsonFork<'a> {
    /// The name of the thread that started it.
    by: &'a str,
    event: u64,
    frames: Vec<JsonFrame<'a>>,
}

/// A call, innermost first.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Frame"))]
pub(crate) struct JsonFrame<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// Whether the function was inlined into that of the next frame.
    #[serde(skip_serializing_if = "is_false")]
    inlined: bool,
}

/// A lock that is held.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Lock"))]
pub(crate) struct JsonLock<'a> {
    name: &'a str,
    /// Whether other readers may hold it as well.
    #[serde(skip_serializing_if = "is_false")]
    shared: bool,
    /// The event that took it.
    event: u64,
    /// Where that was.
    frames: Vec<JsonFrame<'a>>,
}

/// An order of events that shows a violation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Witness"))]
struct JsonWitness<'a> {
    /// How many events come first, as observed, and are not listed in `order`: only in witnesses that
    /// would be too long otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<u64>,
    /// The indices of the events. With each event it holds everything that must precede it.
    order: Vec<u64>,
    /// The position in it of the step that violates. Missing if the order keeps the property.
    #[serde(skip_serializing_if = "Option::is_none")]
    violated_at: Option<usize>,
    /// The events that the threads are about to do after it, where the violation consists of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    next: &'a [u64],
    /// The reads in it that see another value than in the trace.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changed_reads: &'a [u64],
    /// The last steps of the run, from shortly before it differs from what was observed, and then
    /// what its threads are about to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<JsonStep<'a>>,
}

/// A step of a witness.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Step"))]
struct JsonStep<'a> {
    /// The index of the event in the trace.
    event: u64,
    /// What is done, in the word of the std format.
    op: &'static str,
    /// To what.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JsonSubject<'a>>,
    /// Both, as the std format has it; a value that is not known is `?`.
    step: &'a str,
    thread: JsonThread<'a>,
    frames: Vec<JsonFrame<'a>>,
    /// The first event observed before it that has not happened yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    overtakes: Option<u64>,
    /// Whether it has not happened yet, but is what its thread is about to do.
    #[serde(skip_serializing_if = "is_false")]
    is_next: bool,
}

/// How many findings there are of each kind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Summary {
    observed: usize,
    predicted: usize,
    #[serde(skip_serializing_if = "is_zero")]
    schedule_dependent: usize,
    #[serde(skip_serializing_if = "is_zero")]
    conditional: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<u64>,
    /// How many more were found that the baseline knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<u64>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

pub(crate) fn is_false(is: &bool) -> bool {
    !*is
}

/// The report as one JSON object and a newline.
pub fn report(report: &Report) -> String {
    let facts = report.trace;
    let found = |analysis: &Analysed| -> Vec<JsonFinding<'_>> {
        let all = report.findings.iter().enumerate();
        all.filter(|(_, f)| f.analysis == analysis.name)
            .filter(|(_, f)| analysis.property.as_ref().is_none_or(|p| *p == f.property))
            .map(|(i, f)| {
                finding(i, f, report.witnesses.get(i).and_then(Option::as_ref), tests_of(report, i))
            })
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
    let has_any = |baseline| report.suppressions.all.iter().any(|one| one.is_baseline == baseline);
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
        complete: missing(report).is_empty(),
        analyses,
        suppressions: report
            .suppressions
            .all
            .iter()
            .map(|one| JsonSuppression {
                pattern: &one.text,
                at: &one.place,
                findings: one.used,
                reason: one.reason.as_deref(),
                until: one.until.map(|day| day.to_string()),
                expired: one.is_expired,
                baseline: one.is_baseline,
            })
            .collect(),
        summary: Summary {
            observed: count(FindingKind::Observed),
            predicted: count(FindingKind::Predicted),
            schedule_dependent: count(FindingKind::ScheduleDependent),
            conditional: count(FindingKind::Conditional),
            suppressed: has_any(false).then(|| report.suppressions.used()),
            known: has_any(true).then(|| report.suppressions.known()),
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
    serde_json::to_string(&self::finding(0, finding, None, &[]))
        .expect("a finding has only text keys")
}

fn tests_of(report: &Report, index: usize) -> &[String] {
    report.tests.get(index).map_or(&[], Vec::as_slice)
}

fn finding<'a>(
    index: usize,
    finding: &'a Finding,
    drawn: Option<&'a Diagram>,
    tests: &'a [String],
) -> JsonFinding<'a> {
    let details = finding.details.iter();
    let details =
        details.map(|detail| (detail.label.clone(), Json::from(detail.text(&finding.sites))));
    let shown = finding.shown_by.iter();
    let shown = shown.map(|shown| ("runs".to_owned(), Json::from(shown.to_string())));
    let runs = |shown: &'a ShownBy| JsonRuns {
        shown_by: shown.runs,
        of: shown.of,
        from: &shown.from,
        traces: &shown.traces,
    };
    JsonFinding {
        id: index + 1,
        fingerprint: finding.fingerprint.map(|fingerprint| fingerprint.to_string()),
        kind: finding.kind.word(),
        reorder: finding.witness.as_ref().map(|w| w.reorder.word()),
        property: &finding.property,
        rule: finding.rule(),
        verdict: finding.verdict.word(),
        message: &finding.message,
        event: finding.event,
        sites: finding.sites.iter().map(site).collect(),
        about: finding.about.iter().map(subject).collect(),
        witness: finding.witness.as_ref().map(|w| witness(w, drawn)),
        facts: finding.details.iter().map(fact).collect(),
        details: details.chain(shown).collect(),
        runs: finding.shown_by.as_ref().map(runs),
        tests,
        schedule: finding.schedule.as_deref(),
        confirmation: finding.confirmation.as_ref().map(|confirmation| confirmation.is.word()),
        confirmed_how: finding.confirmation.as_ref().map(|confirmation| &*confirmation.how),
    }
}

pub(crate) fn subject(subject: &Subject) -> JsonSubject<'_> {
    JsonSubject { kind: subject.kind(), name: subject.name() }
}

fn site<'a>(site: &'a Site) -> JsonSite<'a> {
    JsonSite {
        role: site.role.word(),
        event: site.event,
        op: site.op.map(Op::word),
        target: site.target.as_ref().map(target),
        step: &site.step,
        thread: site.thread.as_ref().map(thread),
        frames: site.frames.iter().flat_map(|location| frames(Some(location))).collect(),
        locks: site.locks.as_ref().map(|locks| locks.iter().map(lock).collect()),
    }
}

fn target(target: &Target) -> JsonSubject<'_> {
    JsonSubject { kind: target_kind(target.kind), name: &target.name }
}

fn target_kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::None => "nothing",
        TargetKind::Var => "variable",
        TargetKind::Lock => "lock",
        TargetKind::Cond => "condition",
        TargetKind::Thread => "thread",
        TargetKind::Sym => "name",
    }
}

fn thread<'a>(thread: &'a SiteThread) -> JsonThread<'a> {
    let fork = |fork: &'a Fork| JsonFork {
        by: &fork.by,
        event: fork.event,
        frames: fork.location.iter().chain(&fork.calls).flat_map(|at| frames(Some(at))).collect(),
    };
    JsonThread { name: &thread.name, forked: thread.forked.as_ref().map(fork) }
}

pub(crate) fn lock(lock: &HeldLock) -> JsonLock<'_> {
    let HeldLock { name, shared, event, location, calls } = lock;
    let frames = location.iter().chain(calls).flat_map(|at| frames(Some(at))).collect();
    JsonLock { name, shared: *shared, event: *event, frames }
}

/// A place and what it was inlined into.
pub(crate) fn frames(location: Option<&Location>) -> Vec<JsonFrame<'_>> {
    let all = location.into_iter().flat_map(Location::frames);
    all.map(|frame| JsonFrame {
        file: frame.file.as_deref(),
        line: frame.line,
        column: frame.column,
        function: frame.function.as_deref(),
        inlined: frame.inlined_from.is_some(),
    })
    .collect()
}

fn witness<'a>(witness: &'a Witness, drawn: Option<&'a Diagram>) -> JsonWitness<'a> {
    let is_listed = witness.observed <= LISTED;
    let step = |diagram: &'a Diagram, row: &'a Row| JsonStep {
        event: row.index,
        op: row.op.word(),
        target: row.target.as_ref().map(target),
        step: &row.text,
        thread: JsonThread { name: &diagram.threads[row.column], forked: None },
        frames: frames(row.location.as_ref()),
        overtakes: row.overtakes,
        is_next: row.is_next,
    };
    let steps = drawn.into_iter().flat_map(|d| d.rows.iter().map(move |row| step(d, row)));
    JsonWitness {
        observed: (!is_listed).then_some(witness.observed),
        order: if is_listed { witness.run().collect() } else { witness.order.clone() },
        violated_at: Some(witness.violated_at)
            .filter(|&at| (at as u64) < witness.observed + witness.order.len() as u64),
        next: &witness.next,
        changed_reads: &witness.changed_reads,
        steps: steps.collect(),
    }
}

fn stat(stat: &Stat) -> Json {
    match stat {
        Stat::Count(n) => Json::from(*n),
        Stat::Text(text) => Json::from(text.as_str()),
    }
}
