//! `foresee observe`: watches running programs.
//!
//! `foresee-observe` handles the sockets, and a session runs the analyses, as for `foresee check`;
//! this module prints the results and decides when to stop.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use foresee_batch::Digest;
use foresee_capture::jvm::LiveLog;
use foresee_observe::{Limits, Listening, LogReader, Observer, Program, Server, ServerOptions};
use foresee_predict::checks::Suppressions;
use foresee_predict::session::{InternalError, Listener, Session, Specification};
use foresee_report::json::visible;
use foresee_report::text::{Options, Style};
use foresee_report::{Report, Tests, exit_status};
use foresee_spec::Diagnostic;
use foresee_trace::{
    Continued, ErrorKind, EventSource, FileOrder, Finding, FindingKind, GrowingTrace, Name,
    Position, ReadError, Remarks, Visible,
};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{AlgorithmArg, AnalysisArgs, ObserveArgs, ReorderArg, ReportFormat};
use crate::commands::check;
use crate::commands::observe_view::View;
use crate::commands::worker::{self, Fleet};
use crate::config::Config;
use crate::metrics::{Figures, Metrics};
use crate::{asked, bug, output, specs};

/// The default number of cuts to follow per level: memory must not depend on how long a program
/// runs.
const WINDOW: u32 = 256;

pub(crate) fn run(args: ObserveArgs) -> anyhow::Result<u8> {
    let mut observer = ConsoleObserver::new(args.analysis, args.tui, args.max_threads)?;
    if let Some(url) = &args.queue {
        let questions = &observer.questions;
        observer.fleet = Some(worker::fleet(url, &args.server, args.events_size, questions)?);
    }
    let observer = Arc::new(observer);
    let metrics = args.metrics.as_deref().map(Metrics::serve).transpose()?;
    let limits = Limits {
        connections: args.max_connections,
        frame: args.max_frame.saturating_mul(1 << 10),
        memory: args.memory.max(1).saturating_mul(1 << 20),
        total_memory: args.total_memory.max(1).saturating_mul(1 << 20),
        threads: args.max_threads,
        disk: args.disk.saturating_mul(1 << 20),
        total_disk: args.total_disk.saturating_mul(1 << 20),
        stall: Duration::from_secs(args.stall.max(1)),
        idle: (args.idle > 0).then(|| Duration::from_secs(args.idle)),
        linger: Duration::from_secs(args.linger),
        lossy: args.lossy,
        ..Limits::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        if !args.tui {
            end_at_second(signal, &stop)?;
        }
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let options = ServerOptions {
        listen: args.listen.clone(),
        token: args.token.clone().filter(|token| !token.is_empty()),
        keep: args.keep.clone(),
        limits,
    };
    let server = Server::start(options, Arc::clone(&observer) as Arc<dyn Observer>)?;
    for address in server.addresses() {
        let text = format!("observing on {address}");
        observer.view.listening(&address.to_string());
        observer.say(&text, json!({"what": "listening", "address": address.to_string()}));
    }
    if let Some(metrics) = &metrics {
        let address = metrics.address.to_string();
        let text = format!("metrics on http://{address}/metrics");
        observer.say(&text, json!({"what": "metrics", "address": address}));
    }
    if let Some(url) = &args.queue {
        // An address may have a password in it.
        let host = url.rsplit('@').next().unwrap_or_default();
        let text = format!("observing runs of the queue {} on {host}", args.server.queue_name);
        observer.say(&text, json!({"what": "queue", "name": args.server.queue_name}));
    }
    let programs = args.programs.unwrap_or(u64::MAX);
    let is_over = || stop.load(Ordering::SeqCst) || observer.is_deaf();
    let is_done = AtomicBool::new(false);
    let worked = std::thread::scope(|scope| {
        let fleet = observer.fleet.as_ref().map(|fleet| {
            scope.spawn(|| {
                let is_over = || is_over() || is_done.load(Ordering::SeqCst);
                let tell = |text: &str| observer.view.around(|| output::note(text));
                fleet.work(&server, args.max_connections, &is_over, &tell)
            })
        });
        while !is_over() && !fleet.as_ref().is_some_and(|fleet| fleet.is_finished()) {
            if let Some(metrics) = &metrics {
                metrics.set(&observer.figures(&server.now()));
            }
            let pause = Duration::from_millis(if args.tui { 50 } else { 200 });
            if server.wait(programs, pause) && observer.is_all_stored() {
                break;
            }
            if !observer.view.show(&server.now(), observer.findings()) {
                break;
            }
        }
        is_done.store(true, Ordering::SeqCst);
        fleet.map_or(Ok(()), |fleet| {
            fleet.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    observer.view.clear();
    if args.tui {
        // Not before the terminal has its old content.
        stop.store(true, Ordering::SeqCst);
        ENDING.iter().try_for_each(|&signal| end_at_second(signal, &stop))?;
    }
    server.stop();
    let status = observer.finish()?;
    match worked {
        Err(error) if status != 1 => Err(error.into()),
        Err(error) => {
            output::note(&error.to_string());
            Ok(status)
        }
        Ok(()) => Ok(status),
    }
}

/// The signals that end an observer.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// A second signal means not to wait for verdicts.
fn end_at_second(signal: i32, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    signal_hook::flag::register_conditional_shutdown(signal, 2, Arc::clone(stop))
        .context("cannot catch signals")?;
    Ok(())
}

/// Prints the findings and verdicts of all programs.
pub(crate) struct ConsoleObserver {
    format: ReportFormat,
    /// How text reports are written.
    options: Options,
    session: Session,
    suppressions: Suppressions,
    view: View,
    /// The file of `--output`, instead of standard output.
    file: Option<(PathBuf, File)>,
    totals: Mutex<Totals>,
    /// What distinguishes observers that look for different things.
    questions: String,
    /// The queue that runs come from and verdicts go to.
    fleet: Option<Fleet>,
    /// How many threads a program may have.
    most_threads: usize,
}

#[derive(Default)]
struct Totals {
    programs: u64,
    /// Findings while programs ran ...
    findings: u64,
    /// ... and how many of them do not stand any more.
    withdrawn: u64,
    is_found: bool,
    errors: u64,
    incomplete: u64,
    /// The findings in the verdicts on programs, by property and kind.
    verdicts: BTreeMap<(String, &'static str), u64>,
    /// Standard output is closed.
    is_deaf: bool,
    /// Why the file of `--output` could not be written.
    unwritten: Option<anyhow::Error>,
}

impl Totals {
    fn standing(&self) -> u64 {
        self.findings - self.withdrawn
    }
}

impl ConsoleObserver {
    /// Checks the arguments before any program can connect.
    pub(crate) fn new(
        mut analysis: AnalysisArgs,
        is_screen: bool,
        max_threads: u32,
    ) -> anyhow::Result<ConsoleObserver> {
        ensure!(analysis.lattice.is_none(), "--lattice draws whole traces: use `foresee check`");
        ensure!(analysis.html.is_none(), "--html shows whole traces: use `foresee check`");
        ensure!(
            analysis.nondeterminism.witness_svg.is_none(),
            "--witness-svg draws one trace: use `foresee check`"
        );
        analysis.is_live = true;
        if analysis.window.is_none() && analysis.algorithm != AlgorithmArg::Ideals {
            analysis.window = Some(WINDOW);
        }
        if matches!(analysis.reorder, ReorderArg::Auto) {
            // The stronger spaces keep the whole trace, so they must be requested.
            analysis.reorder = ReorderArg::Maz;
        }
        if analysis.jobs == 0 {
            // Each program has a thread already.
            analysis.jobs = 1;
        }
        let session = asked::everything(&analysis)?;
        let suppressions = Config::new(&analysis.checks)?.suppressions()?;
        ensure!(
            !session.specs().is_empty() || !analysis.check.is_empty(),
            "nothing to look for: give a specification with --spec FILE, a pattern with --pattern or \
             a check with --check NAME"
        );
        let format = analysis.format;
        let to_terminal = analysis.output.output == Path::new("-");
        ensure!(
            !is_screen || format == ReportFormat::Text || !to_terminal,
            "--tui has the terminal for itself: give --output FILE for the report"
        );
        // An observer may run for days: its file grows with each line instead of appearing whole.
        let file = Some(analysis.output.output).filter(|path| path != Path::new("-"));
        let open = |path: PathBuf| match File::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(output::cannot_write(&path, &error)),
        };
        let file = file.map(open).transpose()?;
        let view = match is_screen {
            true => {
                let specs = session.specs().iter().flat_map(|source| &source.spec.properties);
                let specs = specs.map(|property| Visible(&property.name.name).to_string());
                View::screen(specs.chain(analysis.check.iter().map(ToString::to_string)))?
            }
            false => View::new(format == ReportFormat::Text),
        };
        // The screen has colours of its own.
        let style = if file.is_some() || is_screen { Style::Plain } else { output::style() };
        // Findings of programs that come and go are not kept for `explain`.
        let options = Options {
            has_commands: false,
            ..output::text_options(&analysis.text, style, file.is_none())
        };
        let specs: Vec<&str> = session.specs().iter().map(|spec| spec.text.as_str()).collect();
        let suppressed = format!("{:?}", suppressions.all);
        let asked = (specs, &analysis.check, session.settings(), suppressed);
        let asked = serde_json::to_vec(&asked).context("cannot name the questions")?;
        let questions = format!("foresee {} {}", foresee_batch::VERSION, Digest::of(&asked));
        Ok(ConsoleObserver {
            format,
            options,
            session,
            suppressions,
            view,
            file,
            totals: Mutex::default(),
            questions,
            fleet: None,
            most_threads: max_threads as usize,
        })
    }

    fn totals(&self) -> std::sync::MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn findings(&self) -> u64 {
        self.totals().standing()
    }

    /// Whether no verdict waits to be stored elsewhere.
    fn is_all_stored(&self) -> bool {
        self.fleet.as_ref().is_none_or(Fleet::is_idle)
    }

    /// Publishes a finding where others can hear of it.
    fn publish(&self, program: &Program, name: &str, json: &str) {
        if let Some(fleet) = &self.fleet
            && let Err(error) = fleet.finding(program, name, json)
        {
            self.view.around(|| output::note(&format!("{}: {error}", label(program))));
        }
    }

    /// What happened so far, for Prometheus.
    fn figures(&self, now: &Listening) -> Figures {
        let totals = self.totals();
        let running = || now.running.iter();
        let waiting = running().map(|program| program.backlog().bytes as u64).sum();
        let mut figures = Figures::default();
        let mut add = |name: &str, help: &str, value| figures.add(name, help, value);
        add("foresee_programs_running", "Programs that are observed.", now.running.len() as u64);
        add("foresee_programs_total", "Programs that have ended.", totals.programs);
        add("foresee_programs_failed_total", "Programs without a verdict.", totals.errors);
        add(
            "foresee_programs_incomplete_total",
            "Verdicts that are not complete.",
            totals.incomplete,
        );
        add(
            "foresee_events_read",
            "Events of the programs that are observed.",
            running().map(|program| program.events()).sum(),
        );
        add("foresee_waiting_bytes", "Events that have not been analysed.", waiting);
        add("foresee_early_findings_total", "Findings while programs ran.", totals.findings);
        add("foresee_withdrawn_total", "Those that were withdrawn.", totals.withdrawn);
        let help = "Findings in the verdicts on programs.";
        figures.add_each("foresee_findings_total", help, ["property", "kind"], &totals.verdicts);
        figures
    }

    fn is_deaf(&self) -> bool {
        self.totals().is_deaf
    }

    /// Prints a line, or an object.
    fn say(&self, text: &str, object: serde_json::Value) {
        self.print(&match self.format {
            ReportFormat::Text => {
                let lines: Vec<String> = text.lines().map(|l| Visible(l).to_string()).collect();
                format!("{}\n", lines.join("\n"))
            }
            ReportFormat::Json => visible(&format!("{object}\n")),
            // These are for whole reports.
            ReportFormat::Sarif | ReportFormat::Junit | ReportFormat::Github => return,
        });
    }

    fn print(&self, text: &str) {
        let mut totals = self.totals();
        match &self.file {
            Some((path, file)) => {
                let mut file = file;
                if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.flush()) {
                    totals.is_deaf = true;
                    totals.unwritten = Some(output::cannot_write(path, &error));
                }
            }
            None if self.view.takes(text) => {}
            None => totals.is_deaf |= self.view.around(|| output::print(text)).is_err(),
        }
    }

    /// The exit status of everything.
    fn finish(&self) -> anyhow::Result<u8> {
        let mut totals = self.totals();
        if let Some(error) = totals.unwritten.take() {
            return Err(error);
        }
        Ok(match &*totals {
            some if some.is_found || some.standing() > 0 => 1,
            Totals { errors: 1.., .. } => 2,
            Totals { incomplete: 1.., .. } | Totals { programs: 0, .. } => 3,
            _ => 0,
        })
    }
}

/// A label for a program: the name that it gives, and enough of its id to be unique.
fn label(program: &Program) -> String {
    format!("{} [{}]", Name(&program.name), &program.id.to_string()[..8])
}

impl Observer for ConsoleObserver {
    fn observe(&self, program: &Arc<Program>) -> Result<(), String> {
        let label = label(program);
        let about = json!({"name": program.name, "id": program.id.to_string()});
        self.say(&format!("{label}: connected"), json!({"what": "program", "program": about}));
        let told = Vec::new();
        let mut listener =
            ProgramListener { observer: self, program, label: &label, about: &about, told };
        let examined = self.session.follow(&Running(program), &mut listener);
        let mut told = listener.told;
        self.totals().programs += 1;
        match examined {
            Ok(examined) => {
                let mut report = Report::of(examined, &Tests::default());
                report.suppress(self.suppressions.clone());
                let status = exit_status(&report);
                let mut totals = self.totals();
                totals.incomplete += u64::from(status == 3);
                totals.errors += u64::from(status == 2);
                totals.is_found |= status == 1;
                let how = match status {
                    0 => "nothing found",
                    1 => "found something",
                    2 => "failed",
                    _ => "not complete",
                };
                self.view.over(&label, program.events(), how);
                for finding in &report.findings {
                    // Some findings appear only at the end.
                    let is_it = |(property, kind): &(String, FindingKind)| {
                        *property == finding.property && *kind == finding.kind
                    };
                    match told.iter().position(is_it) {
                        Some(place) => drop(told.swap_remove(place)),
                        None => self.view.finding(&label, finding),
                    }
                    let key = (finding.property.clone(), finding.kind.word());
                    *totals.verdicts.entry(key).or_default() += 1;
                }
                drop(totals);
                let told = check::render(self.format, &report, &self.options);
                let verdict = |json: &str| {
                    visible(&format!(
                        "{{\"what\":\"verdict\",\"program\":{about},\"status\":{status},\"report\":{}}}\n",
                        json.trim_end()
                    ))
                };
                self.print(&match self.format {
                    ReportFormat::Json => verdict(&told),
                    _ => told,
                });
                if let Some(fleet) = &self.fleet {
                    for (i, finding) in report.findings.iter().enumerate() {
                        let name = name_of(finding, i);
                        self.publish(program, &name, &told_of("finding", &about, finding));
                    }
                    fleet.verdict(program.id, verdict(&foresee_report::json::report(&report)));
                }
                Ok(())
            }
            Err(error) => {
                self.totals().errors += 1;
                self.view.over(&label, program.events(), "failed");
                let text = format!("{:#}", specs::failed(error));
                let line = json!({"what": "error", "program": about, "message": text});
                if let Some(fleet) = &self.fleet {
                    fleet.verdict(program.id, visible(&line.to_string()));
                }
                self.say(&format!("{label}: error: {text}"), line);
                Err(text)
            }
        }
    }

    fn log_reader(&self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(JvmReader(LiveLog::new(self.most_threads))))
    }

    fn problem(&self, peer: &str, program: Option<&str>, what: &str) {
        let who =
            program.map_or_else(|| peer.to_owned(), |name| format!("{} ({peer})", Name(name)));
        match self.format {
            ReportFormat::Text
            | ReportFormat::Sarif
            | ReportFormat::Junit
            | ReportFormat::Github => {
                let text = format!("{who}: {what}");
                if !self.view.takes(&Visible(&text).to_string()) {
                    self.view.around(|| output::note(&text));
                }
            }
            ReportFormat::Json => {
                let line =
                    json!({"what": "trouble", "peer": peer, "name": program, "message": what});
                self.print(&visible(&format!("{line}\n")));
            }
        }
    }
}

/// Whether something was found: what rests on a condition was not.
fn is_claimed(finding: &Finding) -> bool {
    finding.kind != FindingKind::Conditional
}

/// The word for a finding in subjects, the same whenever it is found.
fn name_of(finding: &Finding, number: usize) -> String {
    match &finding.fingerprint {
        Some(fingerprint) => fingerprint.to_string(),
        None => format!("{number}"),
    }
}

/// A finding in JSON.
fn told_of(what: &str, about: &serde_json::Value, finding: &Finding) -> String {
    visible(&format!(
        "{{\"what\":\"{what}\",\"program\":{about},\"finding\":{}}}\n",
        foresee_report::json::one(finding)
    ))
}

/// The log of a Java program, which its agent sends.
struct JvmReader(LiveLog);

impl LogReader for JvmReader {
    fn read(&mut self, payload: &[u8], frames: &mut Vec<u8>) -> io::Result<()> {
        self.0.read(payload, frames)
    }

    fn finish(&mut self, frames: &mut Vec<u8>) -> io::Result<()> {
        self.0.finish(frames)
    }

    fn remarks(&self) -> Remarks {
        self.0.remarks().clone()
    }

    fn events(&self) -> u64 {
        self.0.events()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// A program that is observed, as a trace that grows.
struct Running<'p>(&'p Arc<Program>);

impl GrowingTrace for Running<'_> {
    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn order(&self) -> FileOrder {
        self.0.order()
    }

    fn follow(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.0.follow()
    }

    fn stored(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.0.stored()
    }

    fn is_all_stored(&self) -> bool {
        self.0.is_all_stored()
    }

    fn is_continued(&self) -> bool {
        self.0.is_continued()
    }

    fn continues(&self) -> Result<Continued, ReadError> {
        let lost =
            |error: io::Error| ReadError::new(ErrorKind::Io, Position::Unknown, error.to_string());
        self.0.continues().map_err(lost)
    }

    fn allows(&self, bytes: usize) -> bool {
        self.0.allows(bytes)
    }
}

/// Prints findings as they are made.
struct ProgramListener<'a> {
    observer: &'a ConsoleObserver,
    program: &'a Program,
    label: &'a str,
    about: &'a serde_json::Value,
    /// What was found while the program ran.
    told: Vec<(String, FindingKind)>,
}

impl ProgramListener<'_> {
    fn is_suppressed(&self, finding: &Finding) -> bool {
        self.observer.suppressions.clone().cover(finding).is_some()
    }

    fn tell(&self, what: &str, word: &str, finding: &Finding) {
        let Finding { property, message, .. } = finding;
        self.observer.print(&match self.observer.format {
            ReportFormat::Text => {
                let property = Visible(property);
                format!("{}: {word} {property}: {}\n", self.label, Visible(message))
            }
            ReportFormat::Json => told_of(what, self.about, finding),
            // These are for whole reports, at the end.
            ReportFormat::Sarif | ReportFormat::Junit | ReportFormat::Github => return,
        });
    }
}

impl Listener for ProgramListener<'_> {
    fn found(&mut self, finding: &Finding) {
        if self.is_suppressed(finding) {
            return;
        }
        // What is not claimed is no finding by itself.
        self.observer.totals().findings += u64::from(is_claimed(finding));
        self.observer.view.finding(self.label, finding);
        self.told.push((finding.property.clone(), finding.kind));
        self.tell("finding", &finding.kind.word().to_uppercase(), finding);
        // Those without a fingerprint come with the verdict.
        if let Some(fingerprint) = &finding.fingerprint {
            let json = told_of("finding", self.about, finding);
            self.observer.publish(self.program, &fingerprint.to_string(), &json);
        }
    }

    fn withdrawn(&mut self, finding: &Finding) {
        if self.is_suppressed(finding) {
            return;
        }
        self.observer.totals().withdrawn += u64::from(is_claimed(finding));
        let why =
            "WITHDRAWN, as a name now means something else, or the order of events is not known:";
        self.tell("withdrawn", why, finding);
        if let Some(fingerprint) = &finding.fingerprint {
            let json = told_of("withdrawn", self.about, finding);
            self.observer.publish(self.program, &format!("withdrawn-{fingerprint}"), &json);
        }
    }

    fn warning(&mut self, spec: &Specification, diagnostics: &[Diagnostic]) {
        self.observer.view.around(|| specs::warn(&spec.name, &spec.text, diagnostics));
    }

    fn internal_error(&mut self, error: &InternalError<'_>) {
        self.observer.view.around(|| bug::report(error));
    }
}

#[cfg(test)]
mod tests;
