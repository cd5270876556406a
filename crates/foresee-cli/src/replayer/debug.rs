//! Stops a program at a step of its schedule, for a debugger or to say where its threads are.

use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use foresee_capture::replay::script::{Mode, Way};
use foresee_capture::replay::{Flag, Schedule, State};
use foresee_capture::scratch::Scratch;

use super::{Outcome, Replayer, STRICT, Shown, confirms, describe, nothing_recorded, step_text};

/// A debugger that can be attached to a program.
pub(crate) struct Debugger {
    program: PathBuf,
    arguments: Vec<String>,
    is_lldb: bool,
}

/// Where to stop.
pub(crate) struct Stop {
    /// The step, counted from zero; the violating one if it is not given.
    pub(crate) step: Option<usize>,
    /// What looks at the program there; without one, the program is ended.
    pub(crate) debugger: Option<Debugger>,
}

impl Debugger {
    /// The debugger of a command line, or the first that is installed.
    pub(crate) fn find(line: Option<&str>) -> anyhow::Result<Debugger> {
        let words = match line {
            Some(line) => words(line)?,
            None => Vec::new(),
        };
        let (name, arguments) = match words.split_first() {
            Some((name, arguments)) => (name.clone(), arguments.to_vec()),
            None => {
                ensure!(line.is_none(), "--debugger needs a command, as in `--debugger gdb`");
                let known = ["gdb", "lldb"].into_iter().find(|name| in_path(name).is_some());
                let none = "there is no debugger: install gdb or lldb, or name one with --debugger";
                (known.context(none)?.to_owned(), Vec::new())
            }
        };
        let program = match name.contains('/') {
            true => Some(PathBuf::from(&name)).filter(|path| path.is_file()),
            false => in_path(&name),
        };
        let program = program.with_context(|| format!("there is no debugger `{name}`"))?;
        let is_lldb =
            program.file_name().is_some_and(|name| name.to_string_lossy().contains("lldb"));
        Ok(Debugger { program, arguments, is_lldb })
    }

    /// Lets the user look at a process that is held at a step in this function, until the debugger ends.
    fn look_at(&self, process: u32, function: &str) -> io::Result<()> {
        let scratch = Scratch::new()?;
        let commands = scratch.path().join("commands");
        std::fs::write(&commands, self.commands(function))?;
        let mut command = Command::new(&self.program);
        match self.is_lldb {
            true => command.args(["-p", &process.to_string(), "--source"]).arg(&commands),
            false => command.args(["-q", "-p", &process.to_string(), "-x"]).arg(&commands),
        };
        let status = command.args(&self.arguments).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the debugger {} ended with {status}",
                self.program.display()
            ))),
        }
    }

    /// What the debugger does first: it stops the thread of the step, lets the program go on from there when the user says
    /// so, and selects the frame of the program's own function.
    fn commands(&self, function: &str) -> String {
        let is_name = |c: char| c.is_alphanumeric() || "_:<>~, *&".contains(c);
        let function = Some(function).filter(|name| !name.is_empty() && name.chars().all(is_name));
        match self.is_lldb {
            true => {
                let frame = function.map_or(String::new(), |name| {
                    format!(
                        "script next((lldb.thread.SetSelectedFrame(frame.idx) for frame in lldb.thread.frames \
                         if frame.GetFunctionName() == '{name}'), None)\n"
                    )
                });
                format!(
                    "breakpoint set --one-shot true --name foresee_at_step\nprocess continue\n\
                     expression -- *(int *)&foresee_held = 0\n{frame}"
                )
            }
            false => {
                let frame =
                    function.map_or(String::new(), |name| format!("frame function {name}\n"));
                format!(
                    "set pagination off\nset breakpoint pending off\ntbreak foresee_at_step\ncontinue\n\
                     set variable *(int *)&foresee_held = 0\n{frame}"
                )
            }
        }
    }
}

/// A program that the shell would find.
fn in_path(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The words of a command line; either kind of quotes groups them.
fn words(line: &str) -> anyhow::Result<Vec<String>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    ensure!(quote.is_none(), "a quotation mark in --debugger is not closed");
    all.extend(word);
    Ok(all)
}

/// The step at which a claim shows: the violating one or, if several threads stand at accesses at once, the first of these.
fn step_of_claim(schedule: &Schedule) -> Option<usize> {
    let at = schedule.violation()?;
    let is_there = |step: &usize| schedule.steps[*step].flags.contains(&Flag::Terminal);
    let first = (0..=at).rev().take_while(is_there).last();
    Some(first.unwrap_or(at))
}

/// The function in a comment like `file.c:12(function)`.
fn function_of(comment: &str) -> &str {
    let inner = comment.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inner.map_or("", |(function, _)| function)
}

impl Replayer<'_> {
    /// Makes the program follow a schedule to a step and holds all threads there.
    pub(crate) fn stop(&self, schedule: &Schedule, stop: &Stop) -> anyhow::Result<Outcome> {
        let of = schedule.steps.len();
        let at = match stop.step {
            Some(step) => step,
            None => step_of_claim(schedule).context(
                "the schedule claims nothing, so that no step violates: name one with --step",
            )?,
        };
        ensure!(at < of, "the schedule has {of} steps: --step is a number from 1 to {of}");
        let (schedule, is_same) = match self.fit(schedule)? {
            Ok(fit) => fit,
            Err(outcome) => return Ok(outcome),
        };
        let first = is_same.then_some(Mode::Strict);
        let (mut diverged, usual) = (nothing_recorded(), OnceCell::new());
        for mode in first.into_iter().chain([Mode::Switch]) {
            let way = Way { mode, ..STRICT };
            let mut was_held = false;
            let on_held = &mut |process| {
                was_held = true;
                let Some(debugger) = &stop.debugger else { return Ok(false) };
                crate::output::note(&format!(
                    "held before step {} of {of}: {}",
                    at + 1,
                    step_text(&schedule, at)
                ));
                debugger.look_at(process, function_of(&schedule.steps[at].comment)).map(|()| true)
            };
            let Some(attempt) = self.attempt_held(&schedule, way, Some(at), on_held)? else {
                return Ok(nothing_recorded());
            };
            let step = step_text(&schedule, at);
            if attempt.progress.state == State::Held {
                ensure!(
                    stop.debugger.is_none(),
                    "the debugger ended without letting the program continue, so the program was ended"
                );
                let how = format!("all threads stand still before step {} of {of}: {step}", at + 1);
                return Ok(Outcome::Held(Shown {
                    how,
                    stacks: attempt.stacks,
                    ..Shown::default()
                }));
            }
            if let Some(shown) = confirms(&schedule, &attempt, way, || self.usual(&usual))? {
                return Ok(Outcome::Confirmed(shown));
            }
            if attempt.progress.state == State::Followed {
                return Ok(Outcome::Harmless);
            }
            diverged = Outcome::Diverged(describe(&schedule, mode, &attempt).1);
            if was_held {
                break;
            }
        }
        Ok(diverged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_as_shells_do() {
        let line = "gdb -batch -ex \"info threads\" -ex 'bt 1'";
        assert_eq!(words(line).unwrap(), ["gdb", "-batch", "-ex", "info threads", "-ex", "bt 1"]);
        assert!(words("gdb 'x").is_err());
        assert_eq!(function_of("a.c:3(f)"), "f");
        assert_eq!(function_of("a.cc:3(f(int))"), "f(int)");
        assert_eq!(function_of("a.c:3"), "");
    }
}
