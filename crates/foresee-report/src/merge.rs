//! Merges the reports of several runs of a program, of several processes of one run, or on several traces.

use std::collections::HashMap;

use foresee_predict::Analysed;
use foresee_predict::info::AnalysisInfo;
use foresee_trace::{Finding, FindingKind, Fingerprint, Outcome, Remarks, ShownBy, Word};

use crate::diagram::Diagram;
use crate::report::{Report, missing};

/// How many different statements on one property, and how many warnings on traces, are listed.
const LISTED: usize = 20;

/// What the reports are about that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Several runs: this many, some of which may have several reports.
    Runs(usize),
    /// The processes of one run.
    Processes,
    /// What a program of one run recorded itself.
    Recordings,
    /// This many traces, some of which may have several reports.
    Traces(usize),
}

impl Parts {
    /// One of them, and several.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Parts::Runs(_) => ["run", "runs"],
            Parts::Processes => ["process", "processes"],
            Parts::Recordings => ["recording", "recordings"],
            Parts::Traces(_) => ["trace", "traces"],
        }
    }
}

/// The findings of several reports, each once, with the number of runs and all the tests that show it.
pub fn merge(reports: Vec<(String, Report)>, parts: Parts) -> Option<Report> {
    let mut merged = Merger::new(parts);
    for (label, report) in reports {
        merged.add(&label, report);
    }
    merged.finish()
}

/// Merges reports one after the other.
#[derive(Debug)]
pub struct Merger {
    parts: Parts,
    /// What was merged so far; its findings and conclusions are in the other fields.
    all: Option<Report>,
    found: Vec<Found>,
    /// Where each finding is among them.
    places: HashMap<Key, usize>,
    analysed: Vec<Together>,
    /// Where each analysis of a property is among them.
    analyses: HashMap<(Word, Option<String>), usize>,
    /// The first trace whose answer is not complete, and why.
    open: Option<String>,
}

/// A finding, and who shows it.
#[derive(Debug)]
struct Found {
    finding: Finding,
    witness: Option<Diagram>,
    tests: Vec<String>,
    /// The report that it was taken from.
    from: String,
    by: Vec<String>,
}

/// What is the same in two reports of one finding: the analysis, the property, and the fingerprint or the message.
type Key = (Word, String, Option<Fingerprint>, String);

fn key(finding: &Finding) -> Key {
    let message = match finding.fingerprint {
        Some(_) => String::new(),
        None => finding.message.clone(),
    };
    (finding.analysis, finding.property.clone(), finding.fingerprint, message)
}

/// What an analysis of a property said, in all reports.
#[derive(Debug)]
struct Together {
    name: Word,
    property: Option<String>,
    /// As complete as the least complete of them.
    outcome: Outcome,
    /// Each statement, with how often it was made.
    statements: Vec<(String, usize)>,
    notes: Vec<String>,
}

impl Merger {
    /// Merges reports on these parts.
    pub fn new(parts: Parts) -> Merger {
        Merger {
            parts,
            all: None,
            found: Vec::new(),
            places: HashMap::new(),
            analysed: Vec::new(),
            analyses: HashMap::new(),
            open: None,
        }
    }

    /// Adds a report; `label` names the run or the trace. Reports with one label come one after the other.
    pub fn add(&mut self, label: &str, mut report: Report) {
        if matches!(self.parts, Parts::Traces(_)) {
            if self.open.is_none() {
                self.open = missing(&report).first().map(|why| format!("{label}: {why}"));
            }
            name_trace(label, &mut report.remarks);
        }
        let findings = std::mem::take(&mut report.findings);
        let witnesses = std::mem::take(&mut report.witnesses).into_iter();
        let tests = std::mem::take(&mut report.tests).into_iter();
        let witnesses = witnesses.chain(std::iter::repeat(None));
        let tests = tests.chain(std::iter::repeat(Vec::new()));
        for ((finding, witness), tests) in findings.into_iter().zip(witnesses).zip(tests) {
            self.add_finding(label, finding, witness, tests);
        }
        for one in std::mem::take(&mut report.analysed) {
            self.add_analysed(one);
        }
        let Some(all) = &mut self.all else {
            self.all = Some(report);
            return;
        };
        // Runs of one program are about the same things, which are not counted again.
        if !matches!(self.parts, Parts::Runs(_)) {
            let (sum, one) = (&mut all.report.trace, report.report.trace);
            sum.events += one.events;
            sum.threads += one.threads;
            sum.variables += one.variables;
            sum.locks += one.locks;
        }
        let remarks = &mut all.remarks;
        let more = std::mem::take(&mut report.remarks);
        remarks.cut_short = remarks.cut_short.take().or(more.cut_short);
        remarks.partial = remarks.partial.take().or(more.partial);
        for warning in more.warnings {
            let is_known = remarks.warnings.contains(&warning);
            let has_room = remarks.warnings.len() < LISTED || matches!(self.parts, Parts::Runs(_));
            if !is_known && has_room {
                remarks.warnings.push(warning);
            }
        }
    }

    fn add_finding(
        &mut self,
        label: &str,
        finding: Finding,
        witness: Option<Diagram>,
        tests: Vec<String>,
    ) {
        let key = key(&finding);
        let Some(&at) = self.places.get(&key) else {
            self.places.insert(key, self.found.len());
            let (from, by) = (label.to_owned(), vec![label.to_owned()]);
            self.found.push(Found { finding, witness, tests, from, by });
            return;
        };
        let known = &mut self.found[at];
        if known.by.last().is_none_or(|last| last != label) {
            known.by.push(label.to_owned());
        }
        for test in tests {
            if !known.tests.contains(&test) {
                known.tests.push(test);
            }
        }
        // An observed finding is stronger than a predicted one.
        if known.finding.kind != FindingKind::Observed && finding.kind == FindingKind::Observed {
            (known.finding, known.witness) = (finding, witness);
            label.clone_into(&mut known.from);
        }
    }

    fn add_analysed(&mut self, one: Analysed) {
        let key = (one.name, one.property.clone());
        let at = *self.analyses.entry(key).or_insert_with(|| {
            self.analysed.push(Together {
                name: one.name,
                property: one.property.clone(),
                outcome: Outcome::Exhausted,
                statements: Vec::new(),
                notes: Vec::new(),
            });
            self.analysed.len() - 1
        });
        let known = &mut self.analysed[at];
        if openness(one.name, one.outcome) > openness(one.name, known.outcome) {
            known.outcome = one.outcome;
        }
        match known.statements.iter_mut().find(|(statement, _)| *statement == one.statement) {
            Some((_, times)) => *times += 1,
            None => known.statements.push((one.statement, 1)),
        }
        for note in one.notes {
            if !known.notes.contains(&note) {
                known.notes.push(note);
            }
        }
    }

    /// One report on everything; `None` if there was none.
    pub fn finish(self) -> Option<Report> {
        let Merger { parts, all, found, analysed, open, .. } = self;
        let mut all = all?;
        for Found { mut finding, witness, tests, from, by } in found {
            let (runs, traces) = (by.len(), by);
            finding.shown_by = match parts {
                Parts::Runs(of) => Some(ShownBy { runs, of, from, traces: Vec::new() }),
                Parts::Traces(of) => Some(ShownBy { runs, of, from, traces }),
                Parts::Processes | Parts::Recordings => None,
            };
            all.findings.push(finding);
            all.witnesses.push(witness);
            all.tests.push(tests);
        }
        let conclude = |together: Together| together.conclude(parts.words());
        all.analysed = analysed.into_iter().map(conclude).collect();
        // Answers for one trace do not answer for another, as those for properties of one name would.
        if let Some(why) = open.filter(|_| missing(&all).is_empty()) {
            all.remarks.add_partial(&why);
        }
        Some(all)
    }
}

/// How much an outcome leaves open: more than another that is merged with it, it is what counts.
fn openness(analysis: Word, outcome: Outcome) -> u8 {
    let defers = AnalysisInfo::of(analysis).is_some_and(|info| info.defers_after(outcome));
    match outcome {
        Outcome::Exhausted => 0,
        Outcome::Mistake => 3,
        _ if defers => 1,
        _ => 2,
    }
}

/// Says which trace remarks are about.
fn name_trace(label: &str, remarks: &mut Remarks) {
    let texts = remarks.cut_short.iter_mut().chain(&mut remarks.partial);
    for text in texts.chain(&mut remarks.warnings) {
        *text = format!("{label}: {text}");
    }
}

impl Together {
    fn conclude(self, [one, many]: [&str; 2]) -> Analysed {
        let told = self.statements.iter().map(|(statement, times)| match *times {
            1 => format!("in 1 {one}: {statement}"),
            n => format!("in {n} {many}: {statement}"),
        });
        let told = told.take(LISTED);
        let rest: usize = self.statements.iter().skip(LISTED).map(|(_, times)| times).sum();
        let told = told.chain((rest > 0).then(|| format!("and other statements in {rest} {many}")));
        Analysed {
            name: self.name,
            property: self.property,
            outcome: self.outcome,
            conclusion: foresee_predict::Conclusion::Other,
            statement: told.collect::<Vec<_>>().join("; "),
            notes: self.notes,
            stats: Vec::new(),
        }
    }
}
