//! Records a Rust program and asks what else could have happened: `cargo run --example record`.
//!
//! Two threads move money. Each balance is read and written under a lock, but not in one critical
//! section, so another transfer can come in between.

#![allow(clippy::print_stdout)] // It talks to people.

use std::error::Error;
use std::sync::Arc;

use foresee::{Recorder, Session};

fn main() -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::new();
    let account = Arc::new(recorder.mutex("account", recorder.var("balance", 100)));
    let transfers = [("salary", 50), ("rent", -30)].map(|(name, amount)| {
        let (recorder, account) = (recorder.clone(), Arc::clone(&account));
        recorder.clone().spawn(name, move || {
            recorder.event("begin", &[amount.into()]);
            let balance = account.lock().get();
            account.lock().set(balance + amount);
            recorder.event("end", &[amount.into()]);
        })
    });
    transfers.into_iter().for_each(|transfer| transfer.join());

    let trace = recorder.trace()?;
    let report = Session::new(&trace)
        .spec("pattern overlap: event(begin)@salary .. event(begin)@rent .. event(end)@salary")?
        .run()?;
    println!("{report}");
    assert!(!report.findings().is_empty(), "the transfers can overlap");
    Ok(())
}
