//! The rr format: the log of RoadRunner's print tool, as RAPID reads it.
//!
//! An event is `@  Word(thread,operands)`, optionally followed by a flag and the location. For
//! operations that RoadRunner does not have, we use words in the same style.

use std::fmt::Write as _;

use foresee_trace::{Event, Name, Names, Op, Pool, Remarks};

use crate::operation::{OperationParser, listed_name, whole_name};
use crate::parse_error::{ParseError, Parsed, shown};
use crate::text::{LineParser, LineWriter, TextFormat};

/// RoadRunner's log.
#[derive(Clone, Copy, Debug)]
pub struct RoadRunner;

impl TextFormat for RoadRunner {
    type Lines = RoadRunnerLines;

    const ABOUT: &'static str = "RoadRunner's log as RAPID reads it: @ Wr(0,x)  Final  A.java:7:9";

    fn sniff_line(_: &str, head: &[u8]) -> bool {
        // Its messages come first.
        let mut lines = head.split(|&b| b == b'\n');
        lines.any(|l| std::str::from_utf8(l).is_ok_and(|l| event_of_line(l).is_some()))
    }
}

/// The words of the log. If an operation has two words, the first is written.
const WORDS: &[(&str, Op)] = &[
    ("Rd", Op::Read),
    ("Wr", Op::Write),
    ("ARd", Op::Read),
    ("AWr", Op::Write),
    ("VRd", Op::VolatileRead),
    ("VWr", Op::VolatileWrite),
    ("Acquire", Op::Acquire),
    ("Release", Op::Release),
    ("Start", Op::Fork),
    ("Join", Op::Join),
    ("Enter", Op::Enter),
    ("Exit", Op::Exit),
    ("Rmw", Op::Rmw),
    ("Init", Op::Init),
    ("SharedAcquire", Op::AcquireShared),
    ("Try", Op::Try),
    ("TryFor", Op::TryFor),
    ("Busy", Op::Busy),
    ("SharedBusy", Op::BusyShared),
    ("Request", Op::Request),
    ("SharedRequest", Op::RequestShared),
    ("Await", Op::Await),
    ("Block", Op::Block),
    ("SharedRelease", Op::ReleaseShared),
    ("ThreadBegin", Op::ThreadBegin),
    ("ThreadEnd", Op::ThreadEnd),
    ("Begin", Op::Begin),
    ("End", Op::End),
    ("Wait", Op::Wait),
    ("WaitBegin", Op::WaitBegin),
    ("WaitEnd", Op::WaitEnd),
    ("Notify", Op::Notify),
    ("NotifyAll", Op::NotifyAll),
    ("Event", Op::Event),
    ("Relaxed", Op::Relaxed),
    ("AcquireOnly", Op::AcquireOnly),
    ("ReleaseOnly", Op::ReleaseOnly),
    ("FenceAcquire", Op::FenceAcquire),
    ("FenceRelease", Op::FenceRelease),
    ("Fence", Op::Fence),
];

/// The word and what follows its bracket, if the line looks like an event.
fn event_of_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_ascii_start().strip_prefix('@')?.trim_ascii_start();
    let (word, operands) = line.split_once('(')?;
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic());
    is_word.then_some((word, operands))
}

#[derive(Default)]
pub(crate) struct RoadRunnerLines {
    operation: OperationParser,
    unquoted: String,
    described: String,
    skipped: u64,
    first_skipped: String,
}

impl LineParser for RoadRunnerLines {
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        pool: &mut Pool,
        _: &mut Remarks,
    ) -> Parsed<Option<Event>> {
        let Some((word, operands)) = event_of_line(line) else {
            if self.skipped == 0 {
                self.first_skipped = shown(line);
            }
            self.skipped += 1;
            return Ok(None);
        };
        let Some(&(_, op)) = WORDS.iter().find(|(w, _)| *w == word) else {
            let words: Vec<_> = WORDS.iter().map(|(w, _)| *w).collect();
            return Err(ParseError::syntax(format!("unknown event {}", shown(word)))
                .with_help(format!("events are {}", words.join(" "))));
        };
        let (thread, rest) = listed_name(&mut self.unquoted, operands)?;
        let Some(thread) = thread else { return Err(ParseError::syntax("the thread is missing")) };
        let event = Event::new(self.operation.known.thread(thread, names)?, op);
        // The operands of the operation follow the thread's comma, if there are any.
        let operands = rest.strip_prefix(',').unwrap_or(rest);
        let (event, rest) = self.operation.operands(event, operands, names, pool)?;
        let location = location(&mut self.unquoted, rest)?;
        Ok(Some(event.with_loc(self.operation.known.loc(location, names)?)))
    }

    fn end(&mut self, remarks: &mut Remarks) {
        if self.skipped > 0 {
            let (lines, first) = (self.skipped, &self.first_skipped);
            let lines = if lines == 1 { "1 line is".into() } else { format!("{lines} lines are") };
            remarks.warnings.push(format!("{lines} not events and were skipped, first {first}"));
        }
    }
}

/// The location after an event: the last word after a flag.
fn location<'s, 't: 's>(buffer: &'s mut String, rest: &'t str) -> Parsed<&'s str> {
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return Err(ParseError::syntax(format!("{} after the event", shown(rest))));
    }
    let rest = rest.trim_ascii();
    let (flag, place) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let place = place.trim_ascii();
    match flag {
        // "Enter(0,f) from g": the calling method, which is not a location.
        "from" => Ok(""),
        _ if place.starts_with('"') => whole_name(buffer, place),
        _ => Ok(place.rsplit([' ', '\t']).next().unwrap_or(place)),
    }
}

impl LineWriter for RoadRunnerLines {
    const FORMAT: &'static str = "rr";

    fn event(&mut self, event: &Event, names: &Names, pool: &Pool, out: &mut String) {
        let op = event.op();
        // Inner operations of locks share the words of outer ones, as in all formats.
        let same = |(_, other): &&(&str, Op)| other.word() == op.word();
        let word = WORDS.iter().find(same).map_or("Event", |(word, _)| word);
        let thread = Name(names.threads.get(event.thread()));
        self.described.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.described, "{}", event.describe(names, pool));
        let _ = match self.described[op.word().len()..].strip_prefix('(') {
            Some(operands) => write!(out, "@   {word}({thread},{operands}"),
            None => write!(out, "@   {word}({thread})"),
        };
        if event.loc().is_some() {
            let _ = write!(out, "  Final  {}", Name(names.locs.get(event.loc())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_word() {
        for op in Op::ALL {
            assert!(WORDS.iter().any(|(_, other)| other.word() == op.word()), "{op:?}");
        }
        let words: std::collections::HashSet<_> = WORDS.iter().map(|(word, _)| word).collect();
        assert_eq!(words.len(), WORDS.len());
    }
}
