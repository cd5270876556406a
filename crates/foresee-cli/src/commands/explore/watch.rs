//! What is asked of every run of an exploration besides whether it fails: the properties of specifications, and checks.
//!
//! A run is looked at where it is made ([`Look`]), which may be on another machine. What was seen ([`Sight`]) goes to the one
//! exploration that collects everything ([`Watch`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use foresee_capture::explore::words::{Heard, Hearing, Wanted, Words};
use foresee_capture::explore::{Observer, Ran};
use foresee_explore::Monitor;
use foresee_explore::program::{Execution, RunError, Schedule, Step, Tail};
use foresee_explore::properties::{Interest, Properties};
use foresee_explore::script::Script;
use foresee_predict::session::{Listener, Session, Settings, Specification};
use foresee_report::{Parts, Report, Tests};
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_trace::{Batch, TraceInput};
use serde::{Deserialize, Serialize};

use crate::specs;

/// Nobody listens: an exploration has thousands of runs.
struct Silence;

impl Listener for Silence {}

/// The specifications and checks of an exploration.
pub(super) struct Asked {
    specs: Vec<Specification>,
    checks: Vec<String>,
}

impl Asked {
    pub(super) fn new(specs: &[PathBuf], checks: &[String]) -> anyhow::Result<Asked> {
        let load = |file: &PathBuf| specs::load(&specs::read(file)?);
        Asked::of(specs.iter().map(load).collect::<anyhow::Result<_>>()?, checks)
    }

    pub(super) fn of(specs: Vec<Specification>, checks: &[String]) -> anyhow::Result<Asked> {
        let mut properties = specs.iter().flat_map(|source| &source.spec.properties);
        if let Some(about) = properties.find(|property| !property.objects.is_empty()) {
            bail!(
                "exploration cannot decide `{}`: it is about every object of a type, and objects \
                 are known only after a run; `foresee run` decides it",
                about.name.name
            );
        }
        let asked = Asked { specs, checks: checks.to_vec() };
        asked.session()?;
        Ok(asked)
    }

    /// The specifications.
    #[cfg(feature = "nats")]
    pub(super) fn specs(&self) -> &[Specification] {
        &self.specs
    }

    pub(super) fn is_empty(&self) -> bool {
        self.specs.is_empty() && self.checks.is_empty()
    }

    /// The checks that are made.
    pub(super) fn checks(&self) -> &[String] {
        &self.checks
    }

    /// The checks alone: properties are decided along the search.
    fn session(&self) -> anyhow::Result<Session> {
        let mut session = Session::new(Settings { is_alone: false, ..Settings::default() });
        for name in &self.checks {
            session.add_check(name).map_err(specs::failed)?;
        }
        Ok(session)
    }

    /// All properties, by their numbers.
    pub(super) fn properties(&self) -> Vec<String> {
        let all = self.specs.iter().flat_map(|source| &source.spec.properties);
        all.map(|property| property.name.name.clone()).collect()
    }

    /// The specifications as one session, for what must be known before the program is run.
    pub(super) fn of_specs(&self) -> Session {
        let mut session = Session::new(Settings::default());
        self.specs.iter().for_each(|spec| session.add_spec(spec.clone()));
        session
    }

    fn compiled(&self) -> anyhow::Result<Vec<(Spec, Vec<Compiled>)>> {
        let compile = |source: &Specification| {
            let compiled = Compiled::all(&source.spec)
                .map_err(|diagnostics| specs::BadSpec::of(&source.bad(diagnostics)))?;
            Ok((source.spec.clone(), compiled))
        };
        self.specs.iter().map(compile).collect()
    }

    /// What runs must be asked for the sake of the specifications.
    fn wanted(&self, compiled: &[(Spec, Vec<Compiled>)]) -> Wanted {
        let mut variables: Vec<String> = Vec::new();
        for source in &self.specs {
            for (name, _) in foresee_spec::variables(&source.spec) {
                if !variables.iter().any(|known| known == name) {
                    variables.push(name.to_owned());
                }
            }
        }
        Wanted { variables, interest: Interest::of(compiled) }
    }

    /// What looks at runs.
    pub(super) fn look(&self) -> anyhow::Result<Look> {
        let monitors = self.compiled()?;
        let hearing = Hearing::new(self.wanted(&monitors));
        let session = (!self.checks.is_empty()).then(|| self.session()).transpose()?;
        Ok(Look { hearing, monitors, session })
    }

    /// What steps along the search, and what collects what is seen in runs. In the folder, runs in which checks find something
    /// are kept.
    pub(super) fn prepare(
        &self,
        program: String,
        build_id: String,
        folder: Option<PathBuf>,
    ) -> anyhow::Result<Prepared> {
        let compiled = self.compiled()?;
        let words = Arc::new(Mutex::new(Words::new(self.wanted(&compiled))));
        let monitor = (!self.specs.is_empty())
            .then(|| Box::new(Properties::new(compiled, Arc::clone(&words))) as Box<dyn Monitor>);
        let watch = Watch {
            words,
            violated: BTreeSet::new(),
            first: BTreeMap::new(),
            fingerprints: HashSet::new(),
            reports: Vec::new(),
            runs: 0,
            program,
            build_id,
            folder,
        };
        Ok((monitor, Arc::new(Mutex::new(watch))))
    }
}

/// Looks at runs, at each by itself.
pub(super) struct Look {
    hearing: Hearing,
    monitors: Vec<(Spec, Vec<Compiled>)>,
    session: Option<Session>,
}

/// What was seen in one run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sight {
    /// The names that properties need.
    heard: Option<Heard>,
    /// The properties that it violates, as the plain monitors of one run decide.
    violated: BTreeSet<usize>,
    /// What the checks say.
    report: Option<Report>,
}

impl Look {
    pub(super) fn look(&mut self, run: &Ran<'_>) -> Result<Sight, RunError> {
        let has_properties = !self.monitors.is_empty();
        Ok(Sight {
            heard: has_properties.then(|| self.hearing.hear(run)).transpose()?,
            violated: if has_properties { self.judge(run)? } else { BTreeSet::new() },
            report: self.check(run)?,
        })
    }

    /// The ordinary monitors on the recorded run.
    fn judge(&mut self, run: &Ran<'_>) -> Result<BTreeSet<usize>, RunError> {
        let failed = |why: &dyn std::fmt::Display| {
            RunError(format!("the trace of a run cannot be read: {why}"))
        };
        let trace = self.hearing.trace(run)?;
        let (names, _) = trace.names().map_err(|why| failed(&why))?;
        let (mut violated, mut first) = (BTreeSet::new(), 0);
        for (spec, compiled) in &mut self.monitors {
            let resolved = foresee_spec::resolve(spec, &names).resolved;
            let count = compiled.len();
            let mut monitor =
                ObservedMonitor::new(spec, std::mem::take(compiled), &resolved, &names);
            let mut source = trace.open().map_err(|why| failed(&why))?;
            let (mut batch, mut index) = (Batch::default(), 0);
            while source.next_batch(&mut batch).map_err(|why| failed(&why))? {
                for event in &batch.events {
                    monitor.event(index, event, &batch.pool);
                    index += 1;
                }
            }
            monitor.finish();
            violated.extend(monitor.violations().iter().map(|one| first + one.property));
            *compiled = monitor.into_properties();
            first += count;
        }
        Ok(violated)
    }

    /// The checks on the recorded run.
    fn check(&mut self, run: &Ran<'_>) -> Result<Option<Report>, RunError> {
        let Some(session) = &self.session else { return Ok(None) };
        let trace = self.hearing.trace(run)?;
        let examined =
            session.run(&trace, &mut Silence).map_err(|why| RunError(why.to_string()))?;
        Ok(Some(Report::of(examined, &Tests::default())))
    }
}

/// What steps along the search, if there are properties, and what looks at every run.
type Prepared = (Option<Box<dyn Monitor>>, Arc<Mutex<Watch>>);

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects what is seen in every run.
pub(super) struct Watch {
    words: Arc<Mutex<Words>>,
    /// The properties that the last run violates.
    pub(super) violated: BTreeSet<usize>,
    /// The first run that violates each property, and its schedule.
    pub(super) first: BTreeMap<usize, (u32, Schedule)>,
    fingerprints: HashSet<String>,
    reports: Vec<(String, Report)>,
    runs: u32,
    /// What schedules belong to.
    program: String,
    build_id: String,
    /// Where runs with findings are kept.
    folder: Option<PathBuf>,
}

impl Watch {
    /// What the checks found, each once.
    pub(super) fn report(&mut self) -> Option<Report> {
        let runs = self.runs as usize;
        let mut merged =
            foresee_report::merge(std::mem::take(&mut self.reports), Parts::Runs(runs))?;
        merged.name = format!("{} ({runs} runs)", self.program);
        Some(merged)
    }

    /// Takes what was seen in a run.
    pub(super) fn take(&mut self, run: &Execution, sight: Sight) -> Result<(), RunError> {
        self.runs += 1;
        if let Some(heard) = &sight.heard {
            lock(&self.words).learn(heard, run)?;
        }
        for &property in &sight.violated {
            let schedule = || (self.runs, schedule(run));
            self.first.entry(property).or_insert_with(schedule);
        }
        self.violated = sight.violated;
        match sight.report {
            Some(report) => self.add(run, report),
            None => Ok(()),
        }
    }

    /// Adds what the checks said about a run.
    fn add(&mut self, run: &Execution, mut report: Report) -> Result<(), RunError> {
        let known = &mut self.fingerprints;
        report.retain(|finding| {
            finding.fingerprint.as_ref().is_none_or(|one| known.insert(one.to_string()))
        });
        for finding in &mut report.findings {
            // The run is a schedule that shows it, or shows what foretells it.
            let script = Script {
                program: self.program.clone(),
                build_id: self.build_id.clone(),
                claim: finding.message.clone(),
                schedule: schedule(run),
            };
            finding.schedule = Some(script.text());
        }
        // Kept before the journal has the run: a run that is in the journal is not made again, and so not checked again.
        let first = report.findings.first().and_then(|finding| finding.schedule.as_ref());
        if let (Some(folder), Some(schedule)) = (&self.folder, first) {
            keep(folder, schedule).map_err(|why| {
                RunError(format!("cannot keep a schedule in {}: {why}", folder.display()))
            })?;
        }
        if !report.findings.is_empty() || self.reports.is_empty() {
            self.reports.push((format!("run {}", self.runs), report));
        }
        Ok(())
    }
}

/// Looks at the runs of this machine, for the exploration that watches.
pub(super) struct Looking {
    pub(super) look: Look,
    pub(super) watch: Arc<Mutex<Watch>>,
}

impl Observer for Looking {
    fn ran(&mut self, run: &Ran<'_>) -> Result<(), RunError> {
        let sight = self.look.look(run)?;
        lock(&self.watch).take(run.execution, sight)
    }
}

/// The schedules of runs in which checks found something, in the order of these runs.
pub(super) fn kept(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths = (1..).map(|i| folder.join(format!("{i}.schedule")));
    let mut found = Vec::new();
    for path in paths {
        match path.try_exists()? {
            true => found.push(path),
            false => break,
        }
    }
    Ok(found)
}

/// Keeps one more schedule, unless it is there already.
fn keep(folder: &Path, schedule: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let kept = kept(folder)?;
    for path in &kept {
        if std::fs::read(path)? == schedule.as_bytes() {
            return Ok(());
        }
    }
    // Whole or not at all, should this process be killed.
    let new = folder.join("new");
    std::fs::write(&new, schedule)?;
    std::fs::rename(new, folder.join(format!("{}.schedule", kept.len() + 1)))
}

/// All steps of a run.
fn schedule(execution: &Execution) -> Schedule {
    let steps = execution.events.iter();
    Schedule {
        threads: execution.threads.clone(),
        steps: steps.map(|event| Step { thread: event.thread, choice: event.choice }).collect(),
        tail: Tail::Straight,
        most_operations: usize::MAX,
    }
}
