//! A run of a program on its way to observers: to one of them, or to a queue that they share.

use anyhow::ensure;
use foresee_observe::wire::{Hello, new_secret};
use foresee_observe::{Connection, Editions, Outlet, Pace, ProgramId};
use foresee_support::count::count;
use foresee_trace::{EventSource, FileOrder};

use crate::args::{Destination, PublishArgs};
use crate::commands::worker;

/// The exit status if something is missing.
const INCOMPLETE: u8 = 3;

/// Fails if nothing can be sent there.
pub(crate) fn ready(to: &Destination, args: &PublishArgs) -> anyhow::Result<()> {
    match to {
        Destination::Queue(url) => worker::ready(url, args),
        Destination::Observer(address) => {
            ensure!(!args.lossy, "--lossy is for queues: observers have the same flag");
            Ok(Connection::open(address).map(drop)?)
        }
    }
}

/// A run that is being sent.
pub(crate) struct Sending {
    program: ProgramId,
    editions: Editions,
    pace: Pace,
    may_drop: bool,
    /// The address of an observer, if it is not sent to a queue.
    observer: Option<String>,
}

impl Sending {
    /// Introduces a program. It may send its trace several times, each time with more of it.
    pub(crate) fn open(
        to: &Destination,
        args: &PublishArgs,
        pace: Pace,
        name: &str,
        order: FileOrder,
        has_editions: bool,
    ) -> anyhow::Result<Sending> {
        let program = ProgramId::random();
        let outlet: Box<dyn Outlet> = match to {
            Destination::Queue(url) => worker::outlet(url, args, name, program)?,
            Destination::Observer(address) => Box::new(Connection::open(address)?),
        };
        let hello = Hello {
            program,
            name: name.to_owned(),
            order,
            channels: 1,
            token: args.token.clone().unwrap_or_default().into_bytes(),
            secret: new_secret(),
            is_log: false,
            has_editions,
        };
        let editions = Editions::begin(&hello, outlet)?;
        let observer = match to {
            Destination::Queue(_) => None,
            Destination::Observer(address) => Some(address.to_string()),
        };
        Ok(Sending { program, editions, pace, may_drop: args.lossy, observer })
    }

    /// Sends the trace as far as it is known.
    pub(crate) fn put(&mut self, source: &mut dyn EventSource) -> anyhow::Result<()> {
        self.editions.put(source, self.pace, self.may_drop, false)?;
        Ok(())
    }

    /// Shows that the program is still there.
    pub(crate) fn sign(&mut self) -> anyhow::Result<()> {
        Ok(self.editions.sign()?)
    }

    /// Sends the whole trace. Returns what is said of that, and the exit status.
    pub(crate) fn finish(mut self, source: &mut dyn EventSource) -> anyhow::Result<(String, u8)> {
        let (sent, dropped) = self.editions.put(source, self.pace, self.may_drop, true)?;
        self.editions.finish()?;
        let events = count(sent.events, "event");
        let what = match &self.observer {
            Some(address) => format!("{events} sent to {address}"),
            None => format!("{events} published as run {}", self.program),
        };
        Ok(match dropped {
            0 => (what, 0),
            n => (
                format!("{what}, of which {n} were dropped: the verdict will not be complete"),
                INCOMPLETE,
            ),
        })
    }
}
