//! Generated C programs are explored as an interpreter of the same programs says.

use crate::generated::{Batch, Compared, compare, small};
use crate::native::Workshop;

#[test]
fn generated_programs_do_what_their_interpreter_says() {
    const COUNT: usize = 50;
    let programs = small(0.., COUNT);
    let codes: Vec<_> = programs.iter().map(|one| one.1.clone()).collect();
    let batch = Batch::new(&codes);
    let workshop = Workshop::new();
    let source = workshop.path("batch.c");
    std::fs::write(&source, &batch.text).unwrap();
    // `pthread_exit` would load the library that unwinds stacks, at an address that depends on the schedule.
    let flags = ["-g", "-w", "-Wl,--no-as-needed,-lgcc_s"];
    let executable = workshop.build(["gcc", "g++"], &source, &flags);
    let mut all = Compared::default();
    for (number, (seed, code, truth)) in programs.iter().enumerate() {
        let one = compare(&executable, number, &batch, truth)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}\n{code:?}"));
        all.covered += one.covered;
        all.runs += one.runs;
        all.states += one.states;
        all.failures += one.failures;
        all.deadlocks += one.deadlocks;
        all.ends += one.ends;
    }
    // A claim that is withdrawn is no mistake, but must be rare.
    assert!(all.covered >= COUNT * 9 / 10, "{} of {COUNT} were covered", all.covered);
    // The programs must have something to find.
    assert!(all.failures >= 3 && all.deadlocks >= 3 && all.ends >= 100);
    assert!(all.runs as usize >= 2 * COUNT && all.states >= 100 * COUNT);
}
