//! What is measured against what.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use foresee_causality::{Clocks, Order};
use foresee_predict::Analysis;
use foresee_predict::lattice::{Lattice, Limits};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_trace::{Batch, Census, Event, EventSource, Mode, Names, Validated};

use crate::baseline::lines::Lines;
use crate::baseline::tree_clocks::TreeClocks;
use crate::baseline::vector_clocks::VectorClocks;
use crate::patterns;
use crate::trace_file;

#[derive(Clone, Copy)]
pub(crate) enum Way {
    Ours,
    Baseline,
}

impl Way {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Way::Ours => "ours",
            Way::Baseline => "baseline",
        }
    }
}

/// How long it took, and how many events it saw.
type Run = fn(&Path) -> anyhow::Result<(Duration, u64)>;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) ours_is: &'static str,
    pub(crate) ours: Run,
    pub(crate) baseline_is: &'static str,
    pub(crate) baseline: Run,
    /// Whether the file is to be read from the disk.
    pub(crate) cold: bool,
    /// Longer traces take the baseline minutes.
    pub(crate) most_events: u64,
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "std parsing",
        ours_is: "the std reader, all names interned",
        ours: |traces| read_all(traces, "std"),
        baseline_is: "`lines()`, `split` and maps of strings",
        baseline: |traces| std_lines(traces, "std"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "std parsing, a small program",
        ours_is: "the same with a thousand names instead of fifteen thousand",
        ours: |traces| read_all(traces, "small"),
        baseline_is: "the same as before",
        baseline: |traces| std_lines(traces, "small"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "native reading, warm",
        ours_is: "the native reader, checksums included",
        ours: |traces| read_all(traces, "native"),
        baseline_is: "reading the same bytes and looking at none",
        baseline: read_bytes,
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "native reading, cold",
        ours_is: "the same with the file not in memory",
        ours: |traces| read_all(traces, "native"),
        baseline_is: "reading the same bytes, also cold",
        baseline: read_bytes,
        cold: true,
        most_events: u64::MAX,
    },
    Case {
        name: "native reading, two cores",
        ours_is: "`load_parallel` into one trace, two threads",
        ours: load_parallel,
        baseline_is: "`Trace::load`, one thread",
        baseline: load,
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "validation",
        ours_is: "native reading with all well-formedness rules",
        ours: validate,
        baseline_is: "native reading alone",
        baseline: |traces| read_all(traces, "native"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "counting (`trace info`)",
        ours_is: "native reading, validation and the census",
        ours: census,
        baseline_is: "native reading alone",
        baseline: |traces| read_all(traces, "native"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "clocks",
        ours_is: "native reading and Mazurkiewicz clocks (shared vectors with epochs)",
        ours: clocks,
        baseline_is: "native reading and plain vector clocks",
        baseline: |traces| {
            let mut clocks = VectorClocks::default();
            each_event(traces, |event| clocks.event(event))
        },
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "clocks against tree clocks",
        ours_is: "as before",
        ours: clocks,
        baseline_is: "native reading and tree clocks",
        baseline: |traces| {
            let mut clocks = TreeClocks::default();
            each_event(traces, |event| clocks.event(event))
        },
        cold: false,
        most_events: 1_000_000,
    },
    Case {
        name: "monitoring, past-time logic",
        ours_is: "native reading and a formula of ten operators over four variables, every access \
                  relevant",
        ours: |traces| monitor(traces, PAST),
        baseline_is: "native reading alone, of the same trace",
        baseline: |traces| read_all(traces, "dense"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "monitoring, future-time logic",
        ours_is: "the same with a bad-prefix automaton",
        ours: |traces| monitor(traces, FUTURE),
        baseline_is: "native reading alone, of the same trace",
        baseline: |traces| read_all(traces, "dense"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "monitoring, regular expression",
        ours_is: "the same with an extended regular expression",
        ours: |traces| monitor(traces, REGEX),
        baseline_is: "native reading alone, of the same trace",
        baseline: |traces| read_all(traces, "dense"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "monitoring, pattern",
        ours_is: "the same with a pattern of three events",
        ours: |traces| monitor(traces, PATTERN),
        baseline_is: "native reading alone, of the same trace",
        baseline: |traces| read_all(traces, "dense"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "monitoring, automaton",
        ours_is: "the same with an automaton of three states",
        ours: |traces| monitor(traces, AUTOMATON),
        baseline_is: "native reading alone, of the same trace",
        baseline: |traces| read_all(traces, "dense"),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "windowed lattice, 16 cuts",
        ours_is: "the formula of ten operators in the 16 cuts of each level nearest to the observed \
                  run, in one pass",
        ours: |traces| windowed(traces, 16),
        baseline_is: "the formula in the observed run alone",
        baseline: |traces| monitor(traces, PAST),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "windowed lattice, 128 cuts",
        ours_is: "the same with 128 cuts",
        ours: |traces| windowed(traces, 128),
        baseline_is: "the formula in the observed run alone",
        baseline: |traces| monitor(traces, PAST),
        cold: false,
        most_events: 10_000_000,
    },
    Case {
        name: "pattern prediction, 3 events",
        ours_is: "native reading and a pattern of three events, two of which occur",
        ours: |traces| patterns::ours(traces, 1, 3, false),
        baseline_is: "native reading, plain vector clocks and a tuple for each permutation of each \
                      subsequence of the pattern (the paper's algorithm)",
        baseline: |traces| patterns::paper(traces, 3, false),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "pattern prediction, 5 events",
        ours_is: "the same with five events",
        ours: |traces| patterns::ours(traces, 1, 5, false),
        baseline_is: "the paper's algorithm",
        baseline: |traces| patterns::paper(traces, 5, false),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "pattern prediction, 5 frequent events",
        ours_is: "the same with any write or read of four threads as events",
        ours: |traces| patterns::ours(traces, 1, 5, true),
        baseline_is: "the paper's algorithm",
        baseline: |traces| patterns::paper(traces, 5, true),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "pattern prediction, 1,000 patterns",
        ours_is: "a thousand patterns of three events in one pass",
        ours: |traces| patterns::ours(traces, 1_000, 3, false),
        baseline_is: "one of them",
        baseline: |traces| patterns::ours(traces, 1, 3, false),
        cold: false,
        most_events: u64::MAX,
    },
    Case {
        name: "pattern prediction, 8 events",
        ours_is: "a pattern of eight frequent events",
        ours: |traces| patterns::ours(traces, 1, 8, true),
        baseline_is: "one of three frequent events",
        baseline: |traces| patterns::ours(traces, 1, 3, true),
        cold: false,
        most_events: u64::MAX,
    },
];

pub(crate) fn open(traces: &Path, format: &str) -> anyhow::Result<Box<dyn EventSource>> {
    Ok(foresee_formats::open(&trace_file(traces, format), None)?.source)
}

/// Reads a source to its end and looks at every event.
pub(crate) fn drain(
    source: &mut dyn EventSource,
    mut each: impl FnMut(&Batch),
) -> anyhow::Result<u64> {
    let mut batch = Batch::default();
    let mut events = 0;
    while source.next_batch(&mut batch)? {
        events += batch.events.len() as u64;
        each(&batch);
    }
    Ok(events)
}

pub(crate) fn timed(run: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<(Duration, u64)> {
    let start = Instant::now();
    let events = run()?;
    Ok((start.elapsed(), events))
}

fn read_all(traces: &Path, format: &str) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        drain(&mut open(traces, format)?, |batch| {
            black_box(&batch.events);
        })
    })
}

fn each_event(traces: &Path, mut each: impl FnMut(&Event)) -> anyhow::Result<(Duration, u64)> {
    timed(|| drain(&mut open(traces, "native")?, |batch| batch.events.iter().for_each(&mut each)))
}

fn std_lines(traces: &Path, name: &str) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        let file = BufReader::with_capacity(1 << 20, File::open(trace_file(traces, name))?);
        let (events, sum) = Lines::default().read(file)?;
        black_box(sum);
        Ok(events)
    })
}

fn read_bytes(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    let (time, _) = timed(|| {
        let mut file = File::open(trace_file(traces, "native"))?;
        let mut buffer = vec![0; 1 << 20];
        let mut all = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(all),
                n => all += n as u64,
            }
        }
    })?;
    Ok((time, count(traces)?))
}

fn count(traces: &Path) -> anyhow::Result<u64> {
    Ok(foresee_formats::native::Indexed::open(&trace_file(traces, "native"))?.events())
}

fn load(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    timed(|| Ok(foresee_trace::Trace::load(&mut *open(traces, "native")?)?.events.len() as u64))
}

fn load_parallel(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        let file = foresee_formats::native::Indexed::open(&trace_file(traces, "native"))?;
        Ok(file.load_parallel(2)?.events.len() as u64)
    })
}

fn validate(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        drain(&mut Validated::new(open(traces, "native")?, Mode::Reject), |batch| {
            black_box(&batch.events);
        })
    })
}

fn census(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        let mut census = Census::default();
        let mut source = Validated::new(open(traces, "native")?, Mode::Reject);
        drain(&mut source, |batch| census.batch(batch))?;
        Ok(census.events)
    })
}

fn clocks(traces: &Path) -> anyhow::Result<(Duration, u64)> {
    timed(|| {
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        let mut result = Ok(());
        let events = drain(&mut open(traces, "native")?, |batch| {
            for event in &batch.events {
                match clocks.event(event) {
                    Ok(stamp) => drop(black_box(stamp)),
                    Err(error) => result = Err(error),
                }
            }
            clocks.forget_old(&[]);
        })?;
        result?;
        Ok(events)
    })
}

const PAST: &str = "
    init x0 = 0, x1 = 0, x2 = 0, x3 = 0
    property p: (x0 > 90 && once (x1 > 10)) -> (!(x2 > 200) since start(x3 > 5)) \
        || once (x2 > 3 && prev (x1 > 2)) || hist (x0 < 1000)";
const FUTURE: &str = "
    init x0 = 0, x1 = 0, x2 = 0, x3 = 0
    property p: always (x0 > 90 -> ((x1 < 1000) until (x2 > 3 || x3 > 3)))";
const REGEX: &str = "
    init x0 = 0, x1 = 0, x2 = 0, x3 = 0
    violation p: .* {x0 > 90} {x1 > 3}* {x2 > 1000} .*";
const PATTERN: &str = "pattern p: write(x0) .. event(never) .. write(x1)";
const AUTOMATON: &str = "
    automaton p { initial a; a: write(x0) -> b; b: write(x1) -> a, event(never) -> bad; }";

/// A specification, tied to the dense trace.
fn tied(traces: &Path, text: &str) -> anyhow::Result<(Spec, Vec<Compiled>, Resolved, Names)> {
    let parsed = foresee_spec::parse(text);
    anyhow::ensure!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let names =
        foresee_formats::native::Indexed::open(&trace_file(traces, "dense"))?.names().clone();
    let resolved = foresee_spec::resolve(&parsed.spec, &names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    Ok((parsed.spec, compiled, resolved, names))
}

fn windowed(traces: &Path, window: usize) -> anyhow::Result<(Duration, u64)> {
    let (spec, compiled, resolved, names) = tied(traces, PAST)?;
    // As on the command line, but for what is kept for a witness: nothing is found here.
    let window = Some(window);
    let limits = Limits { window, lookahead: 65_536, kept_events: 1 << 20, ..Limits::default() };
    timed(|| {
        let lattice = Lattice::new(&spec, compiled, &resolved, &names, limits);
        let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(lattice)];
        let mut source = open(traces, "dense")?;
        let summary =
            foresee_predict::run(&mut source, &mut analyses, &mut Vec::new(), &mut |_| {})?;
        Ok(summary.events)
    })
}

fn monitor(traces: &Path, text: &str) -> anyhow::Result<(Duration, u64)> {
    let (spec, compiled, resolved, names) = tied(traces, text)?;
    timed(|| {
        let mut monitor = ObservedMonitor::new(&spec, compiled, &resolved, &names);
        let mut index = 0;
        drain(&mut open(traces, "dense")?, |batch| {
            for event in &batch.events {
                monitor.event(index, event, &batch.pool);
                index += 1;
            }
        })
    })
}
