//! Programs of the JVM: the agent is brought in before they run, and its logs are read afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use foresee_capture::jvm::{Agent, Injected, JvmLog, JvmTrace, is_java};
use foresee_capture::program::{Built, Program};
use foresee_observe::ProgramId;
use foresee_predict::session::Session;
use foresee_report::Parts;

use super::parts::{Part, unusable};
use super::{Failed, Reports, Run};
use crate::args::{CaptureMode, RunArgs, Stacks};
use crate::{output, progress};

/// The agent, if the command runs Java or something that may start it.
pub(super) fn agent(args: &RunArgs, program: &Program) -> anyhow::Result<Option<Agent>> {
    let command = &args.command[0];
    // A shell, for one, is neither built for capture nor a script.
    if !is_java(command) && !matches!(program.built, Built::Starter | Built::Plain) {
        return Ok(None);
    }
    Ok(Agent::find(command)?)
}

/// The command or the variable that brings the agent in, which records into `logs`, and sends what it records to a socket.
pub(super) fn inject(
    agent: &Agent,
    run: &Run<'_>,
    folder: &Path,
    logs: &Path,
    socket: Option<&Path>,
) -> anyhow::Result<Injected> {
    let logs = logs.to_str().context("the temporary folder's name is not text")?;
    let mut settings = vec![("out", logs.to_owned())];
    settings.extend(run.recording.limit.map(|bytes| ("limit", bytes.to_string())));
    if run.args.mode == CaptureMode::Async {
        settings.push(("mode", "async".to_owned()));
    }
    if run.args.stacks == Stacks::On {
        settings.push(("stacks", "on".to_owned()));
    }
    if run.args.all {
        settings.push(("filter", "none".to_owned()));
    }
    if let Some(socket) = socket {
        settings.push(("to", format!("unix:{}", socket.display())));
        settings.push(("name", run.file_name()));
        settings.extend(run.args.publish.token.clone().map(|token| ("token", token)));
    }
    settings.extend(watched(run.session));
    settings.extend(run.args.include.iter().map(|name| ("include", name.clone())));
    settings.extend(run.args.exclude.iter().map(|name| ("exclude", name.clone())));
    let injected = agent.inject(&run.args.command, &folder.join("agent"), &settings);
    injected.context("cannot bring in the agent for Java")
}

/// The fields and methods that the questions are about.
fn watched(session: &Session) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for source in session.specs() {
        all.extend(named(&source.spec));
    }
    let regions = session.settings().regions.iter().cloned().chain(session.atomics());
    all.extend(regions.map(|method| ("method", method.as_str().to_owned())));
    all
}

/// The fields and methods of a specification.
pub(crate) fn named(spec: &foresee_spec::ast::Spec) -> Vec<(&'static str, String)> {
    let fields = foresee_spec::variables(spec);
    let methods = foresee_spec::methods(spec);
    let fields = fields.iter().map(|(name, _)| ("field", (*name).to_owned()));
    let of_objects = foresee_spec::object_types(spec).into_iter().flat_map(|(of, paths)| {
        paths.into_iter().map(move |path| ("object", format!("{of}.{path}")))
    });
    let fields = fields.chain(of_objects);
    fields.chain(methods.iter().map(|(name, _)| ("method", (*name).to_owned()))).collect()
}

impl Run<'_> {
    /// Says which runs of JVMs were published; returns the failure of the program, which observers do not know.
    pub(super) fn published_jvms<'f, E: std::fmt::Display>(
        &self,
        passed_on: Vec<Result<ProgramId, E>>,
        failed: Option<Failed<'f>>,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<Option<Failed<'f>>> {
        let is_any = !passed_on.is_empty();
        if is_any && self.args.publish.lossy {
            output::note(
                "--lossy has no effect on Java programs: they wait while the queue is full",
            );
        }
        for run in passed_on {
            match run {
                Ok(run) => {
                    told.to.print(&format!("{}: published as run {run}\n", self.name))?;
                    told.note(0);
                }
                Err(why) => bail!("{}: {why}", self.name),
            }
        }
        match failed {
            Some(failed) if is_any => {
                told.put(self.recording.seed, failed.report(self.name))?;
                Ok(None)
            }
            failed => Ok(failed),
        }
    }

    /// Reports on every JVM that was captured; returns the failure if none of them is the one that failed.
    pub(super) fn report_jvms<'f>(
        &self,
        found: &[PathBuf],
        failed: Option<Failed<'f>>,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<Option<Failed<'f>>> {
        let logs: Result<Vec<JvmLog>, _> = found.iter().map(|path| JvmLog::open(path)).collect();
        let logs = logs.context("the log cannot be read")?;
        let memory = self.args.analysis.max_memory.saturating_mul(1 << 20);
        let open = |i: usize| {
            let log = &logs[i];
            let label = format!("process {}", log.pid);
            let title = self.title(i, &label);
            let bar = progress::events("merging");
            let mut progress = |events| bar.set_position(events);
            let keep = self.kept_accesses();
            let trace = JvmTrace::read(log, title.clone(), keep, memory, &mut progress);
            bar.finish_and_clear();
            let mut trace = trace.with_context(|| unusable(&title))?;
            let notes = std::mem::take(&mut trace.notes);
            Ok(Part { label, process: log.pid, trace, notes })
        };
        // A build tool may start several, each for some of the tests: they have one report.
        self.report_parts(logs.len(), open, Parts::Processes, failed, told)
    }
}
