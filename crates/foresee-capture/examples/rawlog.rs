//! Prints the events of a raw log without symbols: `cargo run -p foresee-capture --example rawlog -- DIRECTORY/PID.0.tail`.
#![allow(clippy::print_stdout)]

use foresee_capture::log::{Log, Plain};
use foresee_trace::{Batch, EventSource, Mode, Validated};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which tail?")?;
    let log = Log::open(path.as_ref())?;
    println!("{:?}\n{} records, {} threads", log.header, log.records, log.threads);
    let quiet = std::env::args_os().nth(2).is_some();
    let mut source = Validated::new(log.source(Plain::new(&log.modules))?, Mode::Reject);
    let (mut batch, mut events) = (Batch::default(), 0);
    while source.next_batch(&mut batch)? {
        events += batch.events.len();
        for event in batch.events.iter().filter(|_| !quiet) {
            let names = source.names();
            let what = event.describe(names, &batch.pool);
            println!(
                "{}|{what}|{}",
                names.threads.get(event.thread()),
                names.locs.get(event.loc())
            );
        }
    }
    println!("{events} events, {:?}, {:?}", source.inner().stats(), source.remarks());
    Ok(())
}
