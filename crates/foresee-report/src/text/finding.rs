//! One finding in full. Every kind has the same layout: what happens and how sure that is, the
//! steps that it consists of with their places, locks and threads, a schedule that shows it, why
//! that schedule is possible, what is not promised, and what to do next.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use foresee_support::count::count;
use foresee_trace::{
    Confirmation, Confirmed, Detail, Fact, Finding, FindingKind, Fork, Location, Role, Site,
    SiteThread, Space, Subject, Target, TargetKind, Verdict, Visible, Witness,
};

use super::short::{self, Shorter};
use super::table::{Rank, Ranks, Table};
use super::{Level, Options};
use crate::report::Report;

/// How many sites that no fact mentions are listed.
const OTHER_SITES: usize = 5;

/// How many frames of a call stack are shown without `-v`.
const FRAMES: usize = 8;

/// Places of a call stack are aligned behind functions of up to this width.
const ALIGNED: usize = 32;

/// Facts about the search, not about the program.
const FIGURES: &[&str] = &[
    "certain since event",
    "context switches",
    "shown by",
    "still to come",
    "swapped pairs of relevant events",
];

/// Counts of reads and writes of which one is shown.
const COUNTED: &[&str] = &["reads at this place", "other writes they could see"];

/// Facts that the schedule shows better.
const IN_SCHEDULE: &[&str] = &["events of the pattern", "events that led there"];

/// The first line: `PREDICTED race on count [1] F-ab965170b385`.
pub(crate) fn headline(finding: &Finding, number: usize, options: &Options) -> String {
    let style = options.style;
    let word = style.alarm(&finding.kind.word().to_uppercase());
    let property = style.bold(&visible(&short::name(&finding.property)));
    let about = match subject(finding) {
        Some(name) => format!(" on {}", visible(&short::name(name))),
        None => String::new(),
    };
    let fingerprint = match finding.fingerprint {
        Some(fingerprint) => format!(" {}", style.dim(&fingerprint.to_string())),
        None => String::new(),
    };
    let confirmed = match &finding.confirmation {
        Some(Confirmation { is: Confirmed::Yes, .. }) => " confirmed",
        _ => "",
    };
    format!("{word} {property}{about} [{number}]{fingerprint}{confirmed}")
}

/// What a check's finding is about: the variable of a race, the object of a lifetime.
pub(crate) fn subject(finding: &Finding) -> Option<&str> {
    if finding.verdict == Verdict::Violated {
        return None;
    }
    let about = finding.about.iter().find_map(|subject| match subject {
        Subject::Variable(name) | Subject::Object(name) => Some(name.as_str()),
        _ => None,
    });
    let variable = |target: &'_ Target| target.kind == TargetKind::Var;
    let sites = || finding.sites.iter().filter(|site| site.role.identifies());
    let target = || sites().filter_map(|site| site.target.as_ref());
    about.or_else(|| target().find(|target| variable(target)).map(|target| target.name.as_str()))
}

fn visible(text: &str) -> String {
    Visible(text).to_string()
}

/// Writes a finding below its headline.
pub(crate) fn write(report: &Report, i: usize, options: &Options, out: &mut String) -> fmt::Result {
    let finding = &report.findings[i];
    let told = Told {
        finding,
        options,
        shorter: match options.is_wide {
            true => Shorter::default(),
            false => Shorter::of(finding, &options.folder),
        },
    };
    told.line("", &finding.message, out)?;
    if let Some(Confirmation { is, how }) = &finding.confirmation {
        let word = match is {
            Confirmed::Yes => "CONFIRMED in the program",
            Confirmed::Diverged => "replay diverged (which refutes nothing)",
            Confirmed::NotForced => "replay could not force it (which refutes nothing)",
            Confirmed::NotTried => "replay not tried",
        };
        writeln!(out, "  {}: {}", options.style.bold(word), Visible(how))?;
    }
    if let Some(tests) = report.tests.get(i).filter(|tests| !tests.is_empty()) {
        let word = if tests.len() == 1 { "test" } else { "tests" };
        writeln!(out, "  {word}: {}", Visible(&tests.join(", ")))?;
    }
    if let Some(shown) = &finding.shown_by {
        let word = if shown.traces.is_empty() { "runs" } else { "traces" };
        writeln!(out, "  {word}: {}", Visible(&shown.to_string()))?;
    }
    let table = match report.witnesses.get(i).and_then(Option::as_ref) {
        Some(diagram) => Some(Table::of(diagram, &ranks(finding), options.is_wide)),
        None if finding.event.is_some() => Table::of_sites(&finding.sites, options.is_wide),
        None => None,
    };
    told.facts(table.is_some(), out)?;
    if let Some(table) = &table {
        let mut drawn = String::new();
        let width = if options.is_wide { usize::MAX } else { options.width.saturating_sub(2) };
        table.draw(options.style, width, &mut drawn)?;
        writeln!(out)?;
        for line in drawn.lines() {
            let indent = if line.is_empty() { "" } else { "  " };
            writeln!(out, "{indent}{line}")?;
        }
        writeln!(out)?;
    }
    if let Some(why) = why_possible(finding) {
        writeln!(out, "  possible: {why}")?;
    }
    if let Some(not) = not_promised(finding) {
        writeln!(out, "  not promised: {not}")?;
    }
    told.next_steps(report, out)
}

/// Where threads come from, with those that come from there.
#[derive(Default)]
struct Threads<'f>(Vec<(String, Vec<&'f str>, Option<&'f Fork>)>);

impl<'f> Threads<'f> {
    fn add(&mut self, thread: &'f SiteThread) {
        let origin = origin(thread);
        match self.0.iter_mut().find(|(known, ..)| *known == origin) {
            Some((_, names, _)) if names.contains(&thread.name.as_str()) => {}
            Some((_, names, _)) => names.push(&thread.name),
            None => self.0.push((origin, vec![&thread.name], thread.forked.as_ref())),
        }
    }
}

/// Where a thread comes from. Where a library starts threads for the program, the program's call of it counts.
fn origin(thread: &SiteThread) -> String {
    let Some(fork) = &thread.forked else { return thread.origin() };
    match &fork.location {
        Some(place) if short::is_of_libraries(place) => {
            match fork.calls.iter().find(|call| !short::is_of_libraries(call)) {
                Some(call) => format!("forked by {} at {call}", fork.by),
                None => format!("forked by {}", fork.by),
            }
        }
        _ => thread.origin(),
    }
}

/// A finding, and how to tell of it.
struct Told<'a> {
    finding: &'a Finding,
    options: &'a Options,
    shorter: Shorter,
}

impl Told<'_> {
    fn line(&self, label: &str, text: &str, out: &mut String) -> fmt::Result {
        let text = self.shorter.apply(text);
        match label {
            "" => writeln!(out, "  {}", Visible(&text)),
            label => writeln!(out, "  {}: {}", Visible(&self.shorter.apply(label)), Visible(&text)),
        }
    }

    /// What there is to know, the sites with their locks and frames.
    fn facts(&self, has_table: bool, out: &mut String) -> fmt::Result {
        let finding = self.finding;
        let mut told: HashSet<usize> = HashSet::new();
        let mentioned: HashSet<usize> = finding.details.iter().flat_map(sites_of).collect();
        // The step by which a property is violated has no fact of its own.
        let is_told = |(i, site): &(usize, &Site)| {
            site.role == Role::Violation && !mentioned.contains(i) && site.op.is_some()
        };
        for (i, _) in finding.sites.iter().enumerate().filter(is_told) {
            self.site("violated by", i, out)?;
            told.insert(i);
        }
        let mut threads = Threads::default();
        for detail in &finding.details {
            let label = detail.label.as_str();
            let is_figure = FIGURES.contains(&label) || is_single(detail);
            if is_figure && self.options.level != Level::Verbose
                || has_table && IN_SCHEDULE.contains(&label)
                || is_in_headline(detail, finding, self.options.is_wide)
            {
                continue;
            }
            match &detail.fact {
                Fact::Sites(sites) => {
                    for &i in sites {
                        self.site(label, i, out)?;
                        told.insert(i);
                    }
                }
                Fact::LocksAt(i) if told.contains(i) => {}
                Fact::ThreadOf(i) => {
                    let thread = finding.sites.get(*i).and_then(|site| site.thread.as_ref());
                    thread.into_iter().for_each(|thread| threads.add(thread));
                }
                Fact::State { since: Some(event), .. } => {
                    let is_it = |site: &&Site| site.event == Some(*event);
                    let site = finding.sites.iter().find(is_it);
                    let place = site.and_then(Site::location).map_or(String::new(), |place| {
                        format!(" at {}", short::path(place, &self.options.folder))
                    });
                    let by = site.map_or("", Site::thread_name);
                    let by =
                        if by.is_empty() { String::new() } else { format!(", by {by}{place}") };
                    self.line(label, &format!("{}{by}", detail.text(&finding.sites)), out)?;
                }
                Fact::Conflict(ends) => {
                    self.line(label, &detail.text(&finding.sites), out)?;
                    told.extend(ends);
                }
                _ => self.line(label, &detail.text(&finding.sites), out)?,
            }
        }
        if threads.0.is_empty() {
            // Of a thread that was there from the start there is nothing to say.
            let all = finding.sites.iter().filter_map(|site| site.thread.as_ref());
            all.filter(|thread| thread.forked.is_some()).for_each(|thread| threads.add(thread));
        }
        for (origin, names, fork) in threads.0 {
            let word = if names.len() == 1 { "thread" } else { "threads" };
            self.line(&format!("{word} {}", names.join(", ")), &origin, out)?;
            let has_calls = |fork: &&Fork| !fork.calls.is_empty();
            if let Some(fork) = fork.filter(has_calls)
                && self.options.level == Level::Verbose
            {
                self.calls(fork.location.as_ref(), &fork.calls, out)?;
            }
        }
        let is_other = |(i, site): &(usize, &Site)| {
            let is_shown = matches!(site.role, Role::Step | Role::State | Role::Violation);
            !is_shown && !mentioned.contains(i) && !told.contains(i) && site.op.is_some()
        };
        for (i, site) in finding.sites.iter().enumerate().filter(is_other).take(OTHER_SITES) {
            self.site(site.role.word(), i, out)?;
        }
        Ok(())
    }

    /// A step with its place, the locks held, and the calls that led there.
    fn site(&self, label: &str, index: usize, out: &mut String) -> fmt::Result {
        let Some(site) = self.finding.sites.get(index) else { return Ok(()) };
        let held = match site.locks.as_deref() {
            None => None,
            Some([]) if site.role == Role::Violation => None,
            Some([]) => Some("holds no lock".to_owned()),
            Some(locks) => {
                let all: Vec<String> = locks.iter().map(ToString::to_string).collect();
                Some(format!("holds {}", all.join("; ")))
            }
        };
        match held {
            None => self.line(label, &site.to_string(), out)?,
            Some(held) => {
                let start = out.len();
                self.line(label, &format!("{site}; {held}"), out)?;
                // What does not fit beside the step stands below it.
                if !self.options.is_wide && out[start..].trim_end().width() > self.options.width {
                    out.truncate(start);
                    self.line(label, &site.to_string(), out)?;
                    writeln!(out, "    {}", Visible(&self.shorter.apply(&held)))?;
                }
            }
        }
        let frames: Vec<&Location> = site.frames.iter().flat_map(Location::frames).collect();
        if frames.len() > 1 {
            self.frames(&frames, out)?;
        }
        let locks = site.locks.iter().flatten().filter(|lock| !lock.calls.is_empty());
        for lock in locks.filter(|_| self.options.level == Level::Verbose) {
            writeln!(out, "    {} was taken at", Visible(&self.shorter.apply(&lock.name)))?;
            self.calls(lock.location.as_ref(), &lock.calls, out)?;
        }
        Ok(())
    }

    /// A place and the calls that led there.
    fn calls(&self, at: Option<&Location>, calls: &[Location], out: &mut String) -> fmt::Result {
        let all: Vec<&Location> = at.into_iter().chain(calls).flat_map(Location::frames).collect();
        self.frames(&all, out)
    }

    /// A call stack, with runs of library frames folded.
    fn frames(&self, frames: &[&Location], out: &mut String) -> fmt::Result {
        let is_cut = self.options.level != Level::Verbose && frames.len() > FRAMES + 1;
        let shown = if is_cut { FRAMES } else { frames.len() };
        let function = |frame: &Location| {
            let function = frame.function.as_deref().unwrap_or("?");
            Visible(&match self.options.is_wide {
                true => function.to_owned(),
                false => short::cut(&short::templates(function), self.options.width / 2),
            })
            .to_string()
        };
        // Places stand below each other, unless a name is so long that they would be far away.
        let widths = frames[..shown].iter().map(|frame| function(frame).width());
        let widest = widths.filter(|&width| width <= ALIGNED).max().unwrap_or(0);
        let mut number = 0;
        while number < shown {
            let frame = frames[number];
            let function = function(frame);
            let gap = " ".repeat(widest.saturating_sub(function.width()) + 2);
            let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
            let file = short::file(frame, &self.options.folder);
            writeln!(out, "    #{number} {function}{gap}{}{line}", Visible(file))?;
            number += 1;
            let is_folded = |frame: &&&Location| short::is_library(frame) && !self.options.is_wide;
            let run = frames[number..].iter().take_while(is_folded).count();
            if short::is_library(frame) && run > 1 {
                writeln!(out, "       … {run} more frames of libraries")?;
                number += run;
            }
        }
        match frames.len() - number.min(frames.len()) {
            0 => Ok(()),
            more => writeln!(out, "       … {}, which -v shows", count(more, "more frame")),
        }
    }

    /// The commands that show more, let the program do it, and suppress it.
    fn next_steps(&self, report: &Report, out: &mut String) -> fmt::Result {
        let (finding, options) = (self.finding, self.options);
        let Some(fingerprint) = finding.fingerprint.filter(|_| options.has_commands) else {
            return Ok(());
        };
        let is_replayed = finding.confirmation.is_some() || finding.kind != FindingKind::Predicted;
        let replay = match report.rerun.as_ref().filter(|_| !is_replayed) {
            Some(command) => format!("; replay: {}", Visible(command)),
            None => String::new(),
        };
        writeln!(out, "  more: foresee explain {fingerprint}{replay}")?;
        writeln!(out, "  suppress: put {fingerprint} into a file for --suppressions")
    }
}

/// Whether a fact counts or places a single read or write, which is shown anyway.
fn is_single(detail: &Detail) -> bool {
    match &detail.fact {
        Fact::Count(1) => COUNTED.contains(&detail.label.as_str()),
        Fact::Writes { places, has_more } => places.len() == 1 && !has_more,
        _ => false,
    }
}

/// Whether a fact says nothing that the headline does not.
fn is_in_headline(detail: &Detail, finding: &Finding, is_wide: bool) -> bool {
    let Fact::Subject(about) = &detail.fact else { return false };
    subject(finding) == Some(about.name())
        && (!is_wide || short::name(about.name()) == about.name())
}

/// The sites that a fact shows.
fn sites_of(detail: &Detail) -> Vec<usize> {
    match &detail.fact {
        Fact::Sites(sites) => sites.clone(),
        Fact::LocksAt(site) | Fact::ThreadOf(site) | Fact::LastSeen(site) | Fact::Place(site) => {
            vec![*site]
        }
        Fact::Conflict(ends) => ends.to_vec(),
        Fact::Blocked(blocked) => vec![blocked.site],
        _ => Vec::new(),
    }
}

/// What explains a finding, and how much it matters.
pub(crate) fn ranks(finding: &Finding) -> Ranks {
    let mut ranks = Ranks::default();
    let mut add = |event: u64, rank: Rank| {
        let known = ranks.events.entry(event).or_insert(rank);
        *known = rank.min(*known);
    };
    for site in &finding.sites {
        let rank = if site.role.identifies() { 0 } else { 1 };
        site.event.iter().for_each(|&event| add(event, rank));
        site.locks.iter().flatten().for_each(|lock| add(lock.event, 2));
    }
    for detail in &finding.details {
        match &detail.fact {
            Fact::State { since: Some(event), .. } => add(*event, 1),
            Fact::Events(events) => events.iter().for_each(|&event| add(event, 1)),
            Fact::SwappedSections(all) => {
                for swapped in all {
                    add(swapped.first.1, 3);
                    add(swapped.second.1, 3);
                }
            }
            Fact::OtherReads(all) => {
                for read in all {
                    add(read.event, 1);
                    read.sees.iter().for_each(|&write| add(write, 2));
                }
            }
            Fact::Region(region) => {
                add(region.begin.event, 2);
                region.end.iter().for_each(|end| add(end.event, 2));
            }
            Fact::Blocked(blocked) => {
                let held = blocked.held_by.iter().map(|(_, lock)| lock);
                blocked.has.iter().chain(held).for_each(|lock| add(lock.event, 1));
            }
            Fact::Keeps { lock, .. } => add(lock.event, 1),
            _ => {}
        }
    }
    let states = finding.details.iter().filter(|it| matches!(it.fact, Fact::State { .. }));
    ranks.variables = states.map(|state| state.label.clone()).collect();
    ranks
}

/// Why the threads can run in the order of the witness.
fn why_possible(finding: &Finding) -> Option<String> {
    let witness = finding.witness.as_ref()?;
    let is_as_observed = witness.order.is_sorted() && witness.changed_reads.is_empty();
    Some(match witness.reorder {
        _ if is_as_observed && !witness.next.is_empty() => {
            "the steps before `← next` keep their observed order; the steps left out are not needed, or come later"
                .to_owned()
        }
        Space::Maz => "nothing in the run orders the steps that changed places; conflicting \
                       accesses and the uses of each lock keep their observed order"
            .to_owned(),
        Space::Sliced | Space::Correct => {
            format!(
                "every thread does what it did, each lock has one holder at a time, and {}",
                reads(witness)
            )
        }
        Space::Notes => "the capture left the order of these steps open".to_owned(),
    })
}

fn reads(witness: &Witness) -> &'static str {
    match witness.changed_reads.is_empty() {
        true => "every read sees what it saw",
        false => "every read sees what it saw, except those with `=?`",
    }
}

/// What a reader might take for granted, but should not.
fn not_promised(finding: &Finding) -> Option<&'static str> {
    let is_race = matches!(finding.verdict, Verdict::ConcurrentAccess);
    let is_deadlock = matches!(
        finding.verdict,
        Verdict::LockCycle
            | Verdict::Stall
            | Verdict::EndlessWait
            | Verdict::LockNeverReleased
            | Verdict::Stuck
    );
    match finding.kind {
        FindingKind::Observed => None,
        FindingKind::Conditional => {
            Some("that it can happen: a thread that reads another value may do something else")
        }
        FindingKind::ScheduleDependent => Some("which of the two orders it really was"),
        FindingKind::Predicted if is_race => {
            Some("that it is likely, or that either order does harm")
        }
        FindingKind::Predicted if is_deadlock => {
            Some("that it is likely, or that nothing outside this run would end it")
        }
        FindingKind::Predicted => Some("that it is likely, or what the program does after it"),
    }
}
