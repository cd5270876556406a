//! Places in source code, and the one parser of their text.
//!
//! A trace stores a place as one text: `queue.c:20(enqueue)`, with a column `queue.c:20:7(enqueue)`,
//! and with what was inlined first `list.h:9(push)<queue.c:20(enqueue)`. A text in any other form,
//! such as the numbers of RAPID's traces, is taken for the name of a file without lines.

use std::fmt;

/// A place in source code.
///
/// ```
/// use foresee_trace::Location;
///
/// let place = Location::parse("list.h:9(push)<queue.c:20(enqueue)").expect("it has a file");
/// assert_eq!((place.file.as_deref(), place.line), (Some("list.h"), Some(9)));
/// assert_eq!(place.frames().count(), 2, "push was inlined into enqueue");
/// ```
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(from = "String", into = "String")]
pub struct Location {
    /// The file, as the trace names it.
    pub file: Option<String>,
    /// The line in it, from one.
    pub line: Option<u32>,
    /// The column in the line, from one.
    pub column: Option<u32>,
    /// The function, without parameters.
    pub function: Option<String>,
    /// The call that was replaced by this function's body.
    pub inlined_from: Option<Box<Location>>,
}

impl Location {
    /// Parses the text that a trace has for a place; `None` if it is empty. Whatever the text,
    /// [`Location`]'s `Display` gives it back.
    pub fn parse(text: &str) -> Option<Location> {
        if text.is_empty() {
            return None;
        }
        let mut parts = split(text);
        if parts.iter().any(|part| part.is_empty()) {
            parts = vec![text];
        }
        let outermost_first = parts.into_iter().rev().map(Location::frame);
        outermost_first
            .reduce(|outer, inner| Location { inlined_from: Some(Box::new(outer)), ..inner })
    }

    /// One frame: `queue.c:20:7(enqueue)`.
    fn frame(text: &str) -> Location {
        let (place, function) = match call(text) {
            Some((place, function)) => (place, Some(function.to_owned())),
            None => (text, None),
        };
        let (file, line, column) = match number_after(place) {
            Some((rest, last)) => match number_after(rest) {
                Some((file, line)) => (file, Some(line), Some(last)),
                None => (rest, Some(last), None),
            },
            None => (place, None, None),
        };
        let file = Some(file.to_owned()).filter(|_| place != UNKNOWN);
        Location { file, line, column, function, inlined_from: None }
    }

    /// This place and the calls that it was inlined into, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &Location> {
        std::iter::successors(Some(self), |location| location.inlined_from.as_deref())
    }

    /// File and line without the function: `queue.c:20`.
    pub fn file_and_line(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        })
    }
}

/// A stored report has the text of the trace.
impl From<String> for Location {
    fn from(text: String) -> Location {
        Location::parse(&text).unwrap_or_default()
    }
}

impl From<Location> for String {
    fn from(location: Location) -> String {
        location.to_string()
    }
}

/// What stands for a file that is not known.
const UNKNOWN: &str = "?";

/// Splits at every `<` outside parentheses: functions may be `operator<`, or templates.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '<' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// What stands before and in the parentheses that end a text.
fn call(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_suffix(')')?;
    let mut depth = 1usize;
    for (i, c) in inside.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let (place, function) = (&inside[..i], &inside[i + 1..]);
            return Some((place, function)).filter(|_| !place.is_empty() && !function.is_empty());
        }
    }
    None
}

/// What stands before the last colon, and the number after it.
fn number_after(text: &str) -> Option<(&str, u32)> {
    let (rest, digits) = text.rsplit_once(':')?;
    let number: u32 = digits.parse().ok()?;
    // A number that would be written otherwise is part of a name.
    (!rest.is_empty() && number.to_string() == digits).then_some((rest, number))
}

impl fmt::Display for Location {
    /// The text of the trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file.as_deref().unwrap_or(UNKNOWN))?;
        for number in self.line.iter().chain(&self.column) {
            write!(f, ":{number}")?;
        }
        if let Some(function) = &self.function {
            write!(f, "({function})")?;
        }
        match &self.inlined_from {
            Some(outer) => write!(f, "<{outer}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, line: u32, function: &str) -> Location {
        Location {
            file: Some(file.to_owned()),
            line: Some(line),
            function: Some(function.to_owned()),
            ..Location::default()
        }
    }

    #[test]
    fn inlined_calls_are_frames() {
        let place = Location::parse("list.h:9(push)<queue.c:20(enqueue)").unwrap();
        let outer = frame("queue.c", 20, "enqueue");
        assert_eq!(
            place,
            Location { inlined_from: Some(Box::new(outer)), ..frame("list.h", 9, "push") }
        );
        let lines: Vec<_> = place.frames().filter_map(Location::file_and_line).collect();
        assert_eq!(lines, ["list.h:9", "queue.c:20"]);
    }

    #[test]
    fn names_of_cpp_are_not_torn_apart() {
        let text =
            "v.h:3(std::vector<int, A<int>>::push)<f(1).cc:7(S::operator<)<g.cc:1(operator())";
        let place = Location::parse(text).unwrap();
        let functions: Vec<_> = place.frames().map(|f| f.function.clone().unwrap()).collect();
        assert_eq!(functions, ["std::vector<int, A<int>>::push", "S::operator<", "operator()"]);
        assert_eq!(place.inlined_from.as_ref().unwrap().file.as_deref(), Some("f(1).cc"));
        assert_eq!(place.to_string(), text);
    }

    #[test]
    fn every_text_is_given_back() {
        assert_eq!(Location::parse(""), None);
        let place = Location::parse("a.c:3:7").unwrap();
        assert_eq!((place.line, place.column, place.function), (Some(3), Some(7), None));
        assert_eq!(Location::parse("?(start)").unwrap().file, None);
        let parts = ["a", "?", ":", "3", "07", "(", ")", "<", "f", "+1", " "];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..10 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text += parts[(seed >> 33) as usize % parts.len()];
            }
            assert_eq!(Location::parse(&text).unwrap().to_string(), text);
        }
    }
}
