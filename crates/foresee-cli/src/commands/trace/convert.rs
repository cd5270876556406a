//! `foresee trace convert` and `foresee trace generate`: write traces.

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use foresee_formats::ForRapid;
use foresee_report::export::{self, EXPORTS};
use foresee_trace::generate::{Config, Generator, Written};
use foresee_trace::{EventSink, EventSource, Trace};

use super::{cut_short, for_each_batch, witness};
use crate::args::{GenerateArgs, InputArgs, MemoryArgs, ToolArg};
use crate::{input, output};

pub(crate) fn convert(
    (args, memory): (&InputArgs, &MemoryArgs),
    to: &Path,
    format: &str,
    witness: Option<(&Path, Option<&str>)>,
    reader: Option<ToolArg>,
) -> anyhow::Result<u8> {
    let mut source = input::open(args, memory)?;
    if let Some((report, finding)) = witness {
        ensure!(reader.is_none(), "--for writes a whole trace: leave out --witness");
        let trace = Trace::load(&mut source).with_context(|| input::name(args))?;
        let trace = witness::of(trace, report, finding)?;
        return convert_all(trace.source(), args, to, format);
    }
    match reader {
        None => convert_all(source, args, to, format),
        Some(ToolArg::Rapid) => {
            ensure!(format == "std", "RAPID reads only std: add --to std");
            convert_all(ForRapid::new(source), args, to, format)
        }
    }
}

fn convert_all(
    mut source: impl EventSource,
    args: &InputArgs,
    to: &Path,
    format: &str,
) -> anyhow::Result<u8> {
    write(&mut source, to, format, "converting").with_context(|| input::name(args))?;
    for warning in &source.remarks().warnings {
        output::note(warning);
    }
    Ok(cut_short(source.remarks()))
}

pub(crate) fn generate(args: &GenerateArgs) -> anyhow::Result<u8> {
    ensure!((0.0..=1.0).contains(&args.locked), "--locked must be between 0 and 1");
    ensure!(args.threads > 0 && args.variables > 0, "--threads and --variables must be at least 1");
    let config = Config {
        variables: args.variables,
        locks: args.locks,
        values: match args.values {
            0 => Written::Nothing,
            n => Written::Repeating(n),
        },
        in_sections: if args.locks == 0 { 0.0 } else { args.locked },
        ..Config::bench(args.threads, args.events, args.seed)
    };
    write(&mut Generator::new(config)?, &args.output, &args.to, "generating")?;
    Ok(0)
}

/// Writes a source to a file that appears only once it is complete.
fn write<S: EventSource>(
    source: &mut S,
    to: &Path,
    format: &str,
    what: &'static str,
) -> anyhow::Result<()> {
    let writing = || format!("cannot write {}", to.display());
    let mut sink = match export::by_name(format) {
        Some(export) => foresee_formats::create_with(to, |output| export.write(output)),
        None => {
            let exports: Vec<&str> = EXPORTS.iter().map(|export| export.name()).collect();
            let format = foresee_formats::by_name(format).map_err(|unknown| {
                anyhow!("{unknown}; {} are for other viewers", exports.join(" and "))
            })?;
            foresee_formats::create(to, format)
        }
    }
    .with_context(writing)?;
    let mut begun = false;
    for_each_batch(source, what, |batch, source| {
        if !std::mem::replace(&mut begun, true) {
            sink.begin(source.remarks()).with_context(writing)?;
        }
        sink.write_batch(batch, source.names()).with_context(writing)
    })?;
    sink.finish(source.names(), source.remarks()).with_context(writing)
}
