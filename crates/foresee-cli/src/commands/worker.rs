//! `foresee worker`, and the queue of `foresee batch --queue`: jobs on many machines.

#[cfg(feature = "nats")]
mod nats {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use anyhow::Context;
    use foresee_batch::Queue;
    use foresee_capture::compiler::own_cache;
    use foresee_nats::{Auth, NatsQueue, Server, Tls, Worked, Worker, work};
    use foresee_predict::session::Limits;
    use signal_hook::consts::{SIGINT, SIGTERM};

    use crate::args::{MIB, QueueArgs, WorkerArgs};
    use crate::output;

    /// Who asks which server.
    fn server(url: &str, args: &QueueArgs) -> anyhow::Result<Server> {
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
        };
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .context("cannot watch signals")?;
        }
        let Worked { done, failed } = work(&worker, &stop, &|text| output::note(text))?;
        let failed =
            if failed > 0 { format!(", {failed} without an answer") } else { String::new() };
        output::note(&format!("{done} jobs done{failed}"));
        Ok(0)
    }
}

#[cfg(not(feature = "nats"))]
mod nats {
    use anyhow::bail;
    use foresee_batch::Queue;

    use crate::args::{QueueArgs, WorkerArgs};

    /// What to do about it.
    const MISSING: &str = "this foresee was built without queues: build it with `cargo build --release -p foresee-cli --features nats`";

    pub(crate) fn queue(_: &str, _: &QueueArgs) -> anyhow::Result<Box<dyn Queue>> {
        bail!(MISSING)
    }

    pub(crate) fn run(_: &WorkerArgs) -> anyhow::Result<u8> {
        bail!(MISSING)
    }
}

pub(crate) use nats::{queue, run};
