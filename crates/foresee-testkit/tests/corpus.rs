//! The corpus is complete, and its expectations agree with the oracles.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use foresee_testkit::corpus::{COLUMNS, Case, cases};
use foresee_testkit::oracle::{
    Ideals, Order, Relation, count_runs, matching_events, pattern_predictable, possible_writers,
    reads_from,
};
use foresee_trace::Op;
use toml::Value;

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} should be a list"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} should be a text"))
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(text).collect()
}

fn relevant(case: &Case) -> Vec<usize> {
    let variables = case.expect("relevant").map(texts).unwrap_or_default();
    let events = &case.trace.events;
    let is_relevant = |i: &usize| {
        let variable = events[*i].target_name(&case.trace.names);
        events[*i].op().writes() && variable.is_some_and(|name| variables.contains(&name))
    };
    (0..events.len()).filter(is_relevant).collect()
}

fn order(case: &Case) -> Order {
    Order::new(&case.trace, Relation::Mazurkiewicz)
}

/// Runs `check` on all cases with the column, of which there must be some.
fn for_column(column: &str, check: impl Fn(&Case, &Value)) {
    let cases = cases();
    let with_column: Vec<_> =
        cases.iter().filter_map(|case| Some((case, case.expect(column)?))).collect();
    assert!(!with_column.is_empty());
    for (case, expected) in with_column {
        check(case, expected);
    }
}

#[test]
fn names_are_unique_and_columns_known() {
    let mut names = HashSet::new();
    for case in cases() {
        for column in case.columns() {
            let known = COLUMNS.iter().any(|(name, _)| *name == column);
            assert!(known, "case `{}` has an unknown column `{column}`", case.name);
        }
        assert!(case.columns().next().is_some(), "case `{}` expects nothing", case.name);
        assert!(names.insert(case.name.clone()), "two cases are called `{}`", case.name);
    }
}

#[test]
fn cuts_are_as_many_as_expected() {
    for_column("cuts", |case, expected| {
        let cuts = Ideals::new(&order(case), &relevant(case)).count();
        assert_eq!(Some(cuts as i64), expected.as_integer(), "{}", case.name);
    });
}

#[test]
fn runs_are_as_many_as_expected() {
    for_column("runs", |case, expected| {
        let (order, relevant) = (order(case), relevant(case));
        let runs = count_runs(&order, &relevant);
        assert_eq!(Some(runs as i64), expected.as_integer(), "{}", case.name);
        assert_eq!(Ideals::new(&order, &relevant).runs(), Some(runs), "{}", case.name);
    });
}

#[test]
fn clocks_count_relevant_events() {
    for_column("clocks", |case, expected| {
        let (order, relevant) = (order(case), relevant(case));
        let clock = |&event: &usize| {
            let mut clock = BTreeMap::new();
            for &e in relevant.iter().filter(|&&e| e == event || order.before(e, event)) {
                let thread = case.trace.names.threads.get(case.trace.events[e].thread());
                *clock.entry(thread.to_owned()).or_insert(0) += 1;
            }
            clock
        };
        let clocks: Vec<BTreeMap<String, i64>> = relevant.iter().map(clock).collect();
        let expected: Vec<BTreeMap<String, i64>> = expected.clone().try_into().unwrap();
        assert_eq!(clocks, expected, "{}", case.name);
    });
}

#[test]
fn reads_can_see_the_writes_expected() {
    for_column("breakable", |case, expected| {
        let (possible, saw) = (possible_writers(&case.trace), reads_from(&case.trace));
        let mut found = BTreeMap::new();
        for (read, mut writers) in possible.into_iter().enumerate() {
            let event = &case.trace.events[read];
            // The observed order is one of those searched.
            assert!(!event.op().reads() || writers.remove(&saw[read]), "{}", case.name);
            if !writers.is_empty() {
                let text = |w: Option<usize>| w.map_or("INIT".to_owned(), |w| w.to_string());
                found.insert(read.to_string(), writers.into_iter().map(text).collect());
            }
        }
        let writer = |value: &Value| match value {
            Value::Integer(event) => event.to_string(),
            other => text(other).to_owned(),
        };
        let expected: BTreeMap<String, BTreeSet<String>> = expected
            .as_table()
            .unwrap()
            .iter()
            .map(|(read, writers)| (read.clone(), list(writers).iter().map(writer).collect()))
            .collect();
        assert_eq!(found, expected, "{}", case.name);
    });
}

#[test]
fn patterns_are_observed_and_predictable_as_expected() {
    for_column("patterns", |case, expected| {
        for pattern in list(expected) {
            let labels = texts(&pattern["labels"]);
            let order = order(case);
            let predictable = pattern_predictable(&case.trace, &order, &labels);
            assert_eq!(Some(predictable), pattern["predictable"].as_bool(), "{}", case.name);
            // The first matching event is as good as any later one.
            let mut next = Some(0);
            for label in labels {
                let events = matching_events(&case.trace, label);
                next = next.and_then(|from| events.into_iter().find(|&e| e >= from)).map(|e| e + 1);
            }
            assert_eq!(Some(next.is_some()), pattern["observed"].as_bool(), "{}", case.name);
        }
    });
}

#[test]
fn initial_values_are_stated_before_anything_happens() {
    for case in cases() {
        let is_init = |e: &foresee_trace::Event| e.op() == Op::Init;
        assert!(case.trace.events.is_sorted_by_key(|e| !is_init(e)), "{}", case.name);
    }
}
