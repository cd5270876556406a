//! Runs of observed programs: what of them is where.
//!
//! | name | kind | contents |
//! |---|---|---|
//! | `foresee_events` | stream | subjects `foresee.events.PROGRAM.RUN`: what a connection to an observer would carry, in pieces |
//! | `foresee_signs` | stream | subjects `foresee.signs.PROGRAM.RUN`: signs of life of senders, and the end of a run that found no room among the events |
//! | `foresee_runs` | stream, work queue | subjects `foresee.runs.PROGRAM.RUN`: runs without a verdict |
//! | `observers` | its durable consumer | shared by all observers; its description says what they look for |
//! | `foresee_verdicts` | stream | subjects `foresee.verdicts.PROGRAM.RUN` and `foresee.findings.PROGRAM.RUN.FINGERPRINT`: each once |
//!
//! A piece says where it begins ([`OFFSET`]), so that one that was stored twice is read once, and one that is missing is
//! noticed. Events have a limited space. What must be heard even when that is full is small, and has a stream of its own.

use async_nats::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use foresee_observe::ProgramId;

use crate::retry::retry;
use crate::server::{NatsError, Server};
use crate::store::{Side, Store};

/// The headers of pieces: where one begins, that nothing follows, and that the sender is alive.
pub(crate) const OFFSET: &str = "Foresee-Offset";
pub(crate) const END: &str = "Foresee-End";
pub(crate) const ALIVE: &str = "Foresee-Alive";
/// The name of the object with a verdict that is too large for a message.
pub(crate) const OBJECT: &str = "Foresee-Object";

/// How long the word for a program may be.
const LONGEST: usize = 64;

/// A run of a program, as two words of subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunName {
    program: String,
    pub(crate) id: ProgramId,
}

impl RunName {
    /// Names come from outside: what cannot be part of a word becomes `_`.
    pub(crate) fn new(program: &str, id: ProgramId) -> RunName {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let program = program.chars().map(|c| if is_fine(c) { c } else { '_' });
        let program: String = program.take(LONGEST).collect();
        let program = if program.is_empty() { "_".to_owned() } else { program };
        RunName { program, id }
    }

    /// The run of a subject that ends with it.
    pub(crate) fn of_subject(subject: &str) -> Option<RunName> {
        let (rest, id) = subject.rsplit_once('.')?;
        let (_, program) = rest.rsplit_once('.')?;
        Some(RunName { program: program.to_owned(), id: ProgramId::parse(id)? })
    }
}

/// The streams of runs.
pub(crate) struct Runs {
    pub(crate) store: Store,
    pub(crate) events: Stream,
    pub(crate) signs: Stream,
    pub(crate) runs: Stream,
    pub(crate) verdicts: Stream,
    queue: String,
}

impl Runs {
    /// Connects, and makes what is not there.
    pub(crate) async fn open(server: &Server) -> Result<Runs, NatsError> {
        let store = Store::open(server, Side::Worker).await?;
        let queue = server.queue.to_string();
        let make = async |kind: &str, config: stream::Config| {
            let name = format!("{queue}_{kind}");
            let config = stream::Config {
                name,
                // What does not fit is refused, and nothing else is lost for it.
                discard: DiscardPolicy::New,
                max_age: server.keep,
                ..config
            };
            retry(server.patience, &format!("open the stream of {kind}"), async || {
                store.context.get_or_create_stream(config.clone()).await
            })
            .await
        };
        let events = stream::Config {
            subjects: vec![format!("{queue}.events.*.*")],
            max_bytes: i64::try_from(server.most_event_bytes).unwrap_or(i64::MAX),
            ..stream::Config::default()
        };
        let events = make("events", events).await?;
        let signs = stream::Config {
            subjects: vec![format!("{queue}.signs.*.*")],
            ..stream::Config::default()
        };
        let signs = make("signs", signs).await?;
        let runs = stream::Config {
            subjects: vec![format!("{queue}.runs.*.*")],
            retention: RetentionPolicy::WorkQueue,
            ..stream::Config::default()
        };
        let runs = make("runs", runs).await?;
        let subjects = vec![format!("{queue}.verdicts.*.*"), format!("{queue}.findings.*.*.*")];
        let verdicts =
            make("verdicts", stream::Config { subjects, ..stream::Config::default() }).await?;
        Ok(Runs { store, events, signs, runs, verdicts, queue })
    }

    /// A subject of a run.
    pub(crate) fn subject(&self, kind: &str, run: &RunName) -> String {
        format!("{}.{kind}.{}.{}", self.queue, run.program, run.id)
    }

    /// Publishes a message until the server has it. `id` is that of this very message.
    pub(crate) async fn publish(
        &self,
        what: &str,
        subject: &str,
        id: &str,
        (headers, payload): (HeaderMap, &[u8]),
    ) -> Result<(), NatsError> {
        retry(self.store.patience, what, async || {
            self.try_publish(subject, id, headers.clone(), payload).await
        })
        .await
    }

    /// Publishes a message, or says why the server does not take it.
    pub(crate) async fn try_publish(
        &self,
        subject: &str,
        id: &str,
        headers: HeaderMap,
        payload: &[u8],
    ) -> Result<(), NatsError> {
        let message = PublishMessage::build().headers(headers).message_id(id);
        let message = message.payload(payload.to_vec().into());
        let failed = |error: &dyn std::fmt::Display| NatsError(error.to_string());
        let sent = self.store.context.send_publish(subject.to_owned(), message).await;
        let sent = sent.map_err(|error| failed(&error))?;
        sent.await.map(drop).map_err(|error| failed(&error))
    }

    /// Publishes what is said once about a run, unless it was said.
    pub(crate) async fn say_once(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: &[u8],
    ) -> Result<(), NatsError> {
        // Whoever listens beside the stream would hear what the stream refuses.
        if self.last(subject).await?.is_some() {
            return Ok(());
        }
        retry(self.store.patience, "store a verdict", async || {
            let message = PublishMessage::build()
                .headers(headers.clone())
                .expected_last_subject_sequence(0)
                .payload(payload.to_vec().into());
            match self.store.context.send_publish(subject.to_owned(), message).await?.await {
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(()),
                said => said.map(drop),
            }
        })
        .await
    }

    /// What was last said under a subject, if anything.
    async fn last(&self, subject: &str) -> Result<Option<StreamMessage>, NatsError> {
        retry(self.store.patience, "ask for a verdict", async || {
            use async_nats::jetstream::stream::LastRawMessageErrorKind as Kind;
            match self.verdicts.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(message)),
                Err(error) => match error.kind() {
                    Kind::NoMessageFound => Ok(None),
                    Kind::JetStream(why) if why.error_code() == ErrorCode::NO_MESSAGE_FOUND => {
                        Ok(None)
                    }
                    _ => Err(error),
                },
            }
        })
        .await
    }

    /// Whether a run has a verdict.
    pub(crate) async fn has_verdict(&self, run: &RunName) -> Result<bool, NatsError> {
        Ok(self.verdict(run).await?.is_some())
    }

    /// The verdict on a run, if there is one.
    pub(crate) async fn verdict(&self, run: &RunName) -> Result<Option<Vec<u8>>, NatsError> {
        let subject = self.subject("verdicts", run);
        let Some(message) = self.last(&subject).await? else { return Ok(None) };
        match message.headers.get(OBJECT) {
            Some(name) => self.store.fetch(name.as_str(), u64::from(u32::MAX)).await.map(Some),
            None => Ok(Some(message.payload.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_program_is_called_it_is_one_word() {
        let id = ProgramId([7; 16]);
        for name in ["", "a.b", "*", ">", "ä b\n", "fine-1_x", &"long".repeat(100)] {
            let run = RunName::new(name, id);
            assert!(crate::server::is_word(&run.program, LONGEST), "{name}: {run:?}");
            let subject = format!("q.events.{}.{}", run.program, run.id);
            assert_eq!(RunName::of_subject(&subject), Some(run));
        }
        assert_eq!(RunName::of_subject("q.events.a.b"), None);
    }
}
