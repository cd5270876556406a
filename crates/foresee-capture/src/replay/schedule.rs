//! The text of a schedule: `docs/formats/schedule.md` describes it.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::Line;
use foresee_rt::format::{ACCESSES, Access, RUN, Tag};

/// The first line.
const FIRST: &str = "foresee-schedule 1";
/// The maximum number of steps and of threads.
const MOST_STEPS: usize = 16 << 20;
const MOST_THREADS: usize = 1 << 18;

/// An order of steps of threads, and what it is an order of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The program, as it was called.
    pub program: String,
    /// The linker's fingerprint of the program, in hexadecimal digits.
    pub build_id: String,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// A checksum of the environment.
    pub environment: Option<u64>,
    /// Checksums of what the program reads: its standard input, and files among its arguments.
    pub inputs: Vec<(String, u64)>,
    /// How the program failed in the run that it was made from; empty if it did not.
    pub observed_end: String,
    /// What the order shows; `None` for the observed order.
    pub claim: Option<Claim>,
    /// The specifications by which it is judged: their names and texts.
    pub specs: Vec<(String, String)>,
    /// The checks by which it is judged.
    pub checks: Vec<String>,
    /// How to recognise places of the program in another build, by their offsets.
    pub lines: Vec<(u64, Line)>,
    /// The threads; the first one runs `main`.
    pub threads: Vec<ScheduleThread>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// What goes wrong in an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The rule that is violated.
    pub rule: String,
    /// The finding, as it is known from run to run.
    pub fingerprint: String,
    /// What happens, in one sentence.
    pub message: String,
    /// Where it happens.
    pub places: Vec<String>,
    /// What it is about as a whole: a variable, an object, a region.
    pub about: Vec<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleThread {
    /// The index of the thread that starts it; its own for the first one.
    pub parent: usize,
    /// How many threads that one started before it.
    pub before: u32,
    /// Its name in reports.
    pub name: String,
}

/// The place of a step: an offset in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// No place: the beginning and the end of a thread.
    None,
    /// In the program itself.
    Program(u64),
    /// In a library.
    Library(String, u64),
}

/// What else is said of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The violation.
    Violation,
    /// A read that may see another value.
    Terminal,
    /// A wait that ends because its time is over.
    Timeout,
}

impl Flag {
    const ALL: [(Flag, &'static str); 3] =
        [(Flag::Violation, "violation"), (Flag::Terminal, "terminal"), (Flag::Timeout, "timeout")];

    fn name(self) -> &'static str {
        Flag::ALL.iter().find(|known| known.0 == self).map_or("", |known| known.1)
    }
}

/// A step of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The index of the thread.
    pub thread: usize,
    /// How many steps the thread took before it.
    pub number: u64,
    /// The tag of its record.
    pub tag: u8,
    /// Where.
    pub place: Place,
    /// The value read or written, if it is the same in every run.
    pub value: Option<u64>,
    /// For the last step before another thread continues, and for one that fails: how many steps like this its thread has taken since its previous such
    /// step, with this one.
    pub since: Option<u64>,
    /// What else is said of it.
    pub flags: Vec<Flag>,
    /// What people want to know: the place in the source.
    pub comment: String,
}

/// Why a text is no schedule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScheduleError {
    /// The line, from one.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// The names of accesses, by their numbers.
const ACCESS_NAMES: [&str; 7] =
    ["read", "write", "atomic-read", "atomic-write", "rmw", "relaxed-read", "relaxed-write"];

/// The name of the operation with this tag.
pub fn op_name(tag: u8) -> String {
    if tag < ACCESSES {
        let name = ACCESS_NAMES.get(usize::from(tag >> 3)).copied().unwrap_or("access");
        return match tag & 7 {
            RUN => format!("{name}-run"),
            size => format!("{name}{}", 1u32 << size),
        };
    }
    let Some(tag) = Tag::from_code(tag) else { return format!("operation-{tag}") };
    let mut name = String::new();
    for letter in format!("{tag:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Whether the operation with this tag accesses a number of bytes that the processor reads or writes at once.
pub fn is_sized(tag: u8) -> bool {
    tag < ACCESSES && tag & 7 != RUN
}

/// The tag of the operation with this name.
fn tag_of(name: &str) -> Option<u8> {
    let is_access = |tag: u8| Access::from_code(tag >> 3).is_some() && tag & 7 <= RUN;
    let known = (0..ACCESSES).filter(|&tag| is_access(tag));
    let known = known.chain((2 * ACCESSES..=u8::MAX).filter(|&tag| Tag::from_code(tag).is_some()));
    known.into_iter().find(|&tag| op_name(tag) == name)
}

/// A text as the rest of a line.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

fn unescape(text: &str) -> Option<String> {
    let (mut out, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(out)
}

impl Schedule {
    /// The creation path of a thread: `0` runs `main`, `0.2` is the second thread that it starts.
    pub fn path(&self, thread: usize) -> String {
        let (mut parts, mut at) = (Vec::new(), thread);
        // Parents come before their children.
        while let Some(thread) = self.threads.get(at).filter(|thread| thread.parent < at) {
            parts.push((thread.before + 1).to_string());
            at = thread.parent;
        }
        parts.push("0".to_owned());
        parts.reverse();
        parts.join(".")
    }

    /// Whether it claims what a check finds, rather than that a property is violated.
    pub fn claims_check(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.rule.contains('/'))
    }

    /// The step that violates.
    pub fn violation(&self) -> Option<usize> {
        self.steps.iter().rposition(|step| step.flags.contains(&Flag::Violation))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::None => f.write_str("-"),
            Place::Program(offset) => write!(f, "program+{offset:x}"),
            Place::Library(name, offset) => write!(f, "{}+{offset:x}", name.replace(' ', "_")),
        }
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        if text == "-" {
            return Ok(Place::None);
        }
        let (name, offset) = text.rsplit_once('+').ok_or(())?;
        let offset = u64::from_str_radix(offset, 16).map_err(|_| ())?;
        Ok(match name {
            "program" => Place::Program(offset),
            "" => return Err(()),
            name => Place::Library(name.to_owned(), offset),
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST}")?;
        writeln!(f, "program {}", Escaped(&self.program))?;
        writeln!(f, "build-id {}", self.build_id)?;
        for argument in &self.arguments {
            writeln!(f, "argument {}", Escaped(argument))?;
        }
        if let Some(sum) = self.environment {
            writeln!(f, "environment {sum:016x}")?;
        }
        for (name, sum) in &self.inputs {
            writeln!(f, "input {sum:016x} {}", Escaped(name))?;
        }
        if !self.observed_end.is_empty() {
            writeln!(f, "observed-end {}", Escaped(&self.observed_end))?;
        }
        if let Some(claim) = &self.claim {
            writeln!(f, "rule {}", Escaped(&claim.rule))?;
            writeln!(f, "fingerprint {}", Escaped(&claim.fingerprint))?;
            writeln!(f, "message {}", Escaped(&claim.message))?;
            for place in &claim.places {
                writeln!(f, "at {}", Escaped(place))?;
            }
            for subject in &claim.about {
                writeln!(f, "about {}", Escaped(subject))?;
            }
        }
        for (name, text) in &self.specs {
            writeln!(f, "specification {}", Escaped(name))?;
            for line in text.lines() {
                writeln!(f, "| {line}")?;
            }
        }
        for check in &self.checks {
            writeln!(f, "check {}", Escaped(check))?;
        }
        for (at, Line { tag, number, function, text }) in &self.lines {
            let (op, function, text) = (op_name(*tag), Escaped(function), Escaped(text));
            writeln!(f, "line {at:x} {op} {number} {function}\t{text}")?;
        }
        for (i, thread) in self.threads.iter().enumerate() {
            writeln!(f, "thread {} {}", self.path(i), Escaped(&thread.name))?;
        }
        for step in &self.steps {
            let path = self.path(step.thread);
            write!(f, "step {path} {} {} {}", step.number, op_name(step.tag), step.place)?;
            if let Some(value) = step.value {
                write!(f, " value={value:x}")?;
            }
            if let Some(since) = step.since {
                write!(f, " since={since}")?;
            }
            for flag in &step.flags {
                write!(f, " {}", flag.name())?;
            }
            if !step.comment.is_empty() {
                write!(f, " # {}", Escaped(&step.comment))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "end {}", self.steps.len())
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let mut reader = Reader::default();
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let wrong = |line: usize, what: &str| ScheduleError { line, what: what.to_owned() };
        match lines.next() {
            Some((_, FIRST)) => {}
            Some((line, other)) if other.starts_with("foresee-schedule ") => {
                let what = "this foresee reads version 1 of schedules only";
                return Err(wrong(line, what));
            }
            _ => return Err(wrong(1, "a schedule begins with `foresee-schedule 1`")),
        }
        let mut last = 1;
        for (number, line) in lines {
            last = number;
            if reader.is_over && !line.is_empty() {
                return Err(wrong(number, "nothing may follow `end`"));
            }
            reader.line(line).map_err(|what| ScheduleError { line: number, what })?;
        }
        if !reader.is_over {
            return Err(wrong(last, "the schedule is cut off: its last line must be `end N`"));
        }
        if reader.schedule.threads.is_empty() {
            return Err(wrong(last, "the schedule has no threads"));
        }
        Ok(reader.schedule)
    }
}

/// What is known of a place in the source.
fn source_line(rest: &str) -> Result<(u64, Line), String> {
    let (fields, text) = rest.split_once('\t').ok_or("the line has no text")?;
    let mut words = fields.splitn(4, ' ');
    let mut next = |what: &str| words.next().ok_or_else(|| format!("the line has no {what}"));
    let at = next("place")?;
    let at = u64::from_str_radix(at, 16).map_err(|_| format!("`{at}` is not a place"))?;
    let op = next("operation")?;
    let tag = tag_of(op).ok_or(format!("no operation is called `{op}`"))?;
    let number = next("number")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    let [function, text] = [next("function")?, text].map(unescape);
    let (Some(function), Some(text)) = (function, text) else {
        return Err("a backslash must be written `\\\\`".to_owned());
    };
    Ok((at, Line { tag, number, function, text }))
}

/// What has been read of a schedule.
#[derive(Default)]
struct Reader {
    schedule: Schedule,
    /// The threads by their creation paths.
    paths: std::collections::HashMap<String, usize>,
    is_over: bool,
}

type Read = Result<(), String>;

impl Reader {
    fn line(&mut self, line: &str) -> Read {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = || unescape(rest).ok_or_else(|| "a backslash must be written `\\\\`".to_owned());
        let sum = |text: &str| {
            u64::from_str_radix(text, 16).map_err(|_| format!("`{text}` is not a checksum"))
        };
        let schedule = &mut self.schedule;
        match word {
            "" | "#" => {}
            "program" => schedule.program = text()?,
            "build-id" => schedule.build_id = text()?,
            "argument" => schedule.arguments.push(text()?),
            "environment" => schedule.environment = Some(sum(rest)?),
            "input" => {
                let (digits, name) = rest.split_once(' ').unwrap_or((rest, ""));
                let name = unescape(name).ok_or("a backslash must be written `\\\\`")?;
                schedule.inputs.push((name, sum(digits)?));
            }
            "observed-end" => schedule.observed_end = text()?,
            "rule" => schedule.claim.get_or_insert_default().rule = text()?,
            "fingerprint" => schedule.claim.get_or_insert_default().fingerprint = text()?,
            "message" => schedule.claim.get_or_insert_default().message = text()?,
            "at" => schedule.claim.get_or_insert_default().places.push(text()?),
            "about" => schedule.claim.get_or_insert_default().about.push(text()?),
            "specification" => schedule.specs.push((text()?, String::new())),
            "|" => {
                let Some((_, spec)) = schedule.specs.last_mut() else {
                    return Err("a line of a specification comes after `specification`".to_owned());
                };
                spec.push_str(rest);
                spec.push('\n');
            }
            "check" => schedule.checks.push(text()?),
            "line" => schedule.lines.push(source_line(rest)?),
            "thread" => self.thread(rest)?,
            "step" => self.step(rest)?,
            "end" => {
                let steps = schedule.steps.len();
                if rest.parse() != Ok(steps) {
                    return Err(format!("there are {steps} steps, not `{rest}`"));
                }
                self.is_over = true;
            }
            other => return Err(format!("no line of a schedule begins with `{other}`")),
        }
        Ok(())
    }

    fn thread(&mut self, rest: &str) -> Read {
        let (path, name) = rest.split_once(' ').unwrap_or((rest, ""));
        let threads = &mut self.schedule.threads;
        if threads.len() >= MOST_THREADS {
            return Err(format!("there are more than {MOST_THREADS} threads"));
        }
        let (parent, before) = match path.rsplit_once('.') {
            None if path == "0" && threads.is_empty() => (0, 0),
            None => {
                return Err("the first thread is `0`, and the others are its descendants".into());
            }
            Some((parent, ordinal)) => {
                let parent = self.paths.get(parent).ok_or("its parent comes later, or never")?;
                let ordinal = ordinal.parse::<u32>().ok().and_then(|n| n.checked_sub(1));
                (*parent, ordinal.ok_or("children are numbered from 1")?)
            }
        };
        let name = unescape(name).ok_or("a backslash must be written `\\\\`")?;
        if self.paths.insert(path.to_owned(), threads.len()).is_some() {
            return Err(format!("thread {path} is listed twice"));
        }
        threads.push(ScheduleThread { parent, before, name });
        Ok(())
    }

    fn step(&mut self, rest: &str) -> Read {
        if self.schedule.steps.len() >= MOST_STEPS {
            return Err(format!("there are more than {MOST_STEPS} steps"));
        }
        let (fields, comment) = match rest.split_once(" # ") {
            Some((fields, comment)) => (fields, comment),
            None => (rest, ""),
        };
        let mut words = fields.split(' ');
        let mut next = |what: &str| words.next().ok_or_else(|| format!("the step has no {what}"));
        let path = next("thread")?;
        let thread = self.paths.get(path).copied().ok_or(format!("no thread is {path}"))?;
        let number = next("number")?;
        let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
        let op = next("operation")?;
        let tag = tag_of(op).ok_or(format!("no operation is called `{op}`"))?;
        let place = next("place")?;
        let place = place.parse().map_err(|()| format!("`{place}` is not a place"))?;
        let mut step = Step {
            thread,
            number,
            tag,
            place,
            value: None,
            since: None,
            flags: Vec::new(),
            comment: unescape(comment).ok_or("a backslash must be written `\\\\`")?,
        };
        for word in words {
            if let Some(value) = word.strip_prefix("value=") {
                let value = u64::from_str_radix(value, 16);
                step.value = Some(value.map_err(|_| format!("`{word}` is not a value"))?);
            } else if let Some(since) = word.strip_prefix("since=") {
                let since = since.parse().ok().filter(|&n| n > 0);
                step.since = Some(since.ok_or(format!("`{word}` is not a number"))?);
            } else if let Some(flag) = Flag::ALL.iter().find(|flag| flag.1 == word) {
                step.flags.push(flag.0);
            } else {
                return Err(format!("a step has no `{word}`"));
            }
        }
        self.schedule.steps.push(step);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Schedule {
        let thread =
            |parent, before, name: &str| ScheduleThread { parent, before, name: name.to_owned() };
        let step = |thread, number, tag, value| Step {
            thread,
            number,
            tag,
            place: Place::Program(0x394a),
            value,
            since: None,
            flags: Vec::new(),
            comment: "landing.c:8".to_owned(),
        };
        Schedule {
            program: "./landing".to_owned(),
            build_id: "ab12".to_owned(),
            arguments: vec!["two words".to_owned(), "line\nbreak \\".to_owned()],
            environment: Some(7),
            inputs: vec![("standard input".to_owned(), 9)],
            observed_end: "ended with exit status 7".to_owned(),
            claim: Some(Claim {
                rule: "safe_landing".to_owned(),
                fingerprint: "F-1".to_owned(),
                message: "it lands".to_owned(),
                places: vec!["landing.c:8".to_owned()],
                about: vec!["region land".to_owned()],
            }),
            specs: vec![("a.spec".to_owned(), "init x = 0\n\nproperty p: x == 0\n".to_owned())],
            checks: vec!["race".to_owned()],
            lines: vec![(
                0x394a,
                Line {
                    tag: 0x0a,
                    number: 1,
                    function: "operator |".to_owned(),
                    text: "a = b | c; \\\\ d".to_owned(),
                },
            )],
            threads: vec![thread(0, 0, "main"), thread(0, 1, "T2"), thread(1, 0, "T3")],
            steps: vec![
                step(0, 3, Tag::Fork as u8, None),
                Step {
                    place: Place::Library("libm.so.6".to_owned(), 16),
                    since: Some(2),
                    ..step(1, 4, 0x0a, Some(0xff))
                },
                Step {
                    flags: vec![Flag::Violation, Flag::Terminal],
                    place: Place::None,
                    ..step(2, 0, Tag::ThreadEnd as u8, None)
                },
            ],
        }
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let schedule = example();
        assert_eq!(schedule.to_string().parse(), Ok(schedule));
    }

    #[test]
    fn paths_name_the_threads() {
        let schedule = example();
        assert_eq!([0, 1, 2].map(|i| schedule.path(i)), ["0", "0.2", "0.2.1"]);
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        for tag in (0..=u8::MAX).filter(|&tag| tag_of(&op_name(tag)).is_some()) {
            if !(ACCESSES..2 * ACCESSES).contains(&tag) {
                assert_eq!(tag_of(&op_name(tag)), Some(tag), "{}", op_name(tag));
            }
        }
        assert_eq!(op_name(Tag::WaitEnd as u8), "wait-end");
        assert_eq!(op_name(0x0a), "write4");
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let text = example().to_string();
        let wrong = |text: &str| text.parse::<Schedule>().expect_err("it is wrong").to_string();
        assert_eq!(wrong(""), "line 1: a schedule begins with `foresee-schedule 1`");
        assert_eq!(
            wrong("foresee-schedule 2\n"),
            "line 1: this foresee reads version 1 of schedules only"
        );
        // Wherever it is cut off, it is noticed.
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            assert!(wrong(&lines[..kept].join("\n")).contains("cut off"));
        }
        for (from, to, message) in [
            ("step 0 3 fork", "step 0.9 3 fork", "no thread is 0.9"),
            ("step 0 3 fork", "step 0 x fork", "`x` is not a number"),
            ("step 0 3 fork", "step 0 3 spoon", "no operation is called `spoon`"),
            ("program+394a", "394a", "`394a` is not a place"),
            ("since=2", "since=0", "`since=0` is not a number"),
            ("value=ff", "value=q", "`value=q` is not a value"),
            ("violation", "violated", "a step has no `violated`"),
            ("end 3", "end 4", "there are 3 steps, not `4`"),
            ("thread 0.2 T2", "thread 0.2.1 T2", "its parent comes later, or never"),
            ("check race", "chess race", "no line of a schedule begins with `chess`"),
        ] {
            let message_of = wrong(&text.replacen(from, to, 1));
            assert!(message_of.ends_with(message), "{message_of}");
        }
    }
}
