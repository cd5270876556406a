//! The index: what it costs to make one, and how fast it answers.
//!
//! Making is set against a pass that reads the trace and computes its clocks, which any predictor
//! needs for each new pattern; asking against the same pass.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fastrand::Rng;
use foresee_causality::{Clocks, Order};
use foresee_index::{About, Answer, Builder, Identity, Index, Question};
use foresee_spec::{parse, resolve};
use foresee_trace::generate::{Config, Generator};
use foresee_trace::{Batch, EventSink, EventSource, Mode, Op, Validated};

/// How many patterns of each kind are asked.
const PATTERNS: usize = 200;
/// How many patterns stand in the file of many.
const MANY: usize = 10_000;

pub(crate) fn run(threads: &[u32], events: u64) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("foresee-benches").tempdir()?;
    println!(
        "\n| threads | events | clocks alone | indexing | ratio | bytes an event | events | knowledge | places |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut indexes = Vec::new();
    for &threads in threads {
        let trace = folder.path().join(format!("{threads}.trace"));
        let labels = make(&trace, threads, events)?;
        let pass = (0..2).map(|_| clocks_alone(&trace)).collect::<Result<Vec<_>, _>>()?;
        let pass = pass.into_iter().min().context("a round")?;
        let path = folder.path().join(format!("{threads}.fsi"));
        let begun = Instant::now();
        build(&trace, &path, folder.path())?;
        let took = begun.elapsed();
        let mut index = Index::open(&path)?;
        let (census, each) = (index.census()?, |bytes: u64| bytes as f64 / events as f64);
        println!(
            "| {threads} | {} M | {:.2} s | {:.2} s | {:.2} | {:.1} | {:.1} | {:.1} | {:.1} |",
            events / 1_000_000,
            pass.as_secs_f64(),
            took.as_secs_f64(),
            took.as_secs_f64() / pass.as_secs_f64(),
            each(index.bytes()?),
            each(census.events.bytes),
            each(census.knowledge.bytes),
            each(census.places.bytes),
        );
        indexes.push((threads, path, labels, pass));
    }
    println!(
        "\n| threads | positions | answer | patterns | first time | slowest | again | a pass takes |"
    );
    println!("|--:|--:|---|--:|--:|--:|--:|--:|");
    for (threads, path, labels, pass) in &indexes {
        for d in [3, 5, 8] {
            for answer in ["never", "predicted", "observed"] {
                ask(*threads, path, labels, d, answer, *pass)?;
            }
        }
    }
    println!("\n| threads | patterns from a file | opening | parsing, names | asking | each |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for (threads, path, labels, _) in &indexes {
        many(*threads, path, labels)?;
    }
    Ok(())
}

/// Writes a trace, and gives some of its labels: those of random events, and of forks.
struct Labels {
    common: Vec<String>,
    forked: Vec<String>,
}

fn make(path: &Path, threads: u32, events: u64) -> anyhow::Result<Labels> {
    let mut source = Generator::new(Config::bench(threads, events, 1))?;
    let format = foresee_formats::by_name("native")?;
    let mut sink = foresee_formats::create(path, format)?;
    let (mut batch, mut rng) = (Batch::default(), Rng::with_seed(1));
    let mut labels = Labels { common: Vec::new(), forked: Vec::new() };
    while source.next_batch(&mut batch)? {
        sink.write_batch(&batch, source.names())?;
        let names = source.names();
        for event in &batch.events {
            let thread = names.threads.get(event.thread());
            match event.op() {
                Op::Fork => labels.forked.push(names.threads.get(event.other()).to_owned()),
                Op::Read if rng.u16(..2000) == 0 => {
                    labels.common.push(format!("read({})@{thread}", names.vars.get(event.var())));
                }
                Op::Write if rng.u16(..2000) == 0 => {
                    labels.common.push(format!("write({})@{thread}", names.vars.get(event.var())));
                }
                _ => {}
            }
        }
    }
    sink.finish(source.names(), source.remarks())?;
    Ok(labels)
}

fn open(trace: &Path) -> anyhow::Result<Validated<Box<dyn EventSource>>> {
    Ok(Validated::new(foresee_formats::open(trace, None)?.source, Mode::Reject))
}

fn clocks_alone(trace: &Path) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let (mut source, mut batch) = (open(trace)?, Batch::default());
    let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
    while source.next_batch(&mut batch)? {
        for event in &batch.events {
            clocks.event(event)?;
            clocks.forget_old(&[]);
        }
    }
    Ok(begun.elapsed())
}

fn build(trace: &Path, path: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut source = open(trace)?;
    let mut builder = Builder::new(folder, Builder::MEMORY);
    builder.read(&mut source, &mut |_| {})?;
    let about = About {
        format: "native",
        repaired: false,
        names: source.names(),
        remarks: source.remarks(),
        identity: Identity::default(),
    };
    builder.write(std::io::BufWriter::new(File::create(path)?), &about)?;
    Ok(())
}

/// A pattern of `d` positions that is likely to get this answer.
fn pattern(rng: &mut Rng, labels: &Labels, d: usize, answer: &str) -> anyhow::Result<String> {
    let mut common = |n: usize| -> Vec<&str> {
        (0..n).filter_map(|_| rng.choice(&labels.common)).map(|l| l.as_str()).collect()
    };
    let rest = common(if answer == "observed" { d } else { d - 2 }).join(" .. ");
    let fork = |rng: &mut Rng| rng.choice(&labels.forked).context("no thread is forked");
    Ok(match answer {
        "never" => {
            // The greedy search looks at all positions before it finds out.
            let thread = fork(rng)?;
            format!("join({thread}) .. fork({thread}) .. {rest}")
        }
        "predicted" => format!("fork({}) .. fork({}) .. {rest}", fork(rng)?, fork(rng)?),
        _ => rest,
    })
}

fn question(index: &Index, text: &str) -> anyhow::Result<Question> {
    let parsed = parse(&format!("pattern p: {text}"));
    ensure!(!parsed.has_errors(), "{text}");
    let resolved = resolve(&parsed.spec, index.names()).resolved;
    let made = Question::new(&parsed.spec.properties[0], &resolved, index.names());
    Ok(made.map_err(|e| anyhow::anyhow!("{text}: {}", e.message))??)
}

fn ask(
    threads: u32,
    path: &Path,
    labels: &Labels,
    d: usize,
    answer: &str,
    pass: Duration,
) -> anyhow::Result<()> {
    let mut rng = Rng::with_seed(d as u64);
    let (mut first, mut again) = (Vec::new(), Vec::new());
    let mut scout = Index::open(path)?;
    let mut index = Index::open(path)?;
    for _ in 0..20 * PATTERNS {
        let question = question(&scout, &pattern(&mut rng, labels, d, answer)?)?;
        let said = match scout.answer(&question)?? {
            Answer::Observed(_) => "observed",
            Answer::Predicted(_) => "predicted",
            Answer::Never => "never",
            _ => continue,
        };
        if said != answer {
            continue;
        }
        // An index that keeps no page yet; the operating system has the file in memory.
        index.forget();
        let begun = Instant::now();
        index.answer(&question)??;
        first.push(begun.elapsed());
        let begun = Instant::now();
        index.answer(&question)??;
        again.push(begun.elapsed());
        if first.len() == PATTERNS {
            break;
        }
    }
    let found = first.len();
    first.sort_unstable();
    again.sort_unstable();
    let micros = |d: Option<&Duration>| {
        d.map_or("–".to_owned(), |d| format!("{:.1} µs", d.as_secs_f64() * 1e6))
    };
    println!(
        "| {threads} | {d} | {answer} | {found} | {} | {} | {} | {:.2} s |",
        micros(first.get(found / 2)),
        micros(first.last()),
        micros(again.get(found / 2)),
        pass.as_secs_f64(),
    );
    Ok(())
}

fn many(threads: u32, path: &Path, labels: &Labels) -> anyhow::Result<()> {
    let mut rng = Rng::with_seed(7);
    let mut text = String::new();
    for i in 0..MANY {
        let (d, answer) = (rng.usize(3..=5), ["never", "predicted", "observed"][i % 3]);
        text += &format!("pattern p{i}: {}\n", pattern(&mut rng, labels, d, answer)?);
    }
    let begun = Instant::now();
    let mut index = Index::open(path)?;
    let opened = begun.elapsed();
    let begun = Instant::now();
    let parsed = parse(&text);
    ensure!(!parsed.has_errors(), "the patterns are well written");
    let resolved = resolve(&parsed.spec, index.names()).resolved;
    let parse_took = begun.elapsed();
    let begun = Instant::now();
    for property in &parsed.spec.properties {
        let question = Question::new(property, &resolved, index.names());
        let question = question.map_err(|e| anyhow::anyhow!("{}", e.message))??;
        index.answer(&question)??;
    }
    let asked = begun.elapsed();
    println!(
        "| {threads} | {MANY} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} µs |",
        opened.as_secs_f64() * 1e3,
        parse_took.as_secs_f64() * 1e3,
        asked.as_secs_f64() * 1e3,
        asked.as_secs_f64() * 1e6 / MANY as f64,
    );
    Ok(())
}
