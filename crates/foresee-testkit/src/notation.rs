//! A notation for traces.

use foresee_formats::{Format, Std};
use foresee_trace::{EventSource, Mode, ReadError, Trace, Validated};

/// A trace in the order in which it is written.
///
/// Statements are separated by `;` and name a thread and one or more of its events, in the words of
/// the std format: `r(x)=1`, `w(x)=1`, `rmw(x)=1->2`, `init(x)=0`, `acq(l)`, `rel(l)`, `racq(l)`,
/// `rrel(l)`, `fork(T2)`, `join(T2)`, `wait_begin(c,l)`, `wait_end(c,l)`, `notify(c)`,
/// `notify_all(c)`, `enter(f,1)`, `exit(f)`, `event(name,1)`, `begin`, `end`. Values are optional.
/// A
/// source location follows an `@`. White space is ignored; names that are not Rust tokens are
/// quoted.
///
/// ```
/// let trace = foresee_testkit::trace! {
///     main: init(count)=0, fork(worker);
///     worker: acq(m), w(count)=1 @ "count.c:14", rel(m);
///     main: join(worker), r(count)=1
/// };
/// assert_eq!(trace.events.len(), 7);
/// ```
///
/// # Panics
/// If it cannot be parsed, or if no execution could have these events in this order; use
/// [`raw_trace!`](crate::raw_trace) for such traces.
#[macro_export]
macro_rules! trace {
    ($($tokens:tt)*) => {
        match $crate::parse_trace(::core::stringify!($($tokens)*), true) {
            Ok(trace) => trace,
            Err(message) => ::core::panic!("{message}"),
        }
    };
}

/// A trace as it is written, even if no execution could have these events in this order.
///
/// See [`trace!`](crate::trace) for the notation. All operations on locks are outer ones, as in a
/// file before [`foresee_trace::Validated`] has processed it.
///
/// # Panics
/// If it cannot be parsed.
#[macro_export]
macro_rules! raw_trace {
    ($($tokens:tt)*) => {
        match $crate::parse_trace(::core::stringify!($($tokens)*), false) {
            Ok(trace) => trace,
            Err(message) => ::core::panic!("{message}"),
        }
    };
}

/// Parses a text like [`trace!`](crate::trace) (with `check`) or [`raw_trace!`](crate::raw_trace).
pub fn parse_trace(text: &str, check: bool) -> Result<Trace, String> {
    let mut lines = String::new();
    for statement in split(&without_white_space(text), ';') {
        if statement.is_empty() {
            continue;
        }
        let expected = || format!("`{statement}` should have the form `THREAD: event, event`");
        let (thread, events) = split_once(statement, ':').ok_or_else(expected)?;
        for event in split(events, ',') {
            if thread.is_empty() || event.is_empty() || statement.contains('|') {
                return Err(expected());
            }
            let (event, place) = split_once(event, '@').unwrap_or((event, ""));
            lines += &format!("{}|{event}|{}\n", place_text(thread), place_text(place));
        }
    }
    std_trace(&lines, check).map_err(|error| {
        let help = error.help().map(|help| format!(" ({help})")).unwrap_or_default();
        let line = match error.at() {
            foresee_trace::Position::Line(n) => lines.lines().nth(n as usize - 1).unwrap_or(""),
            _ => "",
        };
        format!("{error}{help}: `{line}`")
    })
}

/// Parses text in the std format.
pub(crate) fn std_trace(text: &str, check: bool) -> Result<Trace, ReadError> {
    let source = Std.read(Box::new(text.as_bytes()))?;
    let mut source: Box<dyn EventSource + '_> = match check {
        true => Box::new(Validated::new(source, Mode::Reject)),
        false => source,
    };
    Trace::load(&mut source)
}

/// Threads and locations, which the std format does not quote.
fn place_text(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Whether each character of the text is inside quotes, and how many brackets are open around it.
fn context(text: &str) -> impl Iterator<Item = (usize, char, bool, u32)> + '_ {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0u32);
    text.char_indices().map(move |(i, c)| {
        let was_quoted = quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        (i, c, quoted || was_quoted, depth)
    })
}

fn without_white_space(text: &str) -> String {
    let kept = context(text).filter(|&(_, c, quoted, _)| quoted || !c.is_whitespace());
    kept.map(|(_, c, ..)| c).collect()
}

fn split_once(text: &str, at: char) -> Option<(&str, &str)> {
    let (i, ..) = context(text).find(|&(_, c, quoted, depth)| c == at && !quoted && depth == 0)?;
    Some((&text[..i], &text[i + at.len_utf8()..]))
}

fn split(mut text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    while let Some((part, rest)) = split_once(text, at) {
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(trace: &Trace) -> Vec<String> {
        let line = |e: &foresee_trace::Event| {
            let thread = trace.names.threads.get(e.thread());
            let place = trace.names.locs.get(e.loc());
            format!("{thread}|{}|{place}", e.describe(&trace.names, &trace.pool))
        };
        trace.events.iter().map(line).collect()
    }

    #[test]
    fn statements_are_in_file_order() {
        let trace = trace! {
            T1: init(x)=-1, w(x)=1 @ "a.c:3", acq(l), rel(l);
            "Thread 2": r(x) = 1, event(add, "a; b", 2.5), rmw(a.b[0]) = 1 -> 2;
        };
        let expected = [
            "T1|init(x)=-1|",
            "T1|w(x)=1|a.c:3",
            "T1|acq(l)|",
            "T1|rel(l)|",
            "Thread 2|r(x)=1|",
            "Thread 2|event(add,\"a; b\",2.5)|",
            "Thread 2|rmw(a.b[0])=1->2|",
        ];
        assert_eq!(lines(&trace), expected);
    }

    #[test]
    fn mistakes_are_explained() {
        let says = |text, check, expected: &str| {
            let message = parse_trace(text, check).unwrap_err();
            assert!(message.contains(expected), "{message}");
        };
        says("w(x)", true, "`w(x)` should have the form `THREAD: event, event`");
        says("T1: w(x),", true, "should have the form");
        says("T1: frobnicate(x)", true, "T1|frobnicate(x)|");
        says("T1: rel(l)", true, "line 1");
        assert!(parse_trace("T1: rel(l)", false).is_ok());
        assert!(parse_trace("", true).is_ok_and(|trace| trace.events.is_empty()));
    }

    #[test]
    fn inner_operations_are_told_apart_when_checked() {
        use foresee_trace::Op;
        let ops = |t: Trace| t.events.iter().map(|e| e.op()).collect::<Vec<_>>();
        let checked = ops(trace! { T1: acq(l), acq(l), rel(l), rel(l) });
        assert_eq!(checked, [Op::Acquire, Op::AcquireInner, Op::ReleaseInner, Op::Release]);
        assert_eq!(ops(raw_trace! { T1: acq(l), acq(l) }), [Op::Acquire, Op::Acquire]);
    }
}
