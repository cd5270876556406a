//! Names frames: names and their numbers.

use foresee_trace::{ErrorKind, Id, Interner, Names, Position, ReadError, ThreadId};

use super::frame::{damaged, push_varint, u32_at, varint};

/// The number of kinds of names.
pub(crate) const NAMESPACES: usize = 6;

/// The number of names of each kind, in the order of the kinds' codes.
pub(crate) fn name_counts(names: &Names) -> [usize; NAMESPACES] {
    [
        names.threads.len(),
        names.vars.len(),
        names.locks.len(),
        names.conds.len(),
        names.locs.len(),
        names.syms.len(),
    ]
}

/// Adds the names of a names frame whose payload starts at byte `at`.
pub(crate) fn read_names(
    payload: &[u8],
    count: u32,
    at: u64,
    names: &mut Names,
) -> Result<(), ReadError> {
    if payload.len() < 8 {
        return Err(damaged(at, "a names frame is too short"));
    }
    let frame = NamesFrame { payload, first: u32_at(payload, 4) as usize, count, at };
    match payload[0] {
        0 => frame.add_to(&mut names.threads)?,
        1 => frame.add_to(&mut names.vars)?,
        2 => frame.add_to(&mut names.locks)?,
        3 => frame.add_to(&mut names.conds)?,
        4 => frame.add_to(&mut names.locs)?,
        5 => frame.add_to(&mut names.syms)?,
        other => return Err(damaged(at, format!("unknown kind of names {other}"))),
    }
    if names.threads.len() > ThreadId::MAX as usize + 1 {
        return Err(ReadError::new(ErrorKind::Limit, Position::Byte(at), "too many threads"));
    }
    Ok(())
}

struct NamesFrame<'a> {
    payload: &'a [u8],
    /// The number of the first name.
    first: usize,
    count: u32,
    /// The offset of the payload in the file.
    at: u64,
}

impl NamesFrame<'_> {
    fn add_to<I: Id>(&self, interner: &mut Interner<I>) -> Result<(), ReadError> {
        let &NamesFrame { payload, first, .. } = self;
        if first != interner.len() {
            let message = format!("names start at number {first}, not at {}", interner.len());
            return Err(damaged(self.at, message));
        }
        let mut next = 8;
        for number in first..first + self.count as usize {
            let place = self.at + next as u64;
            let length = varint(payload, &mut next).and_then(|length| usize::try_from(length).ok());
            let text = length.and_then(|length| payload.get(next..next.checked_add(length)?));
            let text = text.ok_or_else(|| damaged(place, "a name is cut off"))?;
            next += text.len();
            let name = std::str::from_utf8(text)
                .map_err(|_| damaged(place, format!("name {number} is not UTF-8")))?;
            let id = interner.intern(name).map_err(|error| {
                ReadError::new(ErrorKind::Limit, Position::Byte(place), error.to_string())
            })?;
            if id.index() != number {
                let message = format!("name {number} is the same as name {}", id.index());
                return Err(damaged(place, message));
            }
        }
        match next == payload.len() {
            true => Ok(()),
            false => {
                let place = self.at + next as u64;
                Err(damaged(place, "bytes are left over after the last name"))
            }
        }
    }
}

/// Appends the payload of a names frame to `out`: the names of one kind from `first` on, as many as
/// fit into a frame. Returns their number.
pub(crate) fn encode_names(
    names: &Names,
    namespace: usize,
    first: usize,
    out: &mut Vec<u8>,
) -> u32 {
    out.extend_from_slice(&[namespace as u8, 0, 0, 0]);
    out.extend_from_slice(&(first as u32).to_le_bytes());
    match namespace {
        0 => push_names(&names.threads, first, out),
        1 => push_names(&names.vars, first, out),
        2 => push_names(&names.locks, first, out),
        3 => push_names(&names.conds, first, out),
        4 => push_names(&names.locs, first, out),
        _ => push_names(&names.syms, first, out),
    }
}

fn push_names<I: Id>(interner: &Interner<I>, first: usize, out: &mut Vec<u8>) -> u32 {
    const ENOUGH: usize = 1 << 20;
    let mut count = 0;
    for number in first..interner.len() {
        if out.len() > ENOUGH {
            break;
        }
        let name = interner.get(I::new(number));
        push_varint(name.len() as u64, out);
        out.extend_from_slice(name.as_bytes());
        count += 1;
    }
    count
}
