//! The drawings of `docs/analyses/locks.md` are what foresee draws of the programs they show.
//!
//! `TRYCMD=overwrite cargo test -p foresee-cli --test main drawings` draws them again.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::path::Path;

use foresee_causality::Order;
use foresee_predict::reorder::{Sliced, SlicedLimits};
use foresee_predict::{Analysis, Confirmer, Kept};
use foresee_report::Diagram;
use foresee_spec::property::Compiled;
use foresee_testkit::corpus::{Case, cases};

/// The observed run of a program, and the reordering that violates its property.
fn drawings(case: &Case) -> [(&'static str, String); 2] {
    let trace = &case.trace;
    let text = case.expect("reorderings").unwrap()[0]["spec"].as_str().unwrap();
    let spec = foresee_spec::parse(text).spec;
    let resolved = foresee_spec::resolve(&spec, &trace.names).resolved;
    let limits = SlicedLimits::default();
    let properties = Compiled::all(&spec).unwrap();
    let sliced = Sliced::new(&spec, properties, &resolved, &trace.names, limits);
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(sliced)];
    let mut findings = Vec::new();
    let run = foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {})
        .unwrap();
    let kept = Kept::new(trace);
    let confirmer = Confirmer::new(&spec, &resolved, &kept);
    let finding = confirmer.confirm_reordered(&run.candidates[0].reordered[0]).unwrap();
    let all = 0..trace.events.len() as u64;
    let observed = Diagram::of(&mut trace.source(), all, Order::Mazurkiewicz).unwrap();
    let witness = Diagram::of_witness(trace, &finding.witness.unwrap(), usize::MAX);
    [("observed", observed.to_svg()), ("predicted", witness.to_svg())]
}

#[test]
fn drawings_show_what_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analyses/locks");
    let overwrite = std::env::var("TRYCMD").is_ok_and(|word| word == "overwrite");
    for name in ["B1", "B2", "B5", "B10"] {
        let case = cases().into_iter().find(|case| case.name == format!("locks-{name}")).unwrap();
        for (what, svg) in drawings(&case) {
            let path = folder.join(format!("{}-{what}.svg", name.to_lowercase()));
            if overwrite {
                std::fs::write(&path, &svg).unwrap();
            }
            let drawn = std::fs::read_to_string(&path).unwrap();
            assert!(drawn == svg, "{} is out of date", path.display());
        }
    }
}
