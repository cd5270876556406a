//! `foresee worker`, and the queues of `batch`, `explore`, `observe` and `send`: work on many machines.

#[cfg(feature = "nats")]
mod nats {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use anyhow::Context;
    use foresee_batch::Queue;
    use foresee_capture::compiler::own_cache;
    use foresee_nats::{Auth, NatsQueue, Publisher, Server, Tls, Worked, Worker, work};
    pub(crate) use foresee_nats::{Fleet, Relay};
    use foresee_observe::{Outlet, ProgramId};
    use foresee_predict::session::Limits;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use crate::args::{MIB, PublishArgs, QueueArgs, WorkerArgs};
    use crate::output;

    /// Who asks which server.
    pub(crate) fn server(url: &str, args: &QueueArgs) -> anyhow::Result<Server> {
        let auth = match args {
            QueueArgs { nats_user: Some(user), nats_password: Some(password), .. } => {
                Auth::User(user.clone(), password.clone())
            }
            QueueArgs { nats_token: Some(token), .. } => Auth::Token(token.clone()),
            QueueArgs { nats_nkey: Some(file), .. } => Auth::Nkey(file.clone()),
            QueueArgs { nats_creds: Some(file), .. } => Auth::Credentials(file.clone()),
            _ => Auth::None,
        };
        let own = args.nats_cert.clone().zip(args.nats_key.clone());
        let required = args.nats_ca.is_some() || own.is_some();
        Ok(Server {
            queue: args.queue_name.parse().context("--queue-name")?,
            auth,
            tls: Tls { required, ca: args.nats_ca.clone(), own },
            patience: Duration::from_secs(args.patience),
            ack_wait: Duration::from_secs(args.ack_wait),
            keep: Duration::from_secs(args.keep_hours.saturating_mul(3600)),
            ..Server::new(url)
        })
    }

    /// The queue on a server.
    pub(crate) fn queue(url: &str, args: &QueueArgs) -> anyhow::Result<Box<dyn Queue>> {
        Ok(Box::new(NatsQueue { server: server(url, args)?, tell: &|text| output::note(text) }))
    }

    /// The runs of a queue, for an observer that looks for this.
    pub(crate) fn fleet(
        url: &str,
        args: &QueueArgs,
        events_size: u64,
        questions: &str,
    ) -> anyhow::Result<Fleet> {
        let server = Server {
            most_event_bytes: events_size.saturating_mul(MIB as u64),
            ..server(url, args)?
        };
        Ok(Fleet::open(&server, questions)?)
    }

    /// The queue of observers, for whoever publishes.
    fn publishing(url: &str, args: &PublishArgs) -> anyhow::Result<Server> {
        let most_event_bytes = args.events_size.saturating_mul(MIB as u64);
        Ok(Server { most_event_bytes, ..server(url, &args.server)? })
    }

    /// A run of a program in a queue of observers.
    pub(crate) fn outlet(
        url: &str,
        args: &PublishArgs,
        name: &str,
        program: ProgramId,
    ) -> anyhow::Result<Box<dyn Outlet>> {
        Ok(Box::new(Publisher::open(&publishing(url, args)?, name, program)?))
    }

    /// Fails if nothing can be published there.
    pub(crate) fn ready(url: &str, args: &PublishArgs) -> anyhow::Result<()> {
        Ok(foresee_nats::ready(&publishing(url, args)?)?)
    }

    /// A socket at this path for programs that publish while they run.
    pub(crate) fn relay(url: &str, args: &PublishArgs, path: &Path) -> anyhow::Result<Relay> {
        Ok(Relay::open(&publishing(url, args)?, path)?)
    }

    pub(crate) fn run(args: &WorkerArgs) -> anyhow::Result<u8> {
        let server = server(&args.queue, &args.server)?;
        let folder = match &args.cache {
            Some(folder) => folder.clone(),
            None => own_cache("worker").context("--cache DIR names another folder")?,
        };
        let cores = Limits::default().cores;
        let jobs = if args.jobs == 0 { cores } else { args.jobs };
        let each = (cores / jobs).max(1);
        let worker = Worker {
            server,
            jobs,
            folder,
            most_bytes: args.cache_size.saturating_mul(MIB as u64),
            idle: args.idle.map(Duration::from_secs),
            perform: Arc::new(move |job, blobs| foresee_batch::perform(job, blobs, each)),
            served: crate::commands::explore::remote::served(&args.allow_run, &args.allow_before)?,
        };
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .context("cannot watch signals")?;
        }
        let Worked { done, failed } = work(&worker, &stop, &|text| output::note(text))?;
        let failed =
            if failed > 0 { format!(", {failed} without an answer") } else { String::new() };
        output::note(&format!("{} done{failed}", foresee_support::count::count(done, "job")));
        Ok(0)
    }
}

#[cfg(not(feature = "nats"))]
mod nats {
    use std::path::Path;

    use anyhow::bail;
    use foresee_batch::Queue;

    use foresee_observe::{Outlet, Program, ProgramId, Server};

    use crate::args::{PublishArgs, QueueArgs, WorkerArgs};

    /// What to do about it.
    pub(crate) const MISSING: &str = "this foresee was built without queues: build it with `cargo build --release -p foresee-cli --features nats`";

    pub(crate) fn queue(_: &str, _: &QueueArgs) -> anyhow::Result<Box<dyn Queue>> {
        bail!(MISSING)
    }

    pub(crate) fn run(_: &WorkerArgs) -> anyhow::Result<u8> {
        bail!(MISSING)
    }

    /// There are no runs of a queue.
    pub(crate) enum Fleet {}

    impl Fleet {
        pub(crate) fn finding(&self, _: &Program, _: &str, _: &str) -> std::io::Result<()> {
            match *self {}
        }

        pub(crate) fn verdict(&self, _: ProgramId, _: String) {
            match *self {}
        }

        pub(crate) fn is_idle(&self) -> bool {
            match *self {}
        }

        pub(crate) fn work(
            &self,
            _: &Server,
            _: usize,
            _: &(dyn Fn() -> bool + Sync),
            _: &(dyn Fn(&str) + Sync),
        ) -> std::io::Result<()> {
            match *self {}
        }
    }

    pub(crate) fn fleet(_: &str, _: &QueueArgs, _: u64, _: &str) -> anyhow::Result<Fleet> {
        bail!(MISSING)
    }

    pub(crate) fn outlet(
        _: &str,
        _: &PublishArgs,
        _: &str,
        _: ProgramId,
    ) -> anyhow::Result<Box<dyn Outlet>> {
        bail!(MISSING)
    }

    pub(crate) fn ready(_: &str, _: &PublishArgs) -> anyhow::Result<()> {
        bail!(MISSING)
    }

    /// There is no queue to pass anything on to.
    pub(crate) enum Relay {}

    impl Relay {
        pub(crate) fn finish(self) -> Vec<Result<ProgramId, std::io::Error>> {
            match self {}
        }
    }

    pub(crate) fn relay(_: &str, _: &PublishArgs, _: &Path) -> anyhow::Result<Relay> {
        bail!(MISSING)
    }
}

#[cfg(not(feature = "nats"))]
pub(crate) use nats::MISSING;
#[cfg(feature = "nats")]
pub(crate) use nats::server;
pub(crate) use nats::{Fleet, fleet, outlet, queue, ready, relay, run};
