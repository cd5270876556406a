//! Traces to write and read back, and the way to compare them.
// Every test file uses another part, and none exports any.
#![allow(unreachable_pub, clippy::unwrap_used)]

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use foresee_formats::{Format, open_reader};
use foresee_trace::{
    Batch, Event, EventSink, EventSource, FileOrder, Names, Op, ReadError, TargetKind, Trace, Value,
};

/// Small and good enough; the seed is the test's.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub fn nasty_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "x",
        "V234.23[0]",
        "",
        " ",
        "a|b",
        "a,b",
        "\"",
        "\\",
        "a\"b\\c",
        "line\nbreak",
        "\r\n",
        "\t",
        "#comment",
        "@03",
        "f(int,long)",
        "f(int, long)",
        ")",
        "(",
        "a)b(c",
        "x)=5",
        "x(a)=5",
        "a->b",
        "=",
        "=5",
        "Ünï·cödé",
        "日本語",
        "🦀",
        "\u{0}",
        "\u{1b}[31m",
        "\u{7f}",
        "\u{85}",
        "\u{feff}T",
        "\u{2028}",
        "true",
        "nan",
        "inf",
        "-inf",
        "12",
        "-7",
        "1e5",
        "infinity",
        "null",
        "from",
        "Final",
        "test/Test.main([Ljava/lang/String;)V",
        "T0",
        "T1",
        "{",
        "'",
        "a b",
        "foresee:",
        "threads: a",
        "\u{301}",
        "nan(1)",
        "w(x)",
        "[",
        "<init>",
        "x@y",
        "@",
        "_",
        "a-b",
        "é=",
        "//",
    ]
    .map(String::from)
    .to_vec();
    names.push("long".repeat(5000));
    names.push("|\"".repeat(3000));
    names
}

pub fn nasty_values(names: &mut Names) -> Vec<Value> {
    let mut values = vec![
        Value::Int(0),
        Value::Int(-1),
        Value::Int(20),
        Value::Int((1 << 29) - 1),
        Value::Int(1 << 29),
        Value::Int(-(1 << 29)),
        Value::Int(-(1 << 29) - 1),
        Value::Int(i64::MAX),
        Value::Int(i64::MIN),
        Value::Uint(i64::MAX as u64 + 1),
        Value::Uint(u64::MAX),
        Value::Float(0.0),
        Value::Float(-0.0),
        Value::Float(2.0),
        Value::Float(0.1),
        Value::Float(1e21),
        Value::Float(-1e-300),
        Value::Float(f64::MIN_POSITIVE / 4.0),
        Value::Float(f64::MAX),
        Value::Float(f64::INFINITY),
        Value::Float(f64::NEG_INFINITY),
        Value::Float(f64::NAN),
        Value::Float(f64::from_bits(0xfff8_0000_0000_1234)),
        Value::Float(f64::from_bits(0x7ff0_0000_0000_0001)),
        Value::Bool(true),
        Value::Bool(false),
    ];
    for name in nasty_names() {
        values.push(Value::Str(names.syms.intern(&name).unwrap()));
    }
    values
}

fn intern(kind: TargetKind, name: &str, names: &mut Names) -> Option<u32> {
    Some(match kind {
        TargetKind::None => return None,
        TargetKind::Var => names.vars.intern(name).unwrap().0,
        TargetKind::Lock => names.locks.intern(name).unwrap().0,
        TargetKind::Cond => names.conds.intern(name).unwrap().0,
        TargetKind::Thread => names.thread(name).unwrap().0,
        TargetKind::Sym => names.syms.intern(name).unwrap().0,
    })
}

/// The maximum number of values of an operation according to the documentation.
fn most_values(op: Op) -> usize {
    match op {
        Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Init => 1,
        Op::Rmw => 2,
        Op::Enter | Op::Exit | Op::Event | Op::Begin | Op::End => 4,
        _ => 0,
    }
}

/// Adds an event with the given names and values.
pub fn push(trace: &mut Trace, thread: &str, op: Op, target: &str, values: &[Value], loc: &str) {
    let mut event = Event::new(trace.names.thread(thread).unwrap(), op);
    if let Some(target) = intern(op.target_kind(), target, &mut trace.names) {
        event = event.with_target(target);
    }
    event = event.with_values(values, &mut trace.pool);
    trace.events.push(event.with_loc(trace.names.locs.intern(loc).unwrap()));
}

/// Every operation, every kind of value, and every difficult name in every place.
pub fn rich_trace() -> Trace {
    let mut trace = Trace::default();
    let values = nasty_values(&mut trace.names);
    for &op in Op::ALL {
        for name in nasty_names() {
            push(&mut trace, "T0", op, &name, &[], "a.c:1");
            push(&mut trace, &name, op, "x", &[], "");
            push(&mut trace, "T1", op, "x", &[], &name);
        }
        for count in 1..=most_values(op) {
            for (i, &value) in values.iter().enumerate() {
                let list: Vec<_> = (0..count).map(|k| values[(i + 7 * k) % values.len()]).collect();
                assert_eq!(list[0], value);
                push(&mut trace, "T2", op, "f", &list, "b.c:2");
            }
        }
        if matches!(op, Op::WaitBegin | Op::WaitEnd) {
            for name in nasty_names() {
                let lock = trace.names.locks.intern(&name).unwrap();
                push(&mut trace, "T0", op, &name, &[], "");
                let last = trace.events.last_mut().unwrap();
                *last = last.with_wait_lock(Some(lock));
            }
        }
    }
    let unnamed = Event::new(trace.events[0].thread(), Op::Begin);
    let with_values = unnamed.with_values(&values[..3], &mut trace.pool);
    trace.events.extend([unnamed, unnamed.with_op(Op::End), with_values]);
    trace
}

/// A trace of random events that no program could have produced, but every format can hold.
pub fn random_trace(random: &mut Random, events: usize) -> Trace {
    let mut trace = Trace::default();
    let values = nasty_values(&mut trace.names);
    let mut names = nasty_names();
    names.truncate(names.len() - 2);
    for _ in 0..events {
        let op = *random.pick(Op::ALL);
        let count = random.below(most_values(op) + 1);
        let values: Vec<_> = (0..count).map(|_| *random.pick(&values)).collect();
        let (thread, target) = (random.pick(&names).clone(), random.pick(&names).clone());
        let loc = if random.below(2) == 0 { "" } else { random.pick(&names) };
        push(&mut trace, &thread, op, &target, &values, loc);
        let last = trace.events.last_mut().unwrap();
        if matches!(op, Op::WaitBegin | Op::WaitEnd) && random.below(2) == 0 {
            let lock = random.pick(&names).clone();
            let lock = trace.names.locks.intern(&lock).unwrap();
            *last = last.with_wait_lock(Some(lock));
        }
    }
    if random.below(3) == 0 {
        trace.remarks.order = FileOrder::Notes;
    }
    if random.below(3) == 0 {
        trace.remarks.cut_short = Some(random.pick(&names).clone());
    }
    trace
}

/// What the events mean, whatever their numbers. Text formats do not distinguish inner and outer lock
/// operations, so `outer` makes them all outer ones.
pub fn meaning(trace: &Trace, outer: bool) -> Vec<String> {
    let names = &trace.names;
    let one = |event: &Event| {
        let op = match event.op() {
            op if !outer => op,
            op => *Op::ALL.iter().find(|o| o.word() == op.word()).unwrap(),
        };
        let values: Vec<_> = trace
            .pool
            .values(event)
            .iter()
            .map(|v| match *v {
                Value::Str(s) => format!("{:?}", names.syms.get(s)),
                Value::Float(x) => format!("float {:x}", x.to_bits()),
                other => format!("{other:?}"),
            })
            .collect();
        let lock = event.wait_lock().map(|lock| names.locks.get(lock));
        let (thread, loc) = (names.threads.get(event.thread()), names.locs.get(event.loc()));
        format!("{thread:?} {op:?} {:?} {values:?} {lock:?} {loc:?}", event.target_name(names))
    };
    trace.events.iter().map(one).collect()
}

/// A writer whose bytes stay within reach.
#[derive(Clone, Default)]
pub struct Bytes(pub Rc<RefCell<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn copy(source: &mut dyn EventSource, sink: &mut dyn EventSink) {
    let mut batch = Batch::default();
    while source.next_batch(&mut batch).unwrap() {
        sink.write_batch(&batch, source.names()).unwrap();
    }
    sink.finish(source.names(), source.remarks()).unwrap();
}

pub fn written(trace: &Trace, format: &dyn Format) -> Vec<u8> {
    let bytes = Bytes::default();
    let mut sink = format.write(Box::new(bytes.clone()));
    copy(&mut trace.source(), &mut *sink);
    bytes.0.take()
}

pub fn loaded(bytes: &[u8], format: Option<&'static dyn Format>) -> Result<Trace, ReadError> {
    Trace::load(&mut open_reader(Box::new(bytes), format)?.source)
}
