//! Predicts from a trace in a file: `cargo run --example predict -- TRACE [SPECIFICATION]`.

#![allow(clippy::print_stdout)] // It talks to people.

use std::error::Error;
use std::process::ExitCode;

use foresee::Session;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let trace = foresee::open(arguments.next().ok_or("usage: predict TRACE [SPECIFICATION]")?)?;
    let mut session = Session::new(&trace);
    if let Some(file) = arguments.next() {
        session = session.spec(&std::fs::read_to_string(file)?)?;
    }
    let report = session.run()?;
    println!("{report}");
    Ok(report.exit_status().into())
}
