//! Completes findings, which takes the whole trace: sites that were not looked up yet, the locks
//! held at them, call stacks, and fingerprints.
//!
//! Analyses that watch the trace go by know the numbers of the events that led to a violation, but
//! not the events; and how many lines of a function do the same is known only at the end. So all
//! findings of a trace are completed together, in one pass, or in two if an event that
//! distinguishes findings is not known before the first.
//!
//! Findings of a trace that is still being made cannot wait for that. Their fingerprints count the
//! lines up to the last event that the finding consists of ([`LinesSoFar`]). The report at the end
//! counts all lines, which gives the same unless an earlier line of the function does the same for
//! the first time later.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use foresee_trace::{
    Batch, Event, EventSource, Finding, Fingerprint, Fork, HeldLock, Id, LocId, Location, Names,
    Op, Pool, ReadError, Role, Site, SiteKey, StackId, Target, TargetKind, ThreadId, Trace, Value,
    calls, entry, location, operation, stable_function, stable_path,
};

use crate::checks::{Hold, given, taken};

/// The sites of a violated property: the step that violates it, those that led there, and those that
/// gave its variables their values. They are still to be looked up.
pub(crate) fn of_violation(
    violating: Option<u64>,
    steps: &[u64],
    state: &[(String, Option<Value>, Option<u64>)],
) -> Vec<Site> {
    let steps = steps.iter().map(|&event| (Role::Step, event));
    let state = state.iter().filter_map(|(_, _, event)| Some((Role::State, (*event)?)));
    let violating = violating.map(|event| (Role::Violation, event));
    let mut sites: Vec<Site> = Vec::new();
    for (role, event) in violating.into_iter().chain(steps).chain(state) {
        if !sites.iter().any(|site| site.event == Some(event)) {
            sites.push(Site::new(role, Some(event)));
        }
    }
    sites
}

/// Looks up what of some sites is among the latest events.
pub(crate) fn look_up_in(sites: &mut [Site], (first, batch): (u64, &Batch), names: &Names) {
    for site in sites {
        let place = site.event.and_then(|event| event.checked_sub(first));
        if let Some(event) = place.and_then(|place| batch.events.get(place as usize)) {
            site.look_up(event, names, &batch.pool);
        }
    }
}

/// What is done with each event of a trace, by its index and with its call stack.
type Visit<'v> = &'v mut dyn FnMut((u64, StackId), &Event, &Names, &Pool);

/// Completes the findings of a trace that is in memory.
pub fn complete(findings: &mut [Finding], trace: &Trace) {
    let each = &mut |visit: Visit<'_>| -> Result<(), ReadError> {
        for (index, event) in (0..).zip(&trace.events) {
            let stack = trace.stacks.get(index as usize).copied().unwrap_or_default();
            visit((index, stack), event, &trace.names, &trace.pool);
        }
        Ok(())
    };
    // Memory can always be read.
    let _ = complete_by(findings, each);
}

/// Completes the findings of a trace of which these many events, the first ones, are read again, once or
/// twice.
pub fn complete_from<S: EventSource, E: From<ReadError>>(
    findings: &mut [Finding],
    events: u64,
    mut open: impl FnMut() -> Result<S, E>,
) -> Result<(), E> {
    complete_by(findings, &mut |visit: Visit<'_>| {
        let mut source = open()?;
        let mut batch = Batch::default();
        let mut index = 0;
        while index < events && source.next_batch(&mut batch)? {
            for (i, event) in batch.events.iter().enumerate() {
                visit((index, batch.stack(i)), event, source.names(), &batch.pool);
                index += 1;
            }
        }
        Ok(())
    })
}

fn complete_by<E>(
    findings: &mut [Finding],
    each: &mut dyn FnMut(Visit<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if findings.iter().all(|finding| finding.fingerprint.is_some()) {
        return Ok(());
    }
    let mut wanted = Wanted::of(findings);
    let mut lines;
    if findings.iter().all(is_identified) {
        lines = Lines::of(findings);
        each(&mut |(index, stack), event, names, pool| {
            lines.event(index, event, names);
            wanted.event((index, stack), event, names, pool, findings);
        })?;
    } else {
        each(&mut |at, event, names, pool| {
            wanted.event(at, event, names, pool, findings);
        })?;
        lines = Lines::of(findings);
        each(&mut |(index, _), event, names, _| lines.event(index, event, names))?;
    }
    wanted.calls.add_to(findings);
    for finding in findings.iter_mut() {
        finding.fingerprint = Some(Fingerprint::of(finding, |site| lines.rank(site, u64::MAX)));
    }
    Ok(())
}

/// The lines of a trace as far as it has been read, for fingerprints of findings that are reported
/// at once.
pub(crate) struct LinesSoFar(Lines);

impl LinesSoFar {
    /// Before the first event.
    pub(crate) fn new() -> LinesSoFar {
        LinesSoFar(Lines { is_open: true, ..Lines::default() })
    }

    /// Takes the next events, the first of which has this index.
    pub(crate) fn batch(&mut self, first: u64, batch: &Batch, names: &Names) {
        for (index, event) in (first..).zip(&batch.events) {
            self.0.event(index, event, names);
        }
    }

    /// The fingerprint of a finding, unless an event that distinguishes it was not looked up.
    pub(crate) fn fingerprint(&self, finding: &Finding) -> Option<Fingerprint> {
        let last = identifying(finding).filter_map(|site| site.event).max().unwrap_or(0);
        is_identified(finding).then(|| Fingerprint::of(finding, |site| self.0.rank(site, last)))
    }
}

/// What a finding consists of in the source of its program: its fingerprint with lines in place of ranks among them, which
/// change when more of the program is known. `None` if an event that distinguishes it was not looked up.
pub(crate) fn in_source(finding: &Finding) -> Option<Fingerprint> {
    let place = |site: &Site| {
        let location = site.location()?;
        let (line, column) = (location.line.unwrap_or(0), location.column.unwrap_or(0));
        Some(((line as usize) << 32) + column as usize)
    };
    is_identified(finding).then(|| Fingerprint::of(finding, |site| place(site).unwrap_or(0)))
}

fn identifying(finding: &Finding) -> impl Iterator<Item = &Site> {
    finding.sites.iter().filter(|site| site.role.identifies())
}

/// Whether every event that distinguishes a finding was looked up.
fn is_identified(finding: &Finding) -> bool {
    identifying(finding).all(is_looked_up)
}

fn is_looked_up(site: &Site) -> bool {
    site.op.is_some() || site.event.is_none()
}

/// The sites that are to be looked up.
struct Wanted {
    /// Event, finding and site, the next one last.
    left: Vec<(u64, usize, usize)>,
    /// For each thread the locks that it holds, and where it took them.
    held: Vec<Vec<(Hold, u64, LocId, StackId)>>,
    /// For each thread, the event that started it, the parent and the place.
    forks: Vec<Option<(u64, ThreadId, LocId, StackId)>>,
    calls: Calls,
}

/// The calls that led to events.
struct Calls {
    /// Events whose calls are to be found, the next one last.
    left: Vec<u64>,
    found: HashMap<u64, Vec<Location>, RandomState>,
}

impl Calls {
    fn of(findings: &[Finding]) -> Calls {
        let mut left = Vec::new();
        for site in findings.iter().flat_map(|finding| &finding.sites) {
            left.extend(site.event);
            left.extend(site.locks.iter().flatten().map(|lock| lock.event));
            left.extend(site.thread.iter().filter_map(|t| Some(t.forked.as_ref()?.event)));
        }
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.dedup();
        Calls { left, found: HashMap::default() }
    }

    fn event(&mut self, (index, stack): (u64, StackId), names: &Names) {
        if self.left.pop_if(|wanted| *wanted == index).is_some() {
            self.add((index, stack), names);
        }
    }

    fn add(&mut self, (event, stack): (u64, StackId), names: &Names) {
        let of_stack = calls(stack, names);
        if !of_stack.is_empty() {
            self.found.insert(event, of_stack);
        }
    }

    fn get(&self, event: u64) -> Vec<Location> {
        self.found.get(&event).cloned().unwrap_or_default()
    }

    /// A site whose own place is not known has no calls either: the innermost of them would be taken for its place.
    fn add_to(&self, findings: &mut [Finding]) {
        for site in findings.iter_mut().flat_map(|finding| &mut finding.sites) {
            site.frames.truncate(1);
            if let Some(event) = site.event.filter(|_| !site.frames.is_empty()) {
                site.frames.extend(self.get(event));
            }
            for lock in site.locks.iter_mut().flatten().filter(|lock| lock.location.is_some()) {
                lock.calls = self.get(lock.event);
            }
            let fork = site.thread.as_mut().and_then(|thread| thread.forked.as_mut());
            if let Some(fork) = fork.filter(|fork| fork.location.is_some()) {
                fork.calls = self.get(fork.event);
            }
        }
    }
}

impl Wanted {
    fn of(findings: &[Finding]) -> Wanted {
        let mut left = Vec::new();
        for (f, finding) in findings.iter().enumerate() {
            for (s, site) in finding.sites.iter().enumerate() {
                if let Some(event) = site.event
                    && (site.op.is_none() || site.locks.is_none())
                {
                    left.push((event, f, s));
                }
            }
        }
        left.sort_unstable_by(|a, b| b.cmp(a));
        Wanted { left, held: Vec::new(), forks: Vec::new(), calls: Calls::of(findings) }
    }

    fn event(
        &mut self,
        (index, stack): (u64, StackId),
        event: &Event,
        names: &Names,
        pool: &Pool,
        findings: &mut [Finding],
    ) {
        self.calls.event((index, stack), names);
        if self.left.is_empty() {
            return;
        }
        while let Some((_, f, s)) = self.left.pop_if(|(wanted, ..)| *wanted == index) {
            let site = &mut findings[f].sites[s];
            if site.op.is_none() {
                site.look_up(event, names, pool);
            }
            self.add_locks(site, event.thread(), names);
        }
        if let Some(hold) = taken(event) {
            entry(&mut self.held, event.thread().index()).push((hold, index, event.loc(), stack));
        } else if let Some(hold) = given(event) {
            let held = entry(&mut self.held, event.thread().index());
            if let Some(at) = held.iter().rposition(|(other, ..)| *other == hold) {
                held.remove(at);
            }
        }
        if event.op() == Op::Fork {
            *entry(&mut self.forks, event.other().index()) =
                Some((index, event.thread(), event.loc(), stack));
        }
    }

    fn add_locks(&mut self, site: &mut Site, thread: ThreadId, names: &Names) {
        let mut locks = Vec::new();
        for &(hold, event, loc, stack) in self.held.get(thread.index()).into_iter().flatten() {
            self.calls.add((event, stack), names);
            locks.push(HeldLock {
                name: names.locks.get(hold.lock).to_owned(),
                shared: hold.shared,
                event,
                location: location(loc, names),
                calls: Vec::new(),
            });
        }
        site.locks = Some(locks);
        let fork = self.forks.get(thread.index()).copied().flatten();
        if let (Some((event, by, loc, stack)), Some(thread)) = (fork, &mut site.thread) {
            self.calls.add((event, stack), names);
            let by = names.threads.get(by).to_owned();
            let location = location(loc, names);
            thread.forked = Some(Fork { by, event, location, calls: Vec::new() });
        }
    }
}

/// A line, and a column in it.
type Line = (Option<u32>, Option<u32>);

/// Texts that sites have, by number.
#[derive(Default)]
struct Numbers(HashMap<String, u32, RandomState>);

impl Numbers {
    fn add(&mut self, text: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(text.to_owned()).or_insert(next)
    }

    fn get(&self, text: &str) -> Option<u32> {
        self.0.get(text).copied()
    }

    fn find(&mut self, text: &str, is_open: bool) -> Option<u32> {
        if is_open { Some(self.add(text)) } else { self.get(text) }
    }
}

/// The lines of functions that do something to variables, and the event by which each first does.
#[derive(Default)]
struct Lines {
    /// Whether any function and variable counts, and not only those of findings.
    is_open: bool,
    functions: Numbers,
    paths: Numbers,
    /// By function, operation and path.
    found: HashMap<(u32, &'static str, u32), BTreeMap<Line, u64>, RandomState>,
    /// What the latest event of each place did, which is what most events of that place do.
    latest: Vec<Option<(Op, Option<u32>)>>,
    /// For each place of the trace its function, if that is one of these, and its line.
    places: Vec<Option<Option<(u32, Line)>>>,
    /// For each target of the trace its path, if that is one of these.
    targets: HashMap<(TargetKind, u32), Option<u32>, RandomState>,
}

impl Lines {
    fn of(findings: &[Finding]) -> Lines {
        let mut lines = Lines::default();
        let sites = findings.iter().flat_map(|finding| &finding.sites);
        for site in sites.filter(|site| site.role.identifies() && site.event.is_some()) {
            let SiteKey { function, operation, path } = SiteKey::of(site);
            let key = (lines.functions.add(&function), operation, lines.paths.add(&path));
            lines.found.entry(key).or_default();
        }
        lines
    }

    fn event(&mut self, index: u64, event: &Event, names: &Names) {
        let Lines { is_open, functions, paths, found, latest, places, targets } = self;
        let what = Some((event.op(), event.target()));
        if std::mem::replace(entry(latest, event.loc().index()), what) == what {
            return;
        }
        let is_open = *is_open;
        let place = entry(places, event.loc().index()).get_or_insert_with(|| {
            let location = location(event.loc(), names)?;
            let function = functions.find(&stable_function(&location), is_open)?;
            Some((function, (location.line, location.column)))
        });
        let Some((function, line)) = *place else { return };
        let path = match event.target() {
            Some(target) => {
                let kind = event.op().target_kind();
                *targets.entry((kind, target)).or_insert_with(|| {
                    let name = event.target_name(names).unwrap_or_default().to_owned();
                    paths.find(&stable_path(&Target { kind, name }), is_open)
                })
            }
            None => paths.find("", is_open),
        };
        let Some(path) = path else { return };
        let key = (function, operation(event.op()), path);
        if is_open {
            found.entry(key).or_default().entry(line).or_insert(index);
        } else if let Some(lines) = found.get_mut(&key) {
            lines.entry(line).or_insert(index);
        }
    }

    /// How many of the lines that were passed up to this event come before that of a site.
    fn rank(&self, site: &Site, last: u64) -> usize {
        let SiteKey { function, operation, path } = SiteKey::of(site);
        let lines = || {
            let key = (self.functions.get(&function)?, operation, self.paths.get(&path)?);
            let location = site.location()?;
            let line = (location.line, location.column);
            let before = self.found.get(&key)?.range(..line);
            Some(before.filter(|(_, first)| **first <= last).count())
        };
        lines().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::checks::{CHECKS, Checks, Options};
    use foresee_testkit::trace;
    use foresee_trace::{Fact, FindingKind};

    /// What the checks find in a trace, completed.
    fn found(trace: &Trace) -> Vec<Finding> {
        let kinds: Vec<_> = CHECKS.iter().collect();
        let checks = Checks::new(&kinds, Options { only_relevant: true, ..Options::default() });
        let mut findings: Vec<Finding> = Vec::new();
        let mut analyses: [Box<dyn crate::Analysis>; 1] = [Box::new(checks)];
        crate::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {}).unwrap();
        findings.retain(|finding| finding.kind != FindingKind::Conditional);
        complete(&mut findings, trace);
        findings
    }

    fn fingerprints(trace: &Trace) -> Vec<String> {
        let mut all: Vec<_> =
            found(trace).iter().map(|f| f.fingerprint.unwrap().to_string()).collect();
        all.sort();
        all
    }

    #[test]
    fn the_same_bug_has_the_same_fingerprint() {
        let one = trace! {
            main: fork(T1), fork(T2);
            T1: w("heap(a.c:3(make))#1.n") @ "a.c:20(add)", r(y) @ "a.c:30(get)";
            T2: w("heap(a.c:3(make))#1.n") @ "a.c:22(add)", w(y) @ "b.c:4(set)"
        };
        // Another block, other names and numbers of threads, another order, and lines further down.
        let other = trace! {
            main: fork(worker7), fork(worker3);
            worker3: w("heap(a.c:13(make))#5.n") @ "a.c:32(add)", w(y) @ "b.c:4(set)";
            worker7: w("heap(a.c:13(make))#5.n") @ "a.c:30(add)", r(y) @ "a.c:45(get)"
        };
        let (these, those) = (fingerprints(&one), fingerprints(&other));
        assert_eq!(these, those);
        assert!(these.len() == 2 && these[0] != these[1], "{these:?}");
        assert!(these.iter().all(|text| text.len() == 14 && text.starts_with("F-")), "{these:?}");
    }

    #[test]
    fn other_bugs_have_other_fingerprints() {
        let traces = [
            trace! { T1: w(x) @ "a.c:2(f)"; T2: w(x) @ "a.c:9(g)" },
            // Another variable, function or operation.
            trace! { T1: w(z) @ "a.c:2(f)"; T2: w(z) @ "a.c:9(g)" },
            trace! { T1: w(x) @ "a.c:2(f)"; T2: w(x) @ "a.c:9(h)" },
            trace! { T1: w(x) @ "a.c:2(f)"; T2: r(x) @ "a.c:9(g)" },
            // The second of the lines that do the same.
            trace! {
                main: acq(l), w(x) @ "a.c:2(f)", rel(l), fork(T1), fork(T2);
                T1: w(x) @ "a.c:3(f)"; T2: w(x) @ "a.c:9(g)"
            },
            trace! { T1: acq(l) @ "a.c:2(f)", acq(m) @ "a.c:3(f)", rel(m), rel(l);
            T2: acq(m) @ "a.c:8(g)", acq(l) @ "a.c:9(g)", rel(l), rel(m) },
        ];
        let all: Vec<_> = traces.iter().map(fingerprints).collect();
        assert!(all.iter().all(|found| found.len() == 1), "{all:?}");
        let different: BTreeSet<_> = all.iter().flatten().collect();
        assert_eq!(different.len(), traces.len(), "{all:?}");
    }

    #[test]
    fn sites_locks_and_threads_have_the_calls_that_led_there() {
        let mut trace = trace! {
            main: fork(T1) @ "m.c:1(start)", fork(T2) @ "m.c:2(main)";
            T1: acq(l) @ "a.c:2(take)", w(x)=5 @ "a.c:4(put)", rel(l);
            T2: w(x)=6 @ "b.c:4(set)"
        };
        let before = found(&trace);
        let mut place = |text: &str| trace.names.locs.intern(text).unwrap();
        let [main, work, add] = ["m.c:9(main)", "a.c:20(work)", "a.c:12(add)"].map(&mut place);
        let stacks = &mut trace.names.stacks;
        let in_work = stacks.call(StackId::EMPTY, work);
        let (in_add, in_main) = (stacks.call(in_work, add), stacks.call(StackId::EMPTY, main));
        trace.stacks = vec![in_main, StackId::EMPTY, in_work, in_add, in_work];
        let findings = found(&trace);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].fingerprint, before[0].fingerprint);
        let of = |event| findings[0].sites.iter().find(|site| site.event == Some(event)).unwrap();
        let texts = |all: &[Location]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (one, other) = (of(3), of(5));
        assert_eq!(texts(&one.frames), ["a.c:4(put)", "a.c:12(add)", "a.c:20(work)"]);
        assert_eq!(texts(&other.frames), ["b.c:4(set)"], "its calls are not known");
        assert_eq!(texts(&one.locks.as_ref().unwrap()[0].calls), ["a.c:20(work)"]);
        let fork = one.thread.as_ref().unwrap().forked.as_ref().unwrap();
        assert_eq!(texts(&fork.calls), ["m.c:9(main)"]);
        assert!(other.thread.as_ref().unwrap().forked.as_ref().unwrap().calls.is_empty());
    }

    #[test]
    fn sites_are_looked_up_as_the_trace_goes_by() {
        let trace = trace! {
            main: fork(T1) @ "m.c:1(main)";
            T1: acq(l) @ "a.c:2(f)", racq(m) @ "a.c:3(f)", w(x)=5 @ "a.c:4(f)", rel(l), w(y)
        };
        let mut finding = found(&trace! { T1: w(x); T2: w(x) }).remove(0);
        let site = |event| Site::new(Role::Step, Some(event));
        finding.sites = vec![site(5), site(3), Site::new(Role::Violation, Some(3))];
        finding.fingerprint = None;
        let mut streamed = vec![finding.clone()];
        let mut findings = vec![finding];
        complete(&mut findings, &trace);
        // What is read twice, because the violating step is not known before, is the same.
        complete_from(&mut streamed, u64::MAX, || Ok::<_, ReadError>(trace.source())).unwrap();
        let sites = &findings[0].sites;
        assert_eq!(*sites, streamed[0].sites);
        assert_eq!(findings[0].fingerprint, streamed[0].fingerprint);
        assert_eq!(sites[1].to_string(), "event 3, w(x)=5 of T1 at a.c:4(f)");
        assert_eq!(
            Fact::LocksAt(1).text(sites),
            "l, taken by event 1 at a.c:2(f); m (shared), taken by event 2 at a.c:3(f)"
        );
        assert_eq!(Fact::LocksAt(0).text(sites), "m (shared), taken by event 2 at a.c:3(f)");
        assert_eq!(sites[0].thread.as_ref().unwrap().origin(), "forked by main at m.c:1(main)");
        assert_eq!(sites[1].location(), Location::parse("a.c:4(f)").as_ref());
    }
}
