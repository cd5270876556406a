//! `foresee index`: writes the index of a trace, by default beside the trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use foresee_index::{About, Builder, IdentityReader, Index};
use foresee_support::count::count;
use foresee_support::output::{OutputFile, folder};
use foresee_trace::{EventSource, FileOrder, Mode, Validated};

use crate::args::IndexArgs;
use crate::{input, output, progress};

/// The default path of a trace's index.
pub(crate) fn beside(trace: &Path) -> PathBuf {
    let mut path: OsString = trace.into();
    path.push(".fsi");
    path.into()
}

pub(crate) fn run(args: &IndexArgs) -> anyhow::Result<u8> {
    let (trace, name) = (&args.input.trace, input::name(&args.input));
    if trace == Path::new("-") {
        bail!("standard input cannot be indexed: write the trace to a file first");
    }
    let path = args.output.clone().unwrap_or_else(|| beside(trace));
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    ensure!(!same(&path, trace), "{}: the index would overwrite its trace", path.display());
    let place = path.display().to_string();
    // Temporary files are about as large as the index, so they go beside it, where there is probably room; but not beside
    // a device or a FIFO.
    let is_file = |path: &Path| path.metadata().map_or(true, |it| it.is_file());
    let temporary = std::env::temp_dir();
    let folder = if is_file(&path) { folder(&path) } else { &temporary };
    let format = args.input.input_format.as_deref().map(foresee_formats::by_name).transpose()?;
    let mut file = IdentityReader::open(trace).with_context(|| format!("cannot open {name}"))?;
    let foresee_formats::Opened { format, source, .. } =
        foresee_formats::open_reader(Box::new(&mut file), format).with_context(|| name.clone())?;
    let mode = if args.input.repair { Mode::Repair } else { Mode::Reject };
    let source = input::within_memory(source, args.memory.max_memory);
    let mut source = Validated::new(source, mode);
    let mut builder = Builder::new(folder, Builder::MEMORY);
    let bar = progress::events("indexing");
    builder.read(&mut source, &mut |n| bar.set_position(n)).with_context(|| name.clone())?;
    bar.finish_and_clear();
    let (names, remarks) = (source.names().clone(), source.remarks().clone());
    // An index covers every variable, but a filtered trace has all accesses of only a few.
    ensure!(
        remarks.order != FileOrder::Filtered,
        "{name}: the capture left out accesses, so patterns could be missed: capture with --all \
         to build an index"
    );
    drop(source);
    let about = About {
        format: format.name(),
        repaired: args.input.repair,
        names: &names,
        remarks: &remarks,
        identity: file.identity().with_context(|| name.clone())?,
    };
    let out = OutputFile::create(&path).and_then(|out| builder.write(out, &about));
    out.and_then(OutputFile::finish).with_context(|| format!("cannot write {place}"))?;
    for warning in &remarks.warnings {
        output::note(warning);
    }
    // A pipe cannot be read back.
    if is_file(&path) {
        describe(&path, &place)?;
    }
    let missing =
        [("was cut short", &remarks.cut_short), ("does not hold everything", &remarks.partial)];
    for (how, why) in missing {
        if let Some(why) = why {
            output::note(&format!("the trace {how}: {why}; the index covers what there is"));
        }
    }
    Ok(if remarks.cut_short.is_some() || remarks.partial.is_some() { 3 } else { 0 })
}

/// Prints a summary of the index, read back from the file.
fn describe(path: &Path, place: &str) -> anyhow::Result<()> {
    let index = Index::open(path).with_context(|| place.to_owned())?;
    let (events, bytes) = (index.events(), index.bytes()?);
    let each = bytes as f64 / events.max(1) as f64;
    output::print(&format!(
        "{place}: {} of {} in {bytes} bytes, {each:.1} per event\n",
        count(events, "event"),
        count(index.names().threads.len(), "thread")
    ))
}
