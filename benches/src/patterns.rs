//! Prediction of patterns: against the paper's algorithm and against itself, and how its time grows
//! with events, threads and positions.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use foresee_predict::pattern::{Algorithm, Patterns};
use foresee_predict::{Analysis, Candidates, Out, Pass};
use foresee_spec::observe::Projection;
use foresee_spec::property::Compiled;
use foresee_trace::generate::{Config, Generator};
use foresee_trace::{EventSource, Finding, Names, Trace};

use crate::baseline::ideals::{self, Answer};
use crate::baseline::permutations::Permutations;
use crate::cases::{drain, open, timed};

/// Patterns that no run has, because their first event does not occur: all others are searched for
/// to the end of the trace.
fn spec(patterns: usize, events: usize, frequent: bool) -> String {
    let mut text = String::new();
    for p in 0..patterns {
        let positions = (1..events).map(|i| {
            let op = if i % 2 == 0 { "read" } else { "write" };
            match frequent {
                true => format!("{op}(_)@T{}", i % 4),
                false => format!("{op}(x{})@T{}", p * 7 + i, (p + i) % 4),
            }
        });
        let positions: Vec<String> = positions.collect();
        let _ = writeln!(text, "pattern p{p}: event(never) .. {}", positions.join(" .. "));
    }
    text
}

fn patterns(names: &Names, text: &str) -> anyhow::Result<Patterns> {
    let parsed = foresee_spec::parse(text);
    let resolved = foresee_spec::resolve(&parsed.spec, names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    Ok(Patterns::new(compiled, &resolved, names, Algorithm::Auto))
}

pub(crate) fn ours(
    traces: &Path,
    count: usize,
    length: usize,
    frequent: bool,
) -> anyhow::Result<(Duration, u64)> {
    let names = names(traces)?;
    let mut search = patterns(&names, &spec(count, length, frequent))?;
    timed(|| pass(&mut search, &mut open(traces, "native")?))
}

fn names(traces: &Path) -> anyhow::Result<Names> {
    let file = crate::trace_file(traces, "native");
    Ok(foresee_formats::native::Indexed::open(&file)?.names().clone())
}

fn pass(search: &mut Patterns, source: &mut dyn EventSource) -> anyhow::Result<u64> {
    let mut findings: Vec<Finding> = Vec::new();
    let (mut first, mut result, mut candidates) = (0, Ok(()), Candidates::default());
    let names = source.names().clone();
    let events = drain(source, |batch| {
        if result.is_ok() {
            let out = Out::new(&mut findings, &mut candidates);
            result = search.events(&mut Pass { first, batch, names: &names, out }).map(drop);
        }
        first += batch.events.len() as u64;
    })?;
    result?;
    anyhow::ensure!(findings.is_empty(), "no run has these patterns");
    Ok(events)
}

pub(crate) fn paper(
    traces: &Path,
    length: usize,
    frequent: bool,
) -> anyhow::Result<(Duration, u64)> {
    let names = names(traces)?;
    let parsed = foresee_spec::parse(&spec(1, length, frequent));
    let resolved = foresee_spec::resolve(&parsed.spec, &names).resolved;
    let compiled =
        Compiled::new(&parsed.spec.properties[0]).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let lens = Projection::new(&compiled.alphabet, &[], &resolved, &names);
    let sequences = compiled.sequences.unwrap_or_default();
    let mut search = Permutations::new(length);
    let mut found = false;
    let measured = timed(|| {
        drain(&mut open(traces, "native")?, |batch| {
            let mut positions = Vec::new();
            for event in &batch.events {
                positions.clear();
                if let Some(step) = lens.step(event, &batch.pool) {
                    let letter = foresee_spec::letter::Letter(step.events);
                    let matching = (0..length).filter(|&i| sequences[0][i].matches(letter));
                    positions.extend(matching.map(|i| i as u8));
                }
                found |= search.event(event, &positions);
            }
        })
    })?;
    anyhow::ensure!(!found, "no run has this pattern");
    Ok(measured)
}

/// How many bytes the ideals of Bertoni's algorithm may take.
const MOST_BYTES: usize = 256 << 20;

/// Ours, the paper's and Bertoni's algorithm on traces so small that the last one can end, and on
/// the first beyond.
pub(crate) fn algorithms() -> anyhow::Result<()> {
    const TEXT: &str = "pattern p: event(never) .. write(_)@T1 .. read(_)@T0";
    println!("\n| threads | events | ours | paper's | Bertoni's | ideals |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for (threads, events) in
        [(2, 200), (2, 2_000), (4, 40), (4, 100), (4, 160), (16, 160), (64, 640)]
    {
        let trace = Trace::load(&mut Generator::new(Config::bench(threads, events, 1))?)?;
        let mut search = patterns(&trace.names, TEXT)?;
        let start = Instant::now();
        pass(&mut search, &mut trace.source())?;
        let ours = start.elapsed();
        let parsed = foresee_spec::parse(TEXT);
        let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
        let compiled =
            Compiled::new(&parsed.spec.properties[0]).map_err(|e| anyhow::anyhow!("{e:?}"))?;
        let lens = Projection::new(&compiled.alphabet, &[], &resolved, &trace.names);
        let sequence = compiled.sequences.unwrap_or_default().remove(0);
        let length = sequence.len();
        let matched = trace.events.iter().map(|event| {
            let letter = lens.step(event, &trace.pool).map_or(0, |step| step.events);
            let letter = foresee_spec::letter::Letter(letter);
            let positions = (0..length).filter(|&i| sequence[i].matches(letter));
            positions.fold(0, |bits, i| bits | 1 << i)
        });
        let matched: Vec<u64> = matched.collect();
        let start = Instant::now();
        let mut permutations = Permutations::new(length);
        for (event, bits) in trace.events.iter().zip(&matched) {
            let positions = (0..length as u8).filter(|p| bits >> p & 1 == 1);
            let found = permutations.event(event, &positions.collect::<Vec<u8>>());
            anyhow::ensure!(!found, "no run has this pattern");
        }
        let paper = start.elapsed();
        let start = Instant::now();
        let threads = trace.names.threads.len();
        let (answer, count) = ideals::search(threads, &trace.events, &matched, length, MOST_BYTES);
        let bertoni = start.elapsed();
        anyhow::ensure!(answer != Answer::Matches, "no run has this pattern");
        let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        let (bertoni, count) = match answer {
            Answer::GaveUp => {
                let mib = MOST_BYTES >> 20;
                let told = format!("gave up after {}: more than {mib} MiB", ms(bertoni));
                (told, format!("> {count}"))
            }
            _ => (ms(bertoni), count.to_string()),
        };
        println!("| {threads} | {events} | {} | {} | {bertoni} | {count} |", ms(ours), ms(paper));
    }
    Ok(())
}

/// Prints how the time grows, and draws it into `docs/analyses/`.
pub(crate) fn growth() -> anyhow::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/analyses");
    let events: Vec<u64> = vec![1, 3, 10, 30, 100];
    let points = events.iter().map(|&m| Ok((m as f64, seconds(16, m * 1_000_000, 3)?)));
    let points = points.collect::<anyhow::Result<Vec<_>>>()?;
    draw(&docs.join("patterns-events.svg"), "millions of events", "seconds", &points)?;
    let points = [2, 4, 8, 16, 32, 64, 128].map(|t| Ok((f64::from(t), rate(t, 3)?)));
    let points = points.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    draw(&docs.join("patterns-threads.svg"), "threads", "million events a second", &points)?;
    let points = (2..=10).map(|d| Ok((d as f64, rate(16, d)?)));
    let points = points.collect::<anyhow::Result<Vec<_>>>()?;
    draw(&docs.join("patterns-dimension.svg"), "positions", "million events a second", &points)
}

/// Million events a second of a pattern of frequent events.
fn rate(threads: u32, length: usize) -> anyhow::Result<f64> {
    const EVENTS: u64 = 2_000_000;
    Ok(EVENTS as f64 / seconds(threads, EVENTS, length)? / 1e6)
}

/// The time that prediction takes on a trace that is made as it is read, without the making.
fn seconds(threads: u32, events: u64, length: usize) -> anyhow::Result<f64> {
    let config = Config::bench(threads, events, 1);
    let mut source = Generator::new(config.clone())?;
    let mut search = patterns(source.names(), &spec(1, length, true))?;
    let mut spent = Duration::ZERO;
    let mut findings: Vec<Finding> = Vec::new();
    let (mut first, mut result, mut candidates) = (0, Ok(()), Candidates::default());
    let names = source.names().clone();
    drain(&mut source, |batch| {
        let start = on_cpu();
        if result.is_ok() {
            let out = Out::new(&mut findings, &mut candidates);
            result = search.events(&mut Pass { first, batch, names: &names, out }).map(drop);
        }
        spent += on_cpu() - start;
        first += batch.events.len() as u64;
    })?;
    result?;
    println!(
        "{threads} threads, {events} events, {length} positions: {:.3} s",
        spent.as_secs_f64()
    );
    Ok(spent.as_secs_f64())
}

/// How long this thread has run: unlike the time of day, it does not count others.
pub(crate) fn on_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// A line through points, from zero.
fn draw(file: &Path, x_is: &str, y_is: &str, points: &[(f64, f64)]) -> anyhow::Result<()> {
    let (width, height, left, bottom) = (460.0, 220.0, 60.0, 250.0);
    let most = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).fold(0.0, f64::max);
    let (most_x, most_y) = (most(|p| p.0), most(|p| p.1));
    let place = |&(x, y): &(f64, f64)| (left + x / most_x * width, bottom - y / most_y * height);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 300\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"560\" height=\"300\" fill=\"white\"/>\n",
    );
    writeln!(svg, "<path d=\"M60 20V250H530\" fill=\"none\" stroke=\"#555\"/>")?;
    let line: Vec<String> =
        points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let line = line.join(" ");
    writeln!(
        svg,
        "<polyline points=\"{line}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>"
    )?;
    for point in points {
        let (x, y) = place(point);
        writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#06c\"/>")?;
        writeln!(svg, "<text x=\"{x:.1}\" y=\"266\" text-anchor=\"middle\">{}</text>", point.0)?;
        let up = y - 8.0;
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{up:.1}\" text-anchor=\"middle\">{:.2}</text>",
            point.1
        )?;
    }
    writeln!(svg, "<text x=\"295\" y=\"288\" text-anchor=\"middle\">{x_is}</text>")?;
    writeln!(svg, "<text x=\"64\" y=\"14\">{y_is}</text>\n</svg>")?;
    std::fs::write(file, svg)?;
    Ok(())
}
