//! `foresee send`: sends a stored trace to an observer, as a running program would.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use foresee_observe::{Pace, ProgramId, SendOptions};
use foresee_support::count::count;
use foresee_trace::TraceInput;

use crate::args::{Destination, SendArgs};
use crate::commands::sending::Sending;
use crate::input::Input;
use crate::output::Sink;

pub(crate) fn run(args: &SendArgs) -> anyhow::Result<u8> {
    ensure!(
        !args.input.repair,
        "--repair has no effect here: a trace is sent unchanged, and the observer reports what is wrong"
    );
    let mut to = Sink::new(&args.output)?;
    let trace = Input::new(&args.input, args.retry > 0, usize::MAX)?;
    let name = args.name.clone().unwrap_or_else(|| {
        let path: &Path = &args.input.trace;
        path.file_name().map_or_else(|| trace.name(), |name| name.to_string_lossy().into_owned())
    });
    let address = match &args.to {
        Destination::Observer(address) => address.clone(),
        Destination::Queue(_) => {
            ensure!(
                args.connections == 1 && args.shuffle.is_none() && args.retry == 0,
                "--connections, --shuffle and --retry are for observers: a queue keeps events in order, and \
                 --patience says how long to go on without its server"
            );
            let mut source = trace.open_raw()?;
            let pace = Pace { frame_events: args.frame, rate: args.rate };
            let order = source.remarks().order;
            let sending = Sending::open(&args.to, &args.publish, pace, &name, order, false);
            let (what, status) = sending
                .and_then(|sending| sending.finish(&mut *source))
                .with_context(|| trace.name())?;
            to.print(&format!("{}: {what}\n", trace.name()))?;
            to.finish()?;
            return Ok(status);
        }
    };
    ensure!(!args.publish.lossy, "--lossy is for queues: observers have the same flag");
    let options = SendOptions {
        to: address.clone(),
        token: args.publish.token.clone().unwrap_or_default().into_bytes(),
        program: ProgramId::random(),
        name,
        connections: args.connections,
        frame_events: args.frame,
        rate: args.rate,
        shuffle: args.shuffle,
        retry: Duration::from_secs(args.retry),
    };
    let sent =
        foresee_observe::send(&mut || trace.open_raw(), &options).with_context(|| trace.name())?;
    let again = match sent.retries {
        0 => String::new(),
        n => format!(", after {}", count(n, "retry")),
    };
    let events = count(sent.events, "event");
    to.print(&format!("{}: {events} sent to {address}{again}\n", trace.name()))?;
    to.finish()?;
    Ok(0)
}
