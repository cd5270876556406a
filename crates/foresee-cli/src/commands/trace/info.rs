//! `foresee trace info`: summarises a trace.

use std::fmt::Write as _;

use anyhow::Context;
use foresee_trace::{Census, EventSource, FileOrder, Lifetime, Name, Names, Remarks};
use serde_json::{Value as Json, json};

use super::{cut_short, for_each_batch};
use crate::args::{InputArgs, MemoryArgs, OutputArgs, SummaryFormat};
use crate::output::Sink;
use crate::{input, output};

pub(crate) fn run(
    (args, memory): (&InputArgs, &MemoryArgs),
    format: SummaryFormat,
    top: usize,
    output: &OutputArgs,
) -> anyhow::Result<u8> {
    let mut to = Sink::new(output)?;
    let mut source = input::open(args, memory)?;
    let mut census = Census::default();
    for_each_batch(&mut source, "counting", |batch, _| {
        census.batch(batch);
        Ok(())
    })
    .with_context(|| input::name(args))?;
    let info = Info { census: &census, names: source.names(), remarks: source.remarks(), top };
    match format {
        SummaryFormat::Json => {
            let object = info.json(&input::name(args));
            to.print(&foresee_report::json::visible(&format!("{object}\n")))?;
        }
        SummaryFormat::Text => {
            to.print(&info.text(&input::name(args))?)?;
            for warning in &source.remarks().warnings {
                output::note(warning);
            }
        }
    }
    to.finish()?;
    Ok(cut_short(source.remarks()))
}

struct Info<'a> {
    census: &'a Census,
    names: &'a Names,
    remarks: &'a Remarks,
    top: usize,
}

impl Info<'_> {
    fn text(&self, name: &str) -> Result<String, std::fmt::Error> {
        let Info { census, names, top, .. } = *self;
        let mut out = String::new();
        if census.events == 0 {
            writeln!(out, "{name}: the trace is empty")?;
            return Ok(out);
        }
        writeln!(out, "{name}")?;
        let order = match self.remarks.order {
            FileOrder::Observed => "in observed order",
            FileOrder::Filtered => "in observed order, without those that causality does not need",
            FileOrder::Notes => "in the order of their notes only",
        };
        writeln!(out, "  events      {} ({order})", census.events)?;
        writeln!(out, "  threads     {}", census.threads().count())?;
        writeln!(out, "  variables   {}", census.var_count())?;
        writeln!(out, "  locks       {}", census.lock_count())?;
        writeln!(out, "  values      {}", share(census.with_value, census.accesses, "accesses"))?;
        writeln!(out, "  locations   {}", share(census.with_location, census.events, "events"))?;
        writeln!(out, "\nevents by kind")?;
        for (word, n) in self.kinds() {
            writeln!(out, "  {word:<14} {n:>12}")?;
        }
        writeln!(out, "\nthreads                    events        first         last  life")?;
        let mut threads: Vec<_> = census.threads().collect();
        threads.sort_by_key(|(t, life)| (std::cmp::Reverse(life.events), *t));
        for (t, life) in threads.iter().take(top) {
            let name = Name(names.threads.get(*t)).to_string();
            let at = |index: Option<u64>| index.map_or("-".to_owned(), |i| i.to_string());
            let (first, last) = (at(life.first), at(life.last));
            let (events, life) = (life.events, lifetime(life));
            writeln!(out, "  {name:<18} {events:>12} {first:>12} {last:>12}  {life}")?;
        }
        more(&mut out, threads.len(), top)?;
        self.hottest(&mut out, "variables by accesses", self.vars(), census.var_count())?;
        self.hottest(&mut out, "locks by acquires", self.locks(), census.lock_count())?;
        Ok(out)
    }

    fn hottest(
        &self,
        out: &mut String,
        title: &str,
        hottest: Vec<(&str, u64)>,
        all: usize,
    ) -> std::fmt::Result {
        if hottest.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{title}")?;
        for (name, n) in hottest {
            writeln!(out, "  {:<18} {n:>12}", Name(name).to_string())?;
        }
        more(out, all, self.top)
    }

    /// Events by word. Nested lock operations share the word of the outermost ones.
    fn kinds(&self) -> Vec<(&'static str, u64)> {
        let mut kinds: Vec<(&'static str, u64)> = Vec::new();
        for (op, n) in self.census.ops() {
            match kinds.iter_mut().find(|(word, _)| *word == op.word()) {
                Some(kind) => kind.1 += n,
                None => kinds.push((op.word(), n)),
            }
        }
        kinds
    }

    fn vars(&self) -> Vec<(&str, u64)> {
        let hottest = self.census.hottest_vars(self.top).into_iter();
        hottest.map(|(v, n)| (self.names.vars.get(v), n)).collect()
    }

    fn locks(&self) -> Vec<(&str, u64)> {
        let hottest = self.census.hottest_locks(self.top).into_iter();
        hottest.map(|(l, n)| (self.names.locks.get(l), n)).collect()
    }

    fn json(&self, name: &str) -> Json {
        let Info { census, names, remarks, .. } = *self;
        let counted = |list: Vec<(&str, u64)>| -> Vec<Json> {
            list.into_iter().map(|(name, n)| json!({ "name": name, "count": n })).collect()
        };
        let threads: Vec<Json> = census
            .threads()
            .map(|(t, life)| {
                json!({
                    "name": names.threads.get(t), "events": life.events, "first": life.first,
                    "last": life.last, "fork": life.fork, "join": life.join,
                })
            })
            .collect();
        let kinds: serde_json::Map<String, Json> =
            self.kinds().into_iter().map(|(word, n)| (word.to_owned(), n.into())).collect();
        json!({
            "foresee": env!("CARGO_PKG_VERSION"),
            "trace": {
                "name": name, "events": census.events, "threads": census.threads().count(),
                "variables": census.var_count(), "locks": census.lock_count(),
                "order": remarks.order.word(),
                "cut_short": remarks.cut_short, "warnings": remarks.warnings,
            },
            "values": { "accesses": census.accesses, "with_value": census.with_value },
            "with_location": census.with_location,
            "kinds": kinds, "threads": threads,
            "hottest_variables": counted(self.vars()), "hottest_locks": counted(self.locks()),
        })
    }
}

fn more(out: &mut String, all: usize, shown: usize) -> std::fmt::Result {
    if all > shown { writeln!(out, "  ... and {} more", all - shown) } else { Ok(()) }
}

fn share(some: u64, all: u64, of: &str) -> String {
    match (some, all) {
        (0, _) => "none captured".to_owned(),
        _ if some == all => format!("on all {of}"),
        _ => format!("on {:.1} % of {of}", 100.0 * some as f64 / all as f64),
    }
}

fn lifetime(life: &Lifetime) -> String {
    let start = life.fork.map_or("running from the start".to_owned(), |f| format!("forked at {f}"));
    let end = life.join.map_or(String::new(), |j| format!(", joined at {j}"));
    start + &end
}
