//! The file of names: one line for each, with its kind, its number and its text.

use std::collections::BTreeMap;
use std::path::Path;

use super::{HashMap, JvmError};

/// The version of the agent's log that this reader understands.
const VERSION: u64 = 5;

/// A field of a class.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The class that declares it.
    pub(super) class: String,
    pub(super) name: String,
    pub(super) is_static: bool,
    /// Whether a specification names it.
    pub(super) is_watched: bool,
    /// Whether it is one of the class's objects that a specification names by their type.
    pub(super) is_of_type: bool,
}

/// A thread that recorded something.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) object: u64,
    pub(super) name: String,
    /// Whether the JDK started it for a purpose that is not known.
    pub(super) is_foreign: bool,
}

/// All names of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Dictionary {
    pub(super) classes: HashMap<u64, String>,
    /// Places, by their numbers.
    pub(super) sites: HashMap<u32, String>,
    /// The fields that places access.
    pub(super) keys: HashMap<u32, u32>,
    pub(super) fields: HashMap<u32, Field>,
    pub(super) methods: HashMap<u64, String>,
    /// The classes that have an initialiser.
    pub(super) initialisers: HashMap<u64, String>,
    /// The names of the classes that these extend.
    pub(super) extended: HashMap<u64, String>,
    pub(super) threads: BTreeMap<u32, Thread>,
    /// The threads that have not been taken notice of, where the agent sends what it records.
    pub(super) new_threads: Vec<u32>,
    /// The names of threads when they were started, by their objects, in the same case.
    pub(super) started: Vec<(u64, String)>,
    /// What is known of single objects: texts, names of constants and classes.
    pub(super) texts: HashMap<u64, String>,
    /// Why the trace is incomplete.
    pub(super) partial: Vec<String>,
    /// Why no other order can be predicted.
    pub(super) unordered: Vec<String>,
    /// The size at which the log ended, if it was too large.
    pub(super) limit: Option<u64>,
    /// Whether other threads may have come between an access and its record.
    pub(super) is_async: bool,
    /// Whether call stacks are recorded.
    pub(super) has_stacks: bool,
    /// Whether accesses of objects that only one thread could reach are left out.
    pub(super) has_locals: bool,
    /// Whether the JVM was shut down in an orderly way.
    pub(super) has_ended: bool,
    /// The version of Java.
    pub(super) java: String,
    lines: u64,
}

impl Dictionary {
    pub(super) fn read(path: &Path) -> Result<Dictionary, JvmError> {
        let bytes = std::fs::read(path).map_err(|e| JvmError::Io(path.to_owned(), e))?;
        let mut dictionary = Dictionary::default();
        // A killed process may leave half a line, which no record refers to.
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
        let read = dictionary.extend(&bytes[..whole]);
        read.map_err(|why| JvmError::Damaged(path.to_owned(), why))?;
        Ok(dictionary)
    }

    /// Adds whole lines; the error says which is wrong.
    pub(super) fn extend(&mut self, lines: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(lines);
        for line in text.split_terminator('\n') {
            self.lines += 1;
            if self.add(line).is_none() {
                return Err(format!("line {} is not a name: {line}", self.lines));
            }
            if self.lines == 1 && !line.starts_with(&format!("V\t{VERSION}\t")) {
                let why = "it was written by another version of the agent; build it again";
                return Err(why.to_owned());
            }
        }
        Ok(())
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let mut parts = line.splitn(3, '\t');
        let kind = parts.next()?;
        let number: u64 = parts.next()?.parse().ok()?;
        let text = unescaped(parts.next()?);
        let small = u32::try_from(number).ok();
        match kind {
            "V" => self.java = text,
            "A" => self.is_async = true,
            "P" => self.has_stacks = true,
            "Z" => self.has_locals = true,
            "C" => drop(self.classes.insert(number, dotted(&text))),
            "S" => drop(self.sites.insert(small?, text)),
            "K" => drop(self.keys.insert(small?, text.parse().ok()?)),
            "F" => drop(self.fields.insert(small?, field(&text)?)),
            "I" => drop(self.initialisers.insert(number, dotted(&text))),
            "H" => drop(self.extended.insert(number, dotted(&text))),
            "M" => {
                let (class, name) = text.rsplit_once('.')?;
                self.methods.insert(number, format!("{}.{name}", dotted(class)));
            }
            "T" => {
                let mut parts = text.splitn(3, ' ');
                let object = parts.next()?.parse().ok()?;
                let is_foreign = parts.next()? == "?";
                let name = thread_name(parts.next().unwrap_or(""));
                let thread = Thread { object, name, is_foreign };
                self.new_threads.push(small?);
                self.threads.insert(small?, thread);
            }
            "N" => self.started.push((number, thread_name(&text))),
            "O" => drop(self.texts.insert(number, text)),
            "X" => self.partial.push(text),
            "U" => self.unordered.push(text),
            "L" => self.limit = Some(number),
            "E" => self.has_ended = true,
            _ => return None,
        }
        Some(())
    }
}

/// Virtual threads need not have names.
fn thread_name(text: &str) -> String {
    if text.is_empty() { "thread".to_owned() } else { text.to_owned() }
}

/// `sp-bank.Account.total`: static or not, volatile or not, watched (by the type of its objects) or not, class and name.
fn field(text: &str) -> Option<Field> {
    let flags = text.as_bytes().get(..3)?;
    let (class, name) = text.get(3..)?.rsplit_once('.')?;
    Some(Field {
        class: dotted(class),
        name: name.to_owned(),
        is_static: flags[0] == b's',
        is_watched: flags[2] != b'-',
        is_of_type: flags[2] == b'o',
    })
}

/// `bank.Bank$Account` as programmers write it: `bank.Bank.Account`. The number of a class without a name stays.
fn dotted(class: &str) -> String {
    let mut plain = String::with_capacity(class.len());
    let mut chars = class.chars().peekable();
    while let Some(c) = chars.next() {
        let is_nested = c == '$' && chars.peek().is_some_and(|next| next.is_alphabetic());
        plain.push(if is_nested { '.' } else { c });
    }
    plain
}

fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, false) => plain.push(c),
            (_, true) => plain.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_become_names() {
        let mut dictionary = Dictionary::default();
        for line in
            ["F\t3\tsvwbank.Bank.total", "O\t7\ta\\tb\\\\c", "T\t2\t99 - pool 1", "U\t0\twhy"]
        {
            dictionary.add(line).unwrap();
        }
        let field = &dictionary.fields[&3];
        assert_eq!((field.class.as_str(), field.name.as_str()), ("bank.Bank", "total"));
        assert!(field.is_static && field.is_watched);
        assert_eq!(dictionary.texts[&7], "a\tb\\c");
        assert_eq!((dictionary.threads[&2].object, &*dictionary.threads[&2].name), (99, "pool 1"));
        assert_eq!(dictionary.unordered, ["why"]);
        assert_eq!((&*dotted("a.B$C$1"), &*dotted("a.B$C[]")), ("a.B.C$1", "a.B.C[]"));
        for bad in ["", "Q\t1\tx", "S\tx\ty", "S\t1", "F\t1\tsp", "T\t1\tx"] {
            assert_eq!(dictionary.add(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_line_that_is_not_finished_is_left_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "V\t5\t17\nC\t1\tA\nC\t2\tB").unwrap();
        let dictionary = Dictionary::read(file.path()).unwrap();
        assert_eq!((dictionary.classes.len(), &*dictionary.java), (1, "17"));
        std::fs::write(file.path(), "V\t9\t17\n").unwrap();
        assert!(Dictionary::read(file.path()).unwrap_err().to_string().contains("another version"));
    }
}
