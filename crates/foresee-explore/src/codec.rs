//! Runs as bytes, for the journal and for runs on other machines.

use crate::program::{
    Cell, Ending, Event, Execution, Failure, Join, LockKind, Modify, Object, Operation, Patience,
    Pending, Place, Schedule, Spot, Step, Tail, ThreadName, Told, Value,
};

/// Writes a run.
pub fn write_execution(run: &Execution, out: &mut Vec<u8>) {
    let mut out = Out(out);
    out.number(run.threads.len() as u128);
    for name in &run.threads {
        out.number(name.0.len() as u128);
        name.0.iter().for_each(|&part| out.number(u128::from(part)));
    }
    out.number(run.events.len() as u128);
    for event in &run.events {
        out.number(u128::from(event.thread));
        out.operation(&event.operation);
        out.number(u128::from(event.place.0));
        out.told(event.told);
        out.optional(event.stored);
        out.number(u128::from(event.choice));
    }
    out.number(run.pending.len() as u128);
    for pending in &run.pending {
        out.number(u128::from(pending.thread));
        out.operation(&pending.operation);
        out.number(u128::from(pending.place.0));
    }
    out.number(match run.ending {
        Ending::Finished => 0,
        Ending::Deadlock => 1,
        Ending::Cut => 2,
        Ending::TimedOut => 3,
    });
    match &run.diverged {
        None => out.number(0),
        Some((at, why)) => {
            out.number(*at as u128 + 1);
            out.number(why.len() as u128);
            out.0.extend_from_slice(why.as_bytes());
        }
    }
}

/// Reads a run; nothing if the bytes are none.
pub fn read_execution(bytes: &[u8]) -> Option<Execution> {
    let mut from = In(bytes);
    let threads = from.list(|from| {
        let parts = from.list(In::small)?;
        Some(ThreadName(parts))
    })?;
    let events = from.list(|from| {
        Some(Event {
            thread: from.small()?,
            operation: from.operation()?,
            place: Place(from.medium()?),
            told: from.told()?,
            stored: from.optional()?,
            choice: from.small()?,
        })
    })?;
    let pending = from.list(|from| {
        Some(Pending {
            thread: from.small()?,
            operation: from.operation()?,
            place: Place(from.medium()?),
        })
    })?;
    let ending = match from.number()? {
        0 => Ending::Finished,
        1 => Ending::Deadlock,
        2 => Ending::Cut,
        3 => Ending::TimedOut,
        _ => return None,
    };
    let diverged = match from.number()? {
        0 => None,
        at => {
            let text = from.list(|from| from.byte())?;
            Some((usize::try_from(at - 1).ok()?, String::from_utf8(text).ok()?))
        }
    };
    let is_thread = |thread: u32| (thread as usize) < threads.len();
    let is_sound = events.iter().all(|event| is_thread(event.thread))
        && pending.iter().all(|pending| is_thread(pending.thread));
    let run = Execution { threads, events, pending, ending, diverged };
    (from.0.is_empty() && is_sound).then_some(run)
}

/// Writes what a run must do.
pub fn write_schedule(schedule: &Schedule, out: &mut Vec<u8>) {
    let mut out = Out(out);
    out.number(schedule.threads.len() as u128);
    for name in &schedule.threads {
        out.number(name.0.len() as u128);
        name.0.iter().for_each(|&part| out.number(u128::from(part)));
    }
    out.number(schedule.steps.len() as u128);
    for step in &schedule.steps {
        out.number(u128::from(step.thread));
        out.number(u128::from(step.choice));
    }
    out.number(match schedule.tail {
        Tail::Straight => 0,
        Tail::Random(seed) => 1 + u128::from(seed),
    });
    out.number(schedule.most_operations as u128);
}

/// Reads what a run must do; nothing if the bytes do not say that.
pub fn read_schedule(bytes: &[u8]) -> Option<Schedule> {
    let mut from = In(bytes);
    let threads = from.list(|from| Some(ThreadName(from.list(In::small)?)))?;
    let steps = from.list(|from| {
        let thread = from.small()?;
        Some(Step { thread, choice: from.small()? })
    })?;
    let tail = match from.number()? {
        0 => Tail::Straight,
        seed => Tail::Random(u64::try_from(seed - 1).ok()?),
    };
    let most_operations = usize::try_from(from.number()?).ok()?;
    let is_sound = steps.iter().all(|step| (step.thread as usize) < threads.len());
    (from.0.is_empty() && is_sound).then_some(Schedule { threads, steps, tail, most_operations })
}

struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn spot(&mut self, spot: Spot) {
        self.0.extend_from_slice(&spot.object.0.to_le_bytes());
        self.number(u128::from(spot.offset));
    }

    fn cell(&mut self, cell: Cell) {
        self.spot(cell.at);
        self.0.push(cell.width);
    }

    fn value(&mut self, value: Value) {
        match value {
            Value::Bits(bits) => {
                self.0.push(0);
                self.number(bits);
            }
            Value::Address(spot) => {
                self.0.push(1);
                self.spot(spot);
            }
        }
    }

    fn optional(&mut self, value: Option<Value>) {
        match value {
            None => self.0.push(0),
            Some(value) => {
                self.0.push(1);
                self.value(value);
            }
        }
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Nothing => self.0.push(0),
            Told::Value(value) => {
                self.0.push(1);
                self.value(value);
            }
            Told::Got => self.0.push(2),
            Told::Busy => self.0.push(3),
            Told::Woken => self.0.push(4),
            Told::TimedOut => self.0.push(5),
            Told::Refused => self.0.push(6),
        }
    }

    fn modify(&mut self, modify: Modify) {
        let (code, operand) = match modify {
            Modify::Add(value) => (0, value),
            Modify::Sub(value) => (1, value),
            Modify::And(value) => (2, value),
            Modify::Or(value) => (3, value),
            Modify::Xor(value) => (4, value),
            Modify::Nand(value) => (5, value),
            Modify::Exchange(value) => (6, value),
            Modify::CompareExchange { expected, desired } => {
                self.0.push(7);
                self.value(expected);
                return self.value(desired);
            }
            Modify::Opaque => return self.0.push(8),
        };
        self.0.push(code);
        self.value(operand);
    }

    fn operation(&mut self, operation: &Operation) {
        let lock_kind = |kind: LockKind| match kind {
            LockKind::Normal => 0,
            LockKind::Recursive => 1,
            LockKind::ErrorCheck => 2,
        };
        let patience_of = |patience: Patience| match patience {
            Patience::Wait => 0,
            Patience::Try => 1,
            Patience::Timed => 2,
        };
        match *operation {
            Operation::Load(cell) => self.with(0, |out| out.cell(cell)),
            Operation::Store(cell, value) => self.with(1, |out| {
                out.cell(cell);
                out.optional(value);
            }),
            Operation::Modify(cell, modify) => self.with(2, |out| {
                out.cell(cell);
                out.modify(modify);
            }),
            Operation::Lock { lock, kind, shared, patience } => self.with(3, |out| {
                out.spot(lock);
                out.0.extend([lock_kind(kind), u8::from(shared), patience_of(patience)]);
            }),
            Operation::Unlock { lock, kind } => self.with(4, |out| {
                out.spot(lock);
                out.0.push(lock_kind(kind));
            }),
            Operation::Wait { condition, lock, timed } => self.with(5, |out| {
                out.spot(condition);
                out.spot(lock);
                out.0.push(u8::from(timed));
            }),
            Operation::WaitEnd { condition, lock, timed } => self.with(6, |out| {
                out.spot(condition);
                out.spot(lock);
                out.0.push(u8::from(timed));
            }),
            Operation::Signal(at) => self.with(7, |out| out.spot(at)),
            Operation::Broadcast(at) => self.with(8, |out| out.spot(at)),
            Operation::SemInit(at, count) => self.with(9, |out| {
                out.spot(at);
                out.number(u128::from(count));
            }),
            Operation::SemPost(at) => self.with(10, |out| out.spot(at)),
            Operation::SemWait(at, patience) => self.with(11, |out| {
                out.spot(at);
                out.0.push(patience_of(patience));
            }),
            Operation::SemValue(at) => self.with(12, |out| out.spot(at)),
            Operation::BarrierInit(at, count) => self.with(13, |out| {
                out.spot(at);
                out.number(u128::from(count));
            }),
            Operation::Arrive(at) => self.with(14, |out| out.spot(at)),
            Operation::Pass(at) => self.with(15, |out| out.spot(at)),
            Operation::OnceBegin(at) => self.with(16, |out| out.spot(at)),
            Operation::OnceEnd(at) => self.with(17, |out| out.spot(at)),
            Operation::Fork(number) => self.with(18, |out| out.number(u128::from(number))),
            Operation::Join { thread } => {
                self.with(19, |out| out.0.extend_from_slice(&thread.0.to_le_bytes()));
            }
            Operation::End(value) => self.with(20, |out| out.value(value)),
            Operation::Exit(status) => {
                self.with(21, |out| out.number(u128::from(status.cast_unsigned())));
            }
            Operation::Fail(failure) => self.with(22, |out| match failure {
                Failure::Assertion => out.0.push(0),
                Failure::Abort => out.0.push(1),
                Failure::Signal(signal) => {
                    out.0.push(2);
                    out.number(u128::from(signal.cast_unsigned()));
                }
                Failure::Sanitizer => out.0.push(3),
            }),
            Operation::Unknown => self.0.push(23),
            Operation::Mark(what) => {
                self.with(24, |out| out.0.extend_from_slice(&what.to_le_bytes()));
            }
        }
    }

    fn with(&mut self, code: u8, rest: impl FnOnce(&mut Out<'_>)) {
        self.0.push(code);
        rest(self);
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u128> {
        let mut number = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn medium(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // Each has a byte at least: a damaged number asks for no memory.
        if count > self.0.len() as u128 {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn wide(&mut self) -> Option<u128> {
        let (bytes, rest) = self.0.split_first_chunk::<16>()?;
        self.0 = rest;
        Some(u128::from_le_bytes(*bytes))
    }

    fn spot(&mut self) -> Option<Spot> {
        Some(Spot { object: Object(self.wide()?), offset: self.medium()? })
    }

    fn cell(&mut self) -> Option<Cell> {
        let cell = Cell { at: self.spot()?, width: self.byte()? };
        (1..=16).contains(&cell.width).then_some(cell)
    }

    fn value(&mut self) -> Option<Value> {
        match self.byte()? {
            0 => Some(Value::Bits(self.number()?)),
            1 => Some(Value::Address(self.spot()?)),
            _ => None,
        }
    }

    fn optional(&mut self) -> Option<Option<Value>> {
        match self.byte()? {
            0 => Some(None),
            1 => self.value().map(Some),
            _ => None,
        }
    }

    fn told(&mut self) -> Option<Told> {
        Some(match self.byte()? {
            0 => Told::Nothing,
            1 => Told::Value(self.value()?),
            2 => Told::Got,
            3 => Told::Busy,
            4 => Told::Woken,
            5 => Told::TimedOut,
            6 => Told::Refused,
            _ => return None,
        })
    }

    fn modify(&mut self) -> Option<Modify> {
        let make: fn(Value) -> Modify = match self.byte()? {
            0 => Modify::Add,
            1 => Modify::Sub,
            2 => Modify::And,
            3 => Modify::Or,
            4 => Modify::Xor,
            5 => Modify::Nand,
            6 => Modify::Exchange,
            7 => {
                let expected = self.value()?;
                return Some(Modify::CompareExchange { expected, desired: self.value()? });
            }
            8 => return Some(Modify::Opaque),
            _ => return None,
        };
        self.value().map(make)
    }

    fn kind(&mut self) -> Option<LockKind> {
        [LockKind::Normal, LockKind::Recursive, LockKind::ErrorCheck]
            .get(usize::from(self.byte()?))
            .copied()
    }

    fn patience(&mut self) -> Option<Patience> {
        [Patience::Wait, Patience::Try, Patience::Timed].get(usize::from(self.byte()?)).copied()
    }

    fn flag(&mut self) -> Option<bool> {
        [false, true].get(usize::from(self.byte()?)).copied()
    }

    fn operation(&mut self) -> Option<Operation> {
        Some(match self.byte()? {
            0 => Operation::Load(self.cell()?),
            1 => Operation::Store(self.cell()?, self.optional()?),
            2 => Operation::Modify(self.cell()?, self.modify()?),
            3 => Operation::Lock {
                lock: self.spot()?,
                kind: self.kind()?,
                shared: self.flag()?,
                patience: self.patience()?,
            },
            4 => Operation::Unlock { lock: self.spot()?, kind: self.kind()? },
            5 => {
                Operation::Wait { condition: self.spot()?, lock: self.spot()?, timed: self.flag()? }
            }
            6 => Operation::WaitEnd {
                condition: self.spot()?,
                lock: self.spot()?,
                timed: self.flag()?,
            },
            7 => Operation::Signal(self.spot()?),
            8 => Operation::Broadcast(self.spot()?),
            9 => Operation::SemInit(self.spot()?, self.small()?),
            10 => Operation::SemPost(self.spot()?),
            11 => Operation::SemWait(self.spot()?, self.patience()?),
            12 => Operation::SemValue(self.spot()?),
            13 => Operation::BarrierInit(self.spot()?, self.small()?),
            14 => Operation::Arrive(self.spot()?),
            15 => Operation::Pass(self.spot()?),
            16 => Operation::OnceBegin(self.spot()?),
            17 => Operation::OnceEnd(self.spot()?),
            18 => Operation::Fork(self.small()?),
            19 => Operation::Join { thread: Join(self.wide()?) },
            20 => Operation::End(self.value()?),
            21 => Operation::Exit(self.small()?.cast_signed()),
            22 => Operation::Fail(match self.byte()? {
                0 => Failure::Assertion,
                1 => Failure::Abort,
                2 => Failure::Signal(self.small()?.cast_signed()),
                3 => Failure::Sanitizer,
                _ => return None,
            }),
            23 => Operation::Unknown,
            24 => Operation::Mark(self.wide()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_written_or_not_at_all() {
        let threads = vec![ThreadName::default(), ThreadName(vec![1]), ThreadName(vec![1, 300])];
        let steps = [(0, 0), (2, 7), (1, u32::MAX)];
        let steps: Vec<Step> =
            steps.iter().map(|&(thread, choice)| Step { thread, choice }).collect();
        for tail in [Tail::Straight, Tail::Random(0), Tail::Random(u64::MAX)] {
            let schedule = Schedule {
                threads: threads.clone(),
                steps: steps.clone(),
                tail,
                most_operations: 100_000,
            };
            let mut bytes = Vec::new();
            write_schedule(&schedule, &mut bytes);
            let read = read_schedule(&bytes).expect("it was written here");
            assert_eq!(format!("{read:?}"), format!("{schedule:?}"));
            assert!((0..bytes.len()).all(|end| read_schedule(&bytes[..end]).is_none()));
            bytes.push(0);
            assert!(read_schedule(&bytes).is_none());
        }
        // A step of a thread that is not there.
        let schedule =
            Schedule { threads: Vec::new(), steps, tail: Tail::Straight, most_operations: 1 };
        let mut bytes = Vec::new();
        write_schedule(&schedule, &mut bytes);
        assert!(read_schedule(&bytes).is_none());
    }
}
