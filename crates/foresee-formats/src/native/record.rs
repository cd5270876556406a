//! One event in two to eighteen bytes, and more only if its values do not fit.
//!
//! A record is `op`, `ctl`, and four numbers of 0, 1, 2 or 4 bytes whose lengths are in `ctl`, so
//! decoding takes one table look-up and four loads. The numbers are validated for a whole run of
//! records at once; only if one of them is invalid are the records decoded again, one by one.

use foresee_trace::{Batch, Event, Names, Op, Pool, SymId, TargetKind, Value};

use super::frame::{push_varint, u64_at, varint};
use super::names::name_counts;
use crate::shape::{TargetRule, is_wait_half, max_values, target_rule};

/// Set in `op` when values follow the record; the payload is then their number.
const INLINE: u8 = 0x80;

/// The longest record without values, plus the bytes that a load of four bytes may read beyond it.
const WINDOW: usize = 20;

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadRecord {
    /// It is incomplete.
    Cut,
    /// It is invalid.
    Wrong(String),
}

/// The layout of the numbers of a record for one value of `ctl`.
#[derive(Clone, Copy)]
struct Layout {
    masks: [u32; 4],
    /// The offsets of target, location and payload; the thread is always at 2.
    starts: [u8; 3],
    length: u8,
}

static LAYOUTS: [Layout; 256] = layouts();

const fn layouts() -> [Layout; 256] {
    const MASKS: [u32; 4] = [0, 0xff, 0xffff, 0xffff_ffff];
    const LENGTHS: [u8; 4] = [0, 1, 2, 4];
    let mut table = [Layout { masks: [0; 4], starts: [0; 3], length: 0 }; 256];
    let mut ctl = 0;
    while ctl < 256 {
        let codes = [ctl & 3, ctl >> 2 & 3, ctl >> 4 & 3, ctl >> 6];
        let mut length = 2;
        let mut field = 0;
        while field < 4 {
            if field > 0 {
                table[ctl].starts[field - 1] = length;
            }
            table[ctl].masks[field] = MASKS[codes[field]];
            length += LENGTHS[codes[field]];
            field += 1;
        }
        table[ctl].length = length;
        ctl += 1;
    }
    table
}

/// A decoded record.
struct Fields {
    op: u8,
    thread: u32,
    target: u32,
    loc: u32,
    payload: u32,
    length: usize,
}

#[inline]
fn fields(window: &[u8; WINDOW]) -> Fields {
    let layout = &LAYOUTS[window[1] as usize];
    let field = |start: u8, mask: u32| {
        // The mask lets the compiler prove that the load stays inside the window.
        let at = (start & 15) as usize;
        let bytes = [window[at], window[at + 1], window[at + 2], window[at + 3]];
        u32::from_le_bytes(bytes) & mask
    };
    Fields {
        op: window[0],
        thread: field(2, layout.masks[0]),
        target: field(layout.starts[0], layout.masks[1]),
        loc: field(layout.starts[1], layout.masks[2]),
        payload: field(layout.starts[2], layout.masks[3]),
        length: layout.length as usize,
    }
}

/// Decodes the record at `at`, if it is complete.
#[inline]
fn fields_at(bytes: &[u8], at: usize) -> Option<Fields> {
    let rest = bytes.get(at..)?;
    match rest.first_chunk() {
        Some(window) => Some(fields(window)),
        None => last_fields(rest),
    }
}

/// Like [`fields_at`] near the end of the frame, where loads would exceed it.
#[cold]
fn last_fields(rest: &[u8]) -> Option<Fields> {
    let mut window = [0; WINDOW];
    window[..rest.len()].copy_from_slice(rest);
    let fields = fields(&window);
    (rest.len() >= 2 && fields.length <= rest.len()).then_some(fields)
}

/// The rule for records with one `op` byte.
#[derive(Clone, Copy)]
struct Rule {
    /// The operation, unless its records must be checked individually.
    plain: Option<Op>,
    /// Bits that the payload must not have.
    no_payload: u32,
}

/// The payload's highest bit: it would mean an index into a pool, which files do not have.
const POOLED: u32 = 1 << 31;

fn rules() -> [Rule; 256] {
    let mut rules = [Rule { plain: None, no_payload: 0 }; 256];
    for &op in Op::ALL {
        let no_payload = if max_values(op) == 0 { u32::MAX } else { POOLED };
        let plain = target_rule(op) == TargetRule::Always && !is_wait_half(op);
        rules[op as usize] = Rule { plain: plain.then_some(op), no_payload };
    }
    rules
}

/// Decodes records to events; knows the number of names.
pub(crate) struct Decoder {
    rules: [Rule; 256],
    /// The number of targets for each operation.
    targets: [u32; 64],
    threads: u32,
    locs: u32,
    syms: u32,
    locks: u32,
}

impl Decoder {
    pub(crate) fn new(names: &Names) -> Decoder {
        let mut decoder =
            Decoder { rules: rules(), targets: [0; 64], threads: 0, locs: 0, syms: 0, locks: 0 };
        decoder.set_names(names);
        decoder
    }

    /// Allows the numbers of all these names.
    pub(crate) fn set_names(&mut self, names: &Names) {
        let counts = name_counts(names).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let [threads, vars, locks, conds, locs, syms] = counts;
        (self.threads, self.locks, self.locs, self.syms) = (threads, locks, locs, syms);
        for &op in Op::ALL {
            self.targets[op as usize] = match op.target_kind() {
                TargetKind::None => 0,
                TargetKind::Var => vars,
                TargetKind::Lock => locks,
                TargetKind::Cond => conds,
                TargetKind::Thread => threads,
                TargetKind::Sym => syms,
            };
        }
    }

    /// Adds up to `most` events from `bytes[*at..]` to `batch`, fewer if they have more than
    /// `values` values. On an error, `at` is the bad record, and the batch has the good events
    /// before it.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        at: &mut usize,
        most: usize,
        values: usize,
        batch: &mut Batch,
    ) -> Result<(), BadRecord> {
        let (start, had) = (*at, batch.events.len());
        match self.hasty_pass(bytes, at, most, values, batch) {
            Ok(true) => Ok(()),
            // What the hasty pass put into the pool is unused but harmless.
            Ok(false) | Err(_) => {
                batch.events.truncate(had);
                *at = start;
                self.careful_pass(bytes, at, most, values, batch)
            }
        }
    }

    /// A pass that validates the numbers only at its end. It keeps little state between records, so
    /// that the state stays in registers.
    fn hasty_pass(
        &self,
        bytes: &[u8],
        at: &mut usize,
        most: usize,
        values: usize,
        batch: &mut Batch,
    ) -> Result<bool, BadRecord> {
        let had = batch.events.len();
        let (mut left, mut seen) = (most, 0);
        let mut scratch = Vec::new();
        while left > 0 && seen <= values {
            let (stretch, sensible) = self.plain_stretch(bytes, at, left, batch);
            left -= stretch;
            if !sensible {
                return Ok(false);
            }
            if left > 0 {
                seen += self.careful_record(bytes, at, &mut scratch, batch)?;
                left -= 1;
            }
        }
        Ok(self.all_named(&batch.events[had..]))
    }

    /// Adds events up to one that is not plain or too close to the end; returns their number and
    /// whether their threads and payloads are valid.
    #[inline(never)]
    fn plain_stretch(
        &self,
        bytes: &[u8],
        at: &mut usize,
        most: usize,
        batch: &mut Batch,
    ) -> (usize, bool) {
        let mut rest = &bytes[*at..];
        let mut wrong = 0;
        batch.events.reserve(most.min(rest.len() / 2));
        let had = batch.events.len();
        for _ in 0..most {
            let Some(window) = rest.first_chunk() else { break };
            let Fields { op, thread, target, loc, payload, length } = fields(window);
            let rule = self.rules[op as usize];
            let Some(op) = rule.plain else { break };
            wrong |= payload & rule.no_payload | thread >> 24;
            batch.events.push(Event::from_parts(op, thread, target, loc, payload));
            rest = &rest[length..];
        }
        *at = bytes.len() - rest.len();
        (batch.events.len() - had, wrong == 0)
    }

    /// Whether the numbers in these events refer to names.
    fn all_named(&self, events: &[Event]) -> bool {
        let mut highest = [0u32; 64];
        let (mut thread, mut loc, mut without) = (0, 0, false);
        for event in events {
            let (op, t, target, l, _) = event.raw();
            thread = t.max(thread);
            loc = l.max(loc);
            without |= target == 0 && self.rules[op as usize].plain.is_some();
            let highest = &mut highest[(op & 63) as usize];
            *highest = target.max(*highest);
        }
        let known = highest.iter().zip(&self.targets).all(|(highest, count)| highest <= count);
        known && !without && (events.is_empty() || thread < self.threads && loc < self.locs)
    }

    /// A pass that checks every record before it continues.
    fn careful_pass(
        &self,
        bytes: &[u8],
        at: &mut usize,
        most: usize,
        values: usize,
        batch: &mut Batch,
    ) -> Result<(), BadRecord> {
        let (mut seen, mut scratch) = (0, Vec::new());
        for _ in 0..most {
            seen += self.careful_record(bytes, at, &mut scratch, batch)?;
            if seen > values {
                break;
            }
        }
        Ok(())
    }

    /// Adds the event of one record after checking it; returns the number of its values in the
    /// pool.
    fn careful_record(
        &self,
        bytes: &[u8],
        at: &mut usize,
        scratch: &mut Vec<Value>,
        batch: &mut Batch,
    ) -> Result<usize, BadRecord> {
        let fields = fields_at(bytes, *at).ok_or(BadRecord::Cut)?;
        let (mut event, end) = self.careful(&fields, bytes, *at, scratch)?;
        if !scratch.is_empty() {
            event = event.with_values(scratch, &mut batch.pool);
        }
        batch.events.push(event);
        *at = end;
        Ok(scratch.len())
    }

    /// Checks one record; returns the event, the offset of the next record, and the values in
    /// between.
    fn careful(
        &self,
        fields: &Fields,
        bytes: &[u8],
        at: usize,
        values: &mut Vec<Value>,
    ) -> Result<(Event, usize), BadRecord> {
        values.clear();
        let &Fields { thread, target, loc, payload, length, .. } = fields;
        let wrong = |message: String| BadRecord::Wrong(message);
        let code = fields.op & !INLINE;
        let op = Op::from_code(code).ok_or_else(|| wrong(format!("unknown operation {code}")))?;
        let word = op.word();
        if thread >= self.threads {
            return Err(wrong(format!("thread {thread} of \"{word}\" has no name")));
        }
        if loc >= self.locs {
            return Err(wrong(format!("location {loc} of \"{word}\" has no name")));
        }
        if target > self.targets[code as usize] {
            return Err(wrong(format!("target {} of \"{word}\" has no name", target - 1)));
        }
        if target == 0 && target_rule(op) == TargetRule::Always {
            return Err(wrong(format!("an event \"{word}\" has no target")));
        }
        let raw = |payload| {
            Event::from_raw(code, thread, target, loc, payload).map_err(|e| wrong(e.to_string()))
        };
        let mut end = at + length;
        if fields.op & INLINE == 0 {
            let fits = if is_wait_half(op) {
                payload <= self.locks
            } else {
                payload & self.rules[code as usize].no_payload == 0
            };
            return match fits {
                true => Ok((raw(payload)?, end)),
                false => Err(wrong(format!("an event \"{word}\" has payload {payload}"))),
            };
        }
        if payload as usize > max_values(op) {
            return Err(wrong(format!("an event \"{word}\" has {payload} values")));
        }
        for _ in 0..payload {
            values.push(self.value(bytes, &mut end)?);
        }
        Ok((raw(0)?, end))
    }

    fn value(&self, bytes: &[u8], at: &mut usize) -> Result<Value, BadRecord> {
        let tag = *bytes.get(*at).ok_or(BadRecord::Cut)?;
        *at += 1;
        let start = *at;
        let mut number = || match varint(bytes, at) {
            Some(number) => Ok(number),
            None if bytes.len() - start < 10 => Err(BadRecord::Cut),
            None => Err(BadRecord::Wrong("a number has more than 64 bits".into())),
        };
        Ok(match tag {
            TAG_INT => {
                let zigzag = number()?;
                Value::Int((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
            }
            TAG_UINT => Value::from_u64(number()?),
            TAG_FLOAT => {
                let bits = bytes.get(start..start + 8).ok_or(BadRecord::Cut)?;
                *at += 8;
                Value::Float(f64::from_bits(u64_at(bits, 0)))
            }
            TAG_FALSE => Value::Bool(false),
            TAG_TRUE => Value::Bool(true),
            TAG_STR => match u32::try_from(number()?) {
                Ok(sym) if sym < self.syms => Value::Str(SymId(sym)),
                _ => return Err(BadRecord::Wrong("a text among the values has no name".into())),
            },
            _ => return Err(BadRecord::Wrong(format!("unknown kind of value {tag}"))),
        })
    }

    /// The offset of the record `count` records after the one at `at`.
    pub(crate) fn skip(&self, bytes: &[u8], mut at: usize, count: usize) -> usize {
        let mut values = Vec::new();
        for _ in 0..count {
            let Some(fields) = fields_at(bytes, at) else { break };
            at = match fields.op & INLINE {
                0 => at + fields.length,
                _ => self.careful(&fields, bytes, at, &mut values).map_or(at, |(_, end)| end),
            };
        }
        at
    }
}

const TAG_INT: u8 = 0;
const TAG_UINT: u8 = 1;
const TAG_FLOAT: u8 = 2;
const TAG_FALSE: u8 = 3;
const TAG_TRUE: u8 = 4;
const TAG_STR: u8 = 5;

/// Writes the record of an event.
#[inline]
pub(crate) fn encode(event: &Event, pool: &Pool, out: &mut Vec<u8>) {
    let (op, thread, target, loc, payload) = event.raw();
    if !event.is_pooled() {
        return encode_fields(op, [thread, target, loc, payload], out);
    }
    let values = pool.values(event);
    encode_fields(op | INLINE, [thread, target, loc, values.len() as u32], out);
    for &value in values.iter() {
        match value {
            Value::Int(n) => {
                out.push(TAG_INT);
                push_varint((n << 1 ^ n >> 63) as u64, out);
            }
            Value::Uint(n) => {
                out.push(TAG_UINT);
                push_varint(n, out);
            }
            Value::Float(x) => {
                out.push(TAG_FLOAT);
                out.extend_from_slice(&x.to_bits().to_le_bytes());
            }
            Value::Bool(b) => out.push(if b { TAG_TRUE } else { TAG_FALSE }),
            Value::Str(s) => {
                out.push(TAG_STR);
                push_varint(u64::from(s.0), out);
            }
        }
    }
}

#[inline]
fn encode_fields(op: u8, fields: [u32; 4], out: &mut Vec<u8>) {
    let mut record = [0; WINDOW];
    record[0] = op;
    let mut length = 2;
    for (i, field) in fields.into_iter().enumerate() {
        let (code, bytes) = match field {
            0 => (0, 0),
            0x1..=0xff => (1, 1),
            0x100..=0xffff => (2, 2),
            _ => (3, 4),
        };
        record[1] |= code << (2 * i);
        // The next number overwrites the bytes beyond this one.
        record[length..length + 4].copy_from_slice(&field.to_le_bytes());
        length += bytes;
    }
    out.extend_from_slice(&record[..length]);
}
