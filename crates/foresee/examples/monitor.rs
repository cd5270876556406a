//! A monitor of one's own, observed and predicted: `cargo run --example monitor`.

#![allow(clippy::print_stdout)] // It talks to people.

use foresee::{FindingKind, Monitor, Recorder, Session};

/// At most `limit` jobs run at once.
struct AtMost {
    limit: u32,
}

impl Monitor for AtMost {
    type State = u32;

    fn conditions(&self) -> Vec<String> {
        vec!["event(start)".into(), "event(stop)".into()]
    }

    fn start(&self) -> u32 {
        0
    }

    fn step(&self, running: &u32, holds: &[bool]) -> Option<u32> {
        let running = (running + u32::from(holds[0])).saturating_sub(u32::from(holds[1]));
        (running <= self.limit).then_some(running)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recorder = Recorder::new();
    let forks = ["first", "second"].map(|name| recorder.fork(name));
    // The jobs run one after the other here, but only by chance.
    for fork in forks {
        let recorder = recorder.clone();
        let job = std::thread::spawn(move || {
            let _running = fork.begin();
            recorder.event("start", &[]);
            recorder.event("stop", &[]);
        });
        job.join().expect("a job does not panic");
    }
    let trace = recorder.trace()?;
    let report = Session::new(&trace).monitor("one_job", AtMost { limit: 1 })?.run()?;
    println!("{report}");
    assert_eq!(report.findings()[0].kind, FindingKind::Predicted);
    Ok(())
}
