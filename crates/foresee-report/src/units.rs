//! The tests of a program, where a trace marks them: which of them show a finding.

use foresee_predict::session::Examined;
use foresee_trace::{Batch, EventSource, Finding, Op, ReadError, TraceInput, Value};

/// The event with which a test begins; its argument is the test's name.
pub const TEST_BEGIN: &str = "test-begin";

/// The event with which a test ends.
pub const TEST_END: &str = "test-end";

/// The tests of a program, and when they ran.
#[derive(Clone, Debug, Default)]
pub struct Tests(Vec<Test>);

/// One test, from its first event to its last.
#[derive(Clone, Debug)]
struct Test {
    name: String,
    /// The thread that runs it.
    thread: String,
    begin: u64,
    end: u64,
}

impl Tests {
    /// The tests that a trace marks, if there are findings that they may show.
    pub fn marked_in(trace: &dyn TraceInput, examined: &Examined) -> Result<Tests, ReadError> {
        match &examined.trace {
            _ if examined.report.findings.is_empty() => Ok(Tests::default()),
            Some(loaded) => Tests::read(&mut loaded.source(), u64::MAX),
            None => Tests::read(&mut *trace.open()?, examined.report.trace.events),
        }
    }

    /// Reads which tests ran during this many events, the first ones.
    fn read(source: &mut dyn EventSource, events: u64) -> Result<Tests, ReadError> {
        let mut tests: Vec<Test> = Vec::new();
        let mut batch = Batch::default();
        let mut index = 0;
        while index < events && source.next_batch(&mut batch)? {
            let names = source.names();
            for (event, at) in batch.events.iter().zip(index..) {
                if event.op() != Op::Event {
                    continue;
                }
                let word = event.sym().map(|sym| names.syms.get(sym));
                let Some(Value::Str(name)) = batch.pool.values(event).first().copied() else {
                    continue;
                };
                let (name, thread) = (names.syms.get(name), names.threads.get(event.thread()));
                let is_it = |test: &&mut Test| test.name == name && test.end == u64::MAX;
                match word {
                    Some(TEST_BEGIN) => tests.push(Test {
                        name: name.to_owned(),
                        thread: thread.to_owned(),
                        begin: at,
                        end: u64::MAX,
                    }),
                    Some(TEST_END) => {
                        if let Some(test) = tests.iter_mut().rev().find(is_it) {
                            test.end = at;
                        }
                    }
                    _ => {}
                }
            }
            index += batch.events.len() as u64;
        }
        Ok(Tests(tests))
    }

    /// The tests during which the events of a finding happened.
    pub(crate) fn of(&self, finding: &Finding) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        if self.0.is_empty() {
            return found;
        }
        let sites = finding.sites.iter().filter_map(|site| {
            Some((site.event?, site.thread.as_ref().map(|thread| thread.name.as_str())))
        });
        let mut events: Vec<(u64, Option<&str>)> = sites.collect();
        if events.is_empty() {
            let witness = finding.witness.iter();
            let last = witness.filter_map(|w| w.run().nth(w.violated_at));
            events.extend(finding.event.into_iter().chain(last).map(|event| (event, None)));
        }
        for (event, thread) in events {
            let under_way =
                || self.0.iter().filter(|test| (test.begin..=test.end).contains(&event));
            // A thread that runs a test itself has nothing to do with tests that run beside it. Other threads may work for any.
            let is_own = |test: &&Test| Some(test.thread.as_str()) == thread;
            let has_own = under_way().any(|test| is_own(&test));
            for test in under_way().filter(|test| !has_own || is_own(test)) {
                if !found.contains(&test.name) {
                    found.push(test.name.clone());
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use foresee_trace::{FindingKind, Verdict};

    use super::*;

    fn finding(event: u64) -> Finding {
        Finding {
            fingerprint: None,
            kind: FindingKind::Observed,
            analysis: "race",
            property: "race".to_owned(),
            verdict: Verdict::ConcurrentAccess,
            message: String::new(),
            event: Some(event),
            witness: None,
            sites: Vec::new(),
            about: Vec::new(),
            details: Vec::new(),
            shown_by: None,
            schedule: None,
            confirmation: None,
        }
    }

    #[test]
    fn an_event_belongs_to_the_tests_under_way() {
        let test = |name: &str, begin, end| Test {
            name: name.to_owned(),
            thread: name.to_owned(),
            begin,
            end,
        };
        let tests = Tests(vec![test("a", 1, 5), test("b", 6, 9), test("c", 8, u64::MAX)]);
        assert_eq!(tests.of(&finding(3)), ["a"]);
        assert_eq!(tests.of(&finding(8)), ["b", "c"]);
        assert!(tests.of(&finding(0)).is_empty());
    }
}
