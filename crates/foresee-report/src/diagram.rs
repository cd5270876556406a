//! A section of a trace, ready to be drawn.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foresee_causality::{Clocks, Epoch, Order, Stamp};
use foresee_predict::AnalysisError;
use foresee_trace::{
    Batch, EventSource, Id, Location, Name, Names, Op, Pool, StackId, Target, ThreadId, Trace,
    Witness, calls, location,
};
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use crate::text::short::{is_of_libraries, middle_cut};

/// A section of a trace: a row for each event, a column for each thread that has one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Diagram {
    /// The headings of the columns.
    pub threads: Vec<String>,
    /// The events.
    pub rows: Vec<Row>,
    /// Which event caused which, without those that follow from others.
    pub arrows: Vec<Arrow>,
    /// The number of events in the trace, as far as it was read.
    pub events: u64,
    /// Of a witness: events that rows overtake and that have not happened at its end, with their
    /// threads.
    pub later: Vec<(String, Row)>,
}

/// One event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its index in the trace.
    pub index: u64,
    /// Its thread's column.
    pub column: usize,
    /// What was done.
    pub op: Op,
    /// To what.
    pub target: Option<Target>,
    /// Both, and the values where they are known.
    pub text: String,
    /// Where in the source.
    pub location: Option<Location>,
    /// The innermost call in the program that led there, if that is in a library.
    #[serde(default)]
    pub caller: Option<Location>,
    /// Where in the source, as text, or empty.
    pub loc: String,
    /// Whether an event before the section caused it directly.
    pub caused_earlier: bool,
    /// The first event observed before it that has not happened yet, in a reordering.
    pub overtakes: Option<u64>,
    /// Whether it has not happened yet, but is what its thread is about to do.
    pub is_next: bool,
}

/// A direct cause, between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrow {
    /// The row of the cause.
    pub from: usize,
    /// The row of the effect.
    pub to: usize,
}

impl Diagram {
    /// Reads the trace up to the end of `range` and keeps that section.
    pub fn of(
        source: &mut dyn EventSource,
        range: Range<u64>,
        order: Order,
    ) -> Result<Diagram, AnalysisError> {
        let mut clocks: Clocks = Clocks::new(order);
        let mut diagram = Diagram::default();
        let mut kept = Kept::default();
        let mut batch = Batch::default();
        let mut next = 0;
        while next < range.end && source.next_batch(&mut batch)? {
            for event in &batch.events {
                let index = next;
                next += 1;
                let stamp = clocks.event(event)?;
                if !range.contains(&index) {
                    continue;
                }
                let row = diagram.rows.len();
                let column = kept.column(event.thread());
                let names = source.names();
                let (causes, caused_earlier) = kept.causes(&clocks);
                let location = location(event.loc(), names);
                diagram.arrows.extend(causes.into_iter().map(|from| Arrow { from, to: row }));
                diagram.rows.push(Row {
                    index,
                    column,
                    op: event.op(),
                    target: Target::of(event, names),
                    text: event.describe(names, &batch.pool).to_string(),
                    loc: location_text(location.as_ref()),
                    location,
                    caller: None,
                    caused_earlier,
                    overtakes: None,
                    is_next: false,
                });
                kept.rows.insert(stamp.epoch(), row);
                kept.stamps.push(stamp);
            }
            clocks.forget_old(&kept.stamps);
        }
        diagram.events = next;
        diagram.threads = kept.thread_names(source.names());
        Ok(diagram)
    }
}

impl Diagram {
    /// A witness, from the first event on that is not where it was observed, or the last `most`
    /// events of it, and then what its threads are about to do. Unknown values are not shown.
    pub fn of_witness(trace: &Trace, witness: &Witness, most: usize) -> Diagram {
        let length = witness.observed as usize + witness.order.len();
        let is_same = |&(i, &index): &(usize, &u64)| witness.observed + i as u64 == index;
        let same = witness.order.iter().enumerate().take_while(is_same).count();
        // Some events of the common prefix show where the orders diverge.
        let parting = (witness.observed as usize + same).saturating_sub(3);
        let start = parting.max(length.saturating_sub(most));
        let mut kept = Kept::default();
        let mut rows = Vec::new();
        // By position after the observed prefix.
        let last = witness.order.iter().max().map_or(0, |last| last + 1);
        let mut happened = vec![false; last.saturating_sub(witness.observed) as usize];
        let mut missing = witness.observed;
        // An initial value precedes everything, listed or not.
        let is_initial = |index: u64| trace.events[index as usize].op() == Op::Init;
        let from = start.min(witness.observed as usize);
        for (i, index) in witness.run().enumerate().skip(from) {
            if index >= witness.observed {
                happened[(index - witness.observed) as usize] = true;
                let is_past = |&missing: &u64| {
                    let happened = happened.get((missing - witness.observed) as usize);
                    happened.is_some_and(|&happened| happened || is_initial(missing))
                };
                missing += (missing..).take_while(is_past).count() as u64;
            }
            if i < start {
                continue;
            }
            let mut event = trace.events[index as usize];
            let is_unknown = witness.changed_reads.contains(&index);
            if is_unknown {
                event = event.with_values(&[], &mut Pool::default());
            }
            let text = event.describe(&trace.names, &trace.pool);
            rows.push(Row {
                column: kept.column(event.thread()),
                text: if is_unknown { format!("{text}=?") } else { text.to_string() },
                overtakes: Some(missing).filter(|&missing| missing < index),
                ..Row::of(trace, index)
            });
        }
        for &index in &witness.next {
            let event = trace.events[index as usize];
            // It is unknown what it reads, or whether it gets its lock.
            let event = if event.op().reads() {
                event.with_values(&[], &mut Pool::default())
            } else {
                event
            };
            rows.push(Row {
                column: kept.column(event.thread()),
                text: event.describe(&trace.names, &trace.pool).to_string(),
                is_next: true,
                ..Row::of(trace, index)
            });
        }
        let threads = kept.thread_names(&trace.names);
        let events = (length + witness.next.len()) as u64;
        let later = later(trace, witness, &rows);
        Diagram { threads, rows, arrows: Vec::new(), events, later }
    }
}

/// How wide names and steps may be in a picture.
const LONGEST: usize = 60;

impl Diagram {
    /// The same with names, steps and places that are too long for a picture cut in their middle.
    pub(crate) fn cut(&self) -> Diagram {
        let mut cut = self.clone();
        let all = cut.rows.iter_mut().flat_map(|row| [&mut row.text, &mut row.loc]);
        for text in all.chain(&mut cut.threads) {
            if text.width() > LONGEST {
                *text = middle_cut(text, LONGEST);
            }
        }
        cut
    }
}

/// The most events that are listed although they have not happened.
const LATER: usize = 5;

/// The events that rows overtake and that have not happened at the end of a witness.
fn later(trace: &Trace, witness: &Witness, rows: &[Row]) -> Vec<(String, Row)> {
    let mut overtaken: Vec<u64> = rows.iter().filter_map(|row| row.overtakes).collect();
    overtaken.sort_unstable();
    overtaken.dedup();
    let happens: HashSet<u64> = witness.order.iter().chain(&witness.next).copied().collect();
    let open = overtaken.into_iter().filter(|index| !happens.contains(index));
    open.take(LATER)
        .map(|index| {
            let event = &trace.events[index as usize];
            let text = event.describe(&trace.names, &trace.pool).to_string();
            let thread = shown(trace.names.threads.get(event.thread()));
            (thread, Row { text, ..Row::of(trace, index) })
        })
        .collect()
}

impl Row {
    fn of(trace: &Trace, index: u64) -> Row {
        let event = &trace.events[index as usize];
        let location = location(event.loc(), &trace.names);
        let stack = || trace.stacks.get(index as usize).copied().unwrap_or(StackId::NONE);
        Row {
            index,
            column: 0,
            op: event.op(),
            target: Target::of(event, &trace.names),
            text: String::new(),
            loc: location_text(location.as_ref()),
            caller: caller(location.as_ref(), || calls(stack(), &trace.names)),
            location,
            caused_earlier: false,
            overtakes: None,
            is_next: false,
        }
    }
}

/// The innermost of the calls that led to a place in a library that is in the program.
pub(crate) fn caller(
    place: Option<&Location>,
    calls: impl FnOnce() -> Vec<Location>,
) -> Option<Location> {
    place.filter(|place| is_of_libraries(place))?;
    calls().into_iter().find(|call| !is_of_libraries(call))
}

/// State kept while the rows are built.
#[derive(Default)]
struct Kept {
    columns: Vec<Option<usize>>,
    threads: Vec<ThreadId>,
    rows: HashMap<Epoch, usize>,
    stamps: Vec<Stamp>,
}

impl Kept {
    fn column(&mut self, t: ThreadId) -> usize {
        if t.index() >= self.columns.len() {
            self.columns.resize(t.index() + 1, None);
        }
        *self.columns[t.index()].get_or_insert_with(|| {
            self.threads.push(t);
            self.threads.len() - 1
        })
    }

    /// The rows of the latest event's causes, less those that are causes of others; and whether
    /// there is one that has no row.
    fn causes(&self, clocks: &Clocks) -> (Vec<usize>, bool) {
        let causes = clocks.causes();
        let mut rows: Vec<usize> =
            causes.iter().filter_map(|c| self.rows.get(c).copied()).collect();
        let earlier = rows.len() < causes.len();
        let all = rows.clone();
        rows.retain(|&row| {
            let epoch = self.stamps[row].epoch();
            all.iter().all(|&other| other == row || !clocks.knows(&self.stamps[other], epoch))
        });
        (rows, earlier)
    }

    fn thread_names(&self, names: &Names) -> Vec<String> {
        self.threads.iter().map(|&t| shown(names.threads.get(t))).collect()
    }
}

/// A place as text; empty if it is unknown.
fn location_text(location: Option<&Location>) -> String {
    location.map_or_else(String::new, |location| Name(&location.to_string()).to_string())
}

/// A name from a trace, made safe to show; empty for an empty one.
fn shown(name: &str) -> String {
    if name.is_empty() { String::new() } else { Name(name).to_string() }
}

#[cfg(test)]
mod tests {
    use foresee_trace::{Event, Space, Value};

    use super::*;

    #[test]
    fn initial_values_that_are_not_listed_are_not_overtaken() {
        let mut trace = Trace::default();
        let x = trace.names.vars.intern("x").expect("there are few names");
        for (thread, op) in [("T1", Op::Init), ("T1", Op::Write), ("T2", Op::Write)] {
            let thread = trace.names.thread(thread).expect("there are few names");
            let event = Event::new(thread, op).with_target(x.0);
            let event = event.with_values(&[Value::Int(0)], &mut trace.pool);
            trace.events.push(event);
        }
        let overtaken = |order: Vec<u64>| -> Vec<Option<u64>> {
            let last = order.len() - 1;
            let witness = Witness::listed(Space::Maz, order, last);
            let diagram = Diagram::of_witness(&trace, &witness, 10);
            diagram.rows.iter().map(|row| row.overtakes).collect()
        };
        assert_eq!(overtaken(vec![1, 2]), [None, None]);
        assert_eq!(overtaken(vec![2, 1]), [Some(1), None]);
        assert_eq!(overtaken(vec![0, 2, 1]), [None, Some(1), None]);
    }
}
