//! `foresee explain`: one finding of the last report in full.

use anyhow::bail;
use foresee_support::count::count;
use foresee_trace::Visible;

use crate::args::ExplainArgs;
use crate::output::{self, Sink};
use crate::store::{Stored, StoredFinding};

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let mut to = Sink::new(&args.output)?;
    let stored = Stored::load()?;
    let text = match &args.fingerprint {
        None => list(&stored),
        Some(wanted) => {
            let one = find(&stored, wanted)?;
            match &one.text {
                Some(text) => text.clone(),
                None => bail!(
                    "{}: the last report had too many findings to keep this one in full: look for \
                     it in `--format json`, or suppress others",
                    one.fingerprint
                ),
            }
        }
    };
    to.print(&text)?;
    to.finish()?;
    Ok(0)
}

/// The finding with this fingerprint, of which the beginning is enough.
fn find<'s>(stored: &'s Stored, wanted: &str) -> anyhow::Result<&'s StoredFinding> {
    let is_it = |one: &&StoredFinding| {
        let bare = one.fingerprint.trim_start_matches("F-");
        one.fingerprint.starts_with(wanted) || bare.starts_with(wanted)
    };
    let mut found = stored.findings.iter().filter(is_it);
    let (first, name) = (found.next(), Visible(&stored.name));
    match first {
        Some(first) if found.all(|other| other.fingerprint == first.fingerprint) => Ok(first),
        Some(_) => bail!("{wanted} is the beginning of several fingerprints: give more of it"),
        None if stored.known.iter().any(|known| known.starts_with(wanted)) => {
            bail!("{wanted} is in the baseline, so it was not reported")
        }
        None if stored.findings.is_empty() => bail!("the last report, on {name}, has no findings"),
        None => bail!(
            "there is no {wanted} in the last report, which was on {name}: `foresee explain` alone \
             lists what it has"
        ),
    }
}

fn list(stored: &Stored) -> String {
    let mut text = format!("{}: {}\n", stored.name, count(stored.findings.len(), "finding"));
    for StoredFinding { fingerprint, kind, rule, message, .. } in &stored.findings {
        text += &format!("{fingerprint} {kind} {rule}: {message}\n");
    }
    output::plain(&text)
}
