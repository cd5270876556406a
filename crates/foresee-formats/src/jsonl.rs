//! The jsonl format: one JSON object per line, for other tools.
//!
//! `{"thread":"T1","op":"w","target":"x","value":20,"loc":"main.c:14"}`. An object with the key
//! `foresee` is not an event but describes the trace: `{"foresee":1,"order":"notes"}`. Unknown
//! fields are ignored.

use std::borrow::Cow;
use std::fmt::Write as _;

use foresee_trace::{ErrorKind, Event, FileOrder, Names, Op, Pool, Remarks, Value, is_hidden};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::KnownNames;
use crate::operation::{op_of_word, unknown_op};
use crate::parse_error::{ParseError, Parsed, shown};
use crate::shape::{MAX_VALUES, TargetRule, has_arguments, is_wait_half, max_values, target_rule};
use crate::text::{LineParser, LineWriter, TextFormat};
use crate::value::{Scalar, scalar};

/// One JSON object per event.
#[derive(Clone, Copy, Debug)]
pub struct Jsonl;

impl TextFormat for Jsonl {
    type Lines = JsonLines;

    const ABOUT: &'static str =
        "one JSON object a line: {\"thread\":\"T1\",\"op\":\"w\",\"target\":\"x\",\"value\":20}";

    fn sniff_line(line: &str, _: &[u8]) -> bool {
        let is_ours = line.contains("\"op\"") || line.contains("\"foresee\"");
        line.starts_with('{') && is_ours
    }
}

/// A text, borrowed from the line if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// All fields of all kinds of lines. Values stay raw, because JSON libraries round large numbers.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Line<'a> {
    thread: Option<Text<'a>>,
    op: Option<Text<'a>>,
    target: Option<Text<'a>>,
    value: Option<&'a RawValue>,
    old: Option<&'a RawValue>,
    args: Option<Vec<&'a RawValue>>,
    lock: Option<Text<'a>>,
    loc: Option<Text<'a>>,
    foresee: Option<u32>,
    order: Option<Text<'a>>,
    cut_short: Option<Text<'a>>,
    partial: Option<Text<'a>>,
}

/// A number that JSON cannot represent.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a", deny_unknown_fields)]
struct Special<'a> {
    float: Text<'a>,
}

#[derive(Default)]
pub(crate) struct JsonLines {
    known: KnownNames,
    values: Vec<Value>,
}

impl LineParser for JsonLines {
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        pool: &mut Pool,
        remarks: &mut Remarks,
    ) -> Parsed<Option<Event>> {
        let line: Line = json(line)?;
        match line.foresee {
            None => self.event(&line, names, pool).map(Some),
            Some(1) => directives(&line, remarks).map(|()| None),
            Some(version) => Err(ParseError::syntax(format!(
                "\"foresee\" is {version}, but only version 1 is supported"
            ))),
        }
    }
}

impl JsonLines {
    fn event(&mut self, line: &Line, names: &mut Names, pool: &mut Pool) -> Parsed<Event> {
        let thread = self.known.thread(required("thread", &line.thread)?, names)?;
        let word = required("op", &line.op)?;
        let op = op_of_word(word.as_bytes()).ok_or_else(|| unknown_op(word))?;
        let mut event = Event::new(thread, op);
        match target_rule(op) {
            TargetRule::Never => refuse(op, "target", line.target.is_some())?,
            TargetRule::Maybe if line.target.is_none() => {}
            _ => {
                let target = required("target", &line.target)?;
                event = event.with_target(self.known.target(op.target_kind(), target, names)?);
            }
        }
        refuse(op, "args", line.args.is_some() && !has_arguments(op))?;
        refuse(op, "value", line.value.is_some() && (has_arguments(op) || max_values(op) == 0))?;
        refuse(op, "old", line.old.is_some() && op != Op::Rmw)?;
        refuse(op, "lock", line.lock.is_some() && !is_wait_half(op))?;
        if line.old.is_some() && line.value.is_none() {
            return Err(missing("value"));
        }
        self.values.clear();
        let args = line.args.iter().flatten().copied();
        for raw in line.old.into_iter().chain(line.value).chain(args) {
            self.values.push(value(raw.get(), names)?);
        }
        if self.values.len() > MAX_VALUES {
            let message = format!("too many values: an event has at most {MAX_VALUES}");
            return Err(Box::new(ParseError { kind: ErrorKind::Limit, message, help: None }));
        }
        event = event.with_values(&self.values, pool);
        if let Some(lock) = &line.lock {
            event = event.with_wait_lock(Some(names.locks.intern(&lock.0)?));
        }
        match &line.loc {
            Some(loc) => Ok(event.with_loc(self.known.loc(&loc.0, names)?)),
            None => Ok(event),
        }
    }
}

fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Parsed<T> {
    serde_json::from_str(text).map_err(|error| {
        let (message, column) = (error.to_string(), error.column());
        let message = message.rsplit_once(" at line 1 column").map_or(&*message, |(m, _)| m);
        ParseError::syntax(format!("column {column}: {message}"))
    })
}

fn required<'l>(field: &str, text: &'l Option<Text<'_>>) -> Parsed<&'l str> {
    text.as_ref().map(|text| &*text.0).ok_or_else(|| missing(field))
}

#[cold]
fn missing(field: &str) -> Box<ParseError> {
    ParseError::syntax(format!("the field \"{field}\" is missing"))
}

fn refuse(op: Op, field: &str, present: bool) -> Parsed<()> {
    if !present {
        return Ok(());
    }
    Err(ParseError::syntax(format!("an event \"{}\" has no field \"{field}\"", op.word())))
}

fn directives(line: &Line, remarks: &mut Remarks) -> Parsed<()> {
    match line.order.as_ref().map(|order| (FileOrder::by_word(&order.0), order)) {
        None => {}
        Some((Some(order), _)) => remarks.order = order,
        Some((None, other)) => {
            let message = format!("there is no \"order\" {}", shown(&other.0));
            let help = "valid orders are observed, thinned and notes";
            return Err(ParseError::syntax(message).with_help(help));
        }
    }
    if let Some(why) = &line.cut_short {
        remarks.cut_short = Some(why.0.clone().into_owned());
    }
    if let Some(why) = &line.partial {
        remarks.partial = Some(why.0.clone().into_owned());
    }
    Ok(())
}

fn value(raw: &str, names: &mut Names) -> Parsed<Value> {
    match raw.as_bytes().first() {
        Some(b'"') => Ok(Value::Str(names.syms.intern(&json::<Text>(raw)?.0)?)),
        Some(b'{') => {
            let special = json::<Special>(raw)?;
            match scalar(&special.float.0)? {
                Scalar::Value(value @ Value::Float(_)) => Ok(value),
                _ => Err(ParseError::syntax(format!("{} is not a float", shown(&special.float.0)))),
            }
        }
        _ => match scalar(raw) {
            Ok(Scalar::Value(value)) => Ok(value),
            Ok(Scalar::Word) => Err(ParseError::syntax(format!("{} is not a value", shown(raw)))),
            Err(error) => Err(error),
        },
    }
}

impl LineWriter for JsonLines {
    const FORMAT: &'static str = "jsonl";

    fn event(&mut self, event: &Event, names: &Names, pool: &Pool, out: &mut String) {
        let op = event.op();
        let mut text = |key: &str, text: &str| {
            out.push_str(key);
            push_string(text, out);
        };
        text("{\"thread\":", names.threads.get(event.thread()));
        text(",\"op\":", op.word());
        if let Some(target) = event.target_name(names) {
            text(",\"target\":", target);
        }
        if let Some(lock) = event.wait_lock() {
            text(",\"lock\":", names.locks.get(lock));
        }
        match &*pool.values(event) {
            [] => {}
            values if has_arguments(op) => {
                for (i, &value) in values.iter().enumerate() {
                    out.push_str(if i == 0 { ",\"args\":[" } else { "," });
                    push_value(value, names, out);
                }
                out.push(']');
            }
            [old @ .., value] => {
                for &old in old {
                    out.push_str(",\"old\":");
                    push_value(old, names, out);
                }
                out.push_str(",\"value\":");
                push_value(*value, names, out);
            }
        }
        if event.loc().is_some() {
            out.push_str(",\"loc\":");
            push_string(names.locs.get(event.loc()), out);
        }
        out.push('}');
    }

    fn directives(&self, _: bool, remarks: &Remarks, out: &mut String) {
        out.push_str("{\"foresee\":1");
        if remarks.order != FileOrder::Observed {
            let _ = write!(out, ",\"order\":\"{}\"", remarks.order.word());
        }
        if let Some(why) = &remarks.cut_short {
            out.push_str(",\"cut_short\":");
            push_string(why, out);
        }
        if let Some(why) = &remarks.partial {
            out.push_str(",\"partial\":");
            push_string(why, out);
        }
        out.push_str("}\n");
    }
}

fn push_value(value: Value, names: &Names, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Int(n) => write!(out, "{n}"),
        Value::Uint(n) => write!(out, "{n}"),
        Value::Bool(b) => write!(out, "{b}"),
        // Debug always prints a point or an exponent, so 2.0 differs from 2.
        Value::Float(x) if x.is_finite() => write!(out, "{x:?}"),
        Value::Float(x) if x.is_nan() => write!(out, "{{\"float\":\"nan({:x})\"}}", x.to_bits()),
        Value::Float(x) => write!(out, "{{\"float\":\"{x:?}\"}}"),
        Value::Str(s) => {
            push_string(names.syms.get(s), out);
            Ok(())
        }
    };
}

fn push_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if is_hidden(c) => {
                // All of them are in the basic plane.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
