//! The text of a schedule that an exploration found: `docs/formats/explored-schedule.md` describes it.

use std::fmt::Write as _;

use crate::program::{Schedule, Step, TIME_OUT, Tail, ThreadName};

/// The first line.
pub const FIRST: &str = "foresee-explored-schedule 1";
/// The most steps of a schedule.
const MOST_STEPS: u64 = 16 << 20;

/// A schedule, and what it is a schedule of.
#[derive(Clone, Debug)]
pub struct Script {
    /// The program, as it was called.
    pub program: String,
    /// The linker's fingerprint of the program, in hexadecimal digits.
    pub build_id: String,
    /// What happens, in one sentence.
    pub claim: String,
    /// All steps.
    pub schedule: Schedule,
}

/// Why a text is no schedule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    /// The line, from one.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl Script {
    /// As text.
    pub fn text(&self) -> String {
        let one_line = |text: &str| text.replace(['\n', '\r'], " ");
        let mut out = format!("{FIRST}\nprogram {}\n", one_line(&self.program));
        let _ = writeln!(out, "build-id {}\nclaim {}", self.build_id, one_line(&self.claim));
        for name in &self.schedule.threads {
            let _ = writeln!(out, "thread {name}");
        }
        let steps = &self.schedule.steps;
        let same = |one: &Step, other: &Step| one == other && one.choice == 0;
        for run in steps.chunk_by(same) {
            let name = &self.schedule.threads[run[0].thread as usize];
            let _ = match (run[0].choice, run.len()) {
                (0, 1) => writeln!(out, "step {name}"),
                (0, times) => writeln!(out, "step {name} times={times}"),
                (TIME_OUT, _) => writeln!(out, "step {name} timeout"),
                (choice, _) => writeln!(out, "step {name} wakes={choice}"),
            };
        }
        let _ = writeln!(out, "end {}", steps.len());
        out
    }

    /// From text.
    ///
    /// # Errors
    /// If it is no schedule, or was cut off.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let schedule = Schedule {
            threads: Vec::new(),
            steps: Vec::new(),
            tail: Tail::Straight,
            most_operations: usize::MAX,
        };
        let (program, build_id, claim) = (String::new(), String::new(), String::new());
        let mut script = Script { program, build_id, claim, schedule };
        let (mut is_over, mut last) = (false, 1);
        for (i, line) in text.lines().enumerate() {
            last = i + 1;
            let wrong = |what: &str| ScriptError { line: i + 1, what: what.to_owned() };
            if i == 0 {
                if line != FIRST {
                    return Err(wrong(
                        "a schedule of an exploration begins with `foresee-explored-schedule 1`",
                    ));
                }
                continue;
            }
            if is_over && !line.is_empty() {
                return Err(wrong("nothing may follow `end`"));
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "" => {}
                "program" => rest.clone_into(&mut script.program),
                "build-id" => rest.clone_into(&mut script.build_id),
                "claim" => rest.clone_into(&mut script.claim),
                "thread" => {
                    let name = thread(rest).ok_or_else(|| wrong("this is no name of a thread"))?;
                    script.schedule.threads.push(name);
                }
                "step" => script.step(rest).map_err(|what| wrong(&what))?,
                "end" => {
                    let steps = script.schedule.steps.len();
                    if rest.parse() != Ok(steps) {
                        return Err(wrong(&format!("there are {steps} steps, not `{rest}`")));
                    }
                    is_over = true;
                }
                other => {
                    return Err(wrong(&format!("no line of a schedule begins with `{other}`")));
                }
            }
        }
        if !is_over {
            let what = "the schedule is cut off: its last line must be `end N`".to_owned();
            return Err(ScriptError { line: last, what });
        }
        Ok(script)
    }

    fn step(&mut self, rest: &str) -> Result<(), String> {
        let (name, how) = rest.split_once(' ').unwrap_or((rest, ""));
        let known = thread(name)
            .and_then(|name| self.schedule.threads.iter().position(|other| *other == name));
        let thread = known.ok_or_else(|| format!("no thread is {name}"))? as u32;
        let number = |text: &str| {
            let number = text.parse::<u32>().ok();
            number.filter(|&n| n > 0).ok_or_else(|| format!("`{text}` is not a number"))
        };
        let (choice, times) = if how.is_empty() {
            (0, 1)
        } else if how == "timeout" {
            (TIME_OUT, 1)
        } else if let Some(times) = how.strip_prefix("times=") {
            (0, number(times)?)
        } else if let Some(which) = how.strip_prefix("wakes=") {
            (number(which)?, 1)
        } else {
            return Err(format!("a step has no `{how}`"));
        };
        if self.schedule.steps.len() as u64 + u64::from(times) > MOST_STEPS {
            return Err(format!("there are more than {MOST_STEPS} steps"));
        }
        self.schedule.steps.extend((0..times).map(|_| Step { thread, choice }));
        Ok(())
    }
}

/// A name of a thread: `0`, `0.1`, `0.1.2`.
fn thread(text: &str) -> Option<ThreadName> {
    let mut parts = text.split('.');
    if parts.next() != Some("0") {
        return None;
    }
    parts.map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>().map(ThreadName)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Script {
        let step = |thread, choice| Step { thread, choice };
        Script {
            program: "./bank".to_owned(),
            build_id: "ab12".to_owned(),
            claim: "bank.c:41: failed assertion".to_owned(),
            schedule: Schedule {
                threads: vec![ThreadName::default(), ThreadName(vec![2, 1])],
                steps: vec![step(0, 0), step(0, 0), step(1, TIME_OUT), step(1, 3), step(0, 0)],
                tail: Tail::Straight,
                most_operations: usize::MAX,
            },
        }
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let text = example().text();
        let read = Script::parse(&text).expect("it is a schedule");
        assert_eq!(read.text(), text);
        assert_eq!(read.schedule.steps, example().schedule.steps);
        assert_eq!(read.schedule.threads, example().schedule.threads);
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let text = example().text();
        let wrong = |text: &str| Script::parse(text).expect_err("it is wrong").to_string();
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            assert!(wrong(&lines[..kept].join("\n")).contains("cut off"));
        }
        assert!(wrong("foresee-schedule 1\n").starts_with("line 1: a schedule of an exploration"));
        for (from, to, message) in [
            ("step 0 times=2", "step 0.9", "no thread is 0.9"),
            ("times=2", "times=0", "`0` is not a number"),
            ("timeout", "late", "a step has no `late`"),
            ("end 5", "end 4", "there are 5 steps, not `4`"),
            ("claim", "clam", "no line of a schedule begins with `clam`"),
        ] {
            let message_of = wrong(&text.replacen(from, to, 1));
            assert!(message_of.ends_with(message), "{message_of}");
        }
    }
}
