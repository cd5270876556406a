//! The side of the observers: runs out of the queue, verdicts into it.
//!
//! A run belongs to the observer that has taken its message from the work queue, and that shows regularly that it is alive. If it dies,
//! the message goes to another one, which reads the run's events from their beginning: they stay until there is a verdict. So the answer never
//! depends on who began. A verdict is stored once; only then the message is acknowledged and the events are removed.

use std::collections::{HashMap, VecDeque};
use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message, stream};
use foresee_observe::wire::{Reply, Status};
use foresee_observe::{Program, ProgramId, Stream};
use futures_util::StreamExt as _;

use crate::background::Background;
use crate::publish::SIGN_OF_LIFE;
use crate::retry::retry;
use crate::runs::{END, OBJECT, OFFSET, RunName, Runs};
use crate::server::{NatsError, Server};
use crate::store::{MOST_PENDING, is_gone};

/// How long the server is asked for a run or for events at a time.
const WAIT: Duration = Duration::from_secs(1);

/// How often it is looked whether a verdict is there, or whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// How often an observer without runs looks whether the queue is still there.
const LOOK: Duration = Duration::from_secs(10);

/// How many pieces are asked for at a time.
const PIECES: usize = 32;

/// A sender that was silent for this long is dead.
const SILENCE: Duration = Duration::from_secs(6 * SIGN_OF_LIFE.as_secs());

/// How many observers may die of a run. Programs run for days, and machines fail for other reasons, so that these are more than
/// the tries of a job.
const MOST_DEATHS: i64 = 10;

const CONSUMER: &str = "observers";

/// Takes runs from a queue for an observer in this process.
pub struct Fleet {
    runs: Arc<Runs>,
    consumer: PullConsumer,
    server: Server,
    questions: String,
    heartbeat: Duration,
    verdicts: Mutex<HashMap<ProgramId, String>>,
    changed: Condvar,
    background: Background,
}

/// Why a run has no verdict yet.
enum Unfinished {
    /// The observer stops.
    Stopped,
    /// Something that may pass.
    Trouble(NatsError),
}

impl From<NatsError> for Unfinished {
    fn from(error: NatsError) -> Unfinished {
        Unfinished::Trouble(error)
    }
}

impl Fleet {
    /// Connects. `questions` is what the observer looks for, which must be the same for all that share the runs.
    pub fn open(server: &Server, questions: &str) -> Result<Fleet, NatsError> {
        let background = Background::start()?;
        let (runs, consumer) = background.wait(async {
            let runs = Runs::open(server).await?;
            let consumer = consumer(&runs, server, questions).await?;
            Ok::<_, NatsError>((Arc::new(runs), consumer))
        })?;
        let heartbeat =
            (consumer.cached_info().config.ack_wait / 3).max(Duration::from_millis(100));
        Ok(Fleet {
            runs,
            consumer,
            server: server.clone(),
            questions: questions.to_owned(),
            heartbeat,
            verdicts: Mutex::default(),
            changed: Condvar::new(),
            background,
        })
    }

    /// Publishes a finding of a program, once. It may be withdrawn later, with another `name`.
    pub fn finding(&self, program: &Program, name: &str, json: &str) -> Result<(), NatsError> {
        let run = RunName::new(&program.name, program.id);
        let is_fine = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
        let name: String = name.chars().filter(is_fine).take(64).collect();
        let subject = format!("{}.{name}", self.runs.subject("findings", &run));
        let said = self.runs.say_once(&subject, HeaderMap::new(), json.as_bytes());
        self.background.wait(said)
    }

    /// Takes the verdict on a program. It is stored before its run is given up.
    pub fn verdict(&self, program: ProgramId, json: String) {
        self.lock().insert(program, json);
        self.changed.notify_all();
    }

    /// Whether no verdict waits to be stored.
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgramId, String>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes runs, at most `most` at once, and passes them to the observer, until it `is_over`. Runs without a verdict go
    /// back into the queue.
    pub fn work(
        &self,
        observer: &foresee_observe::Server,
        most: usize,
        is_over: &(dyn Fn() -> bool + Sync),
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), NatsError> {
        std::thread::scope(|scope| {
            let mut threads: Vec<std::thread::ScopedJoinHandle<'_, ()>> = Vec::new();
            let (mut heard, mut looked) = (Instant::now(), Instant::now());
            while !is_over() {
                threads.retain(|thread| !thread.is_finished());
                if threads.len() >= most.max(1) {
                    std::thread::sleep(TICK);
                    continue;
                }
                match self.background.wait(next(&self.consumer)) {
                    Ok(message) => {
                        heard = Instant::now();
                        let Some(message) = message else {
                            if looked.elapsed() >= LOOK {
                                self.look(tell)?;
                                looked = Instant::now();
                            }
                            continue;
                        };
                        threads.push(scope.spawn(move || {
                            self.follow(message, observer, is_over, tell);
                        }));
                    }
                    Err(error) => {
                        // The client connects again by itself.
                        if heard.elapsed() > self.server.patience {
                            return Err(error);
                        }
                        std::thread::sleep(TICK);
                    }
                }
            }
            Ok(())
        })
    }

    /// Looks whether the queue is as it should be. No run would ever come from one that is gone, so what is missing is made
    /// again; one that others observe with other questions by now is left.
    fn look(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<(), NatsError> {
        match self.background.wait(self.consumer.get_info()) {
            Ok(info) => {
                let is_ours = info.config.description.as_deref() == Some(&self.questions);
                return if is_ours { Ok(()) } else { Err(other_questions(&self.server)) };
            }
            Err(error) if is_gone(&error) => {}
            Err(_) => return Ok(()),
        }
        let made = self.background.wait(async {
            let runs = Runs::open(&self.server).await?;
            consumer(&runs, &self.server, &self.questions).await
        });
        match made {
            Ok(_) => tell("parts of the queue were gone, and were made again"),
            Err(NatsError(why)) => tell(&why),
        }
        Ok(())
    }

    /// Has a run answered.
    fn follow(
        &self,
        message: Message,
        observer: &foresee_observe::Server,
        is_over: &(dyn Fn() -> bool + Sync),
        tell: &(dyn Fn(&str) + Sync),
    ) {
        let message = Arc::new(message);
        let Some(run) = RunName::of_subject(&message.subject) else {
            let _ = self.background.wait(message.ack_with(AckKind::Term));
            return tell("a message in the queue is not a run, and was dropped");
        };
        let alive = self.background.spawn({
            let (message, heartbeat) = (Arc::clone(&message), self.heartbeat);
            async move {
                loop {
                    tokio::time::sleep(heartbeat).await;
                    let _ = message.ack_with(AckKind::Progress).await;
                }
            }
        });
        let answered = self.answer(&message, &run, observer, is_over);
        drop(alive);
        let answered = answered.map(|()| {
            let _ = self.background.wait(message.double_ack());
            // What is left of them grows old.
            let (events, signs) =
                (self.runs.subject("events", &run), self.runs.subject("signs", &run));
            let _ = self.background.wait(self.runs.events.purge().filter(events).into_future());
            let _ = self.background.wait(self.runs.signs.purge().filter(signs).into_future());
        });
        match answered {
            Ok(()) => {}
            Err(Unfinished::Stopped) => self.give_back(&message, &run),
            Err(Unfinished::Trouble(NatsError(why))) => {
                tell(&format!("run {}: {why}", run.id));
                let delay = Some(Duration::from_millis(500));
                let _ = self.background.wait(message.ack_with(AckKind::Nak(delay)));
            }
        }
    }

    /// Gives a run back for another observer. It is announced anew, because a message that is only refused counts as one that an
    /// observer has died of.
    fn give_back(&self, message: &Message, run: &RunName) {
        let subject = self.runs.subject("runs", run);
        let sequence = message.info().map_or(0, |info| info.stream_sequence);
        let id = format!("{}-run-after-{sequence}", run.id);
        let said = self.runs.publish("give a run back", &subject, &id, (HeaderMap::new(), b""));
        let _ = match self.background.wait(said) {
            Ok(()) => self.background.wait(message.double_ack()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
    }

    fn answer(
        &self,
        message: &Message,
        run: &RunName,
        observer: &foresee_observe::Server,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Unfinished> {
        if self.background.wait(self.runs.has_verdict(run))? {
            return Ok(());
        }
        let deaths = message.info().map_or(0, |info| info.delivered - 1);
        let verdict = match deaths >= MOST_DEATHS {
            true => format!(
                "{{\"what\":\"error\",\"program\":{{\"id\":\"{}\"}},\"message\":\"given up after {MOST_DEATHS} \
                 tries: the observers died, or gave no sign of life\"}}",
                run.id
            ),
            false => {
                // An earlier try may have come to it, and not have been able to store it.
                if !self.lock().contains_key(&run.id) {
                    self.feed(run, observer, is_over)?;
                }
                self.wait_for(run.id, observer, is_over)?
            }
        };
        self.background.wait(self.store(run, &verdict))?;
        self.lock().remove(&run.id);
        Ok(())
    }

    async fn store(&self, run: &RunName, verdict: &str) -> Result<(), NatsError> {
        let subject = self.runs.subject("verdicts", run);
        let store = &self.runs.store;
        if verdict.len() <= store.most_bytes() {
            return self.runs.say_once(&subject, HeaderMap::new(), verdict.as_bytes()).await;
        }
        let name = format!("verdict-{}", run.id);
        store.put_bytes(&name, verdict.as_bytes()).await?;
        let mut headers = HeaderMap::new();
        headers.insert(OBJECT, name);
        self.runs.say_once(&subject, headers, b"").await
    }

    /// Waits until the observer has a verdict.
    fn wait_for(
        &self,
        id: ProgramId,
        observer: &foresee_observe::Server,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<String, Unfinished> {
        let mut missing = 0;
        loop {
            let verdicts = self.lock();
            if let Some(verdict) = verdicts.get(&id) {
                return Ok(verdict.clone());
            }
            let waited = self.changed.wait_timeout(verdicts, TICK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if is_over() {
                return Err(Unfinished::Stopped);
            }
            // It takes a moment until a verdict is here after its program is over.
            let is_running = observer.now().running.iter().any(|program| program.id == id);
            missing = if is_running { 0 } else { missing + 1 };
            if missing > 100 {
                return Err(NatsError("the observer has no verdict on it".to_owned()).into());
            }
        }
    }

    /// Passes the events of a run to the observer, as a connection would.
    fn feed(
        &self,
        run: &RunName,
        observer: &foresee_observe::Server,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Unfinished> {
        let cannot = |error: std::io::Error| NatsError(format!("cannot be observed: {error}"));
        let stream = observer.connect(&format!("run {}", run.id)).map_err(cannot)?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(cannot)?;
        let mut events = Reader::new(&self.runs.events, self.runs.subject("events", run));
        let mut signs = Reader::new(&self.runs.signs, self.runs.subject("signs", run));
        // What came among the signs and belongs behind events that have not been read.
        let mut ahead: VecDeque<Message> = VecDeque::new();
        let (mut offset, mut heard, mut is_second_look) = (0, Instant::now(), false);
        loop {
            if is_over() {
                return Err(Unfinished::Stopped);
            }
            let read = self.background.wait(async {
                let pieces = events.next(false).await?;
                let signs = if pieces.is_empty() { signs.next(true).await? } else { Vec::new() };
                Ok::<_, NatsError>((pieces, signs))
            });
            let (pieces, signs) = match read {
                Ok(read) => read,
                Err(error) if heard.elapsed() > self.server.patience.max(SILENCE) => {
                    return Err(error.into());
                }
                Err(_) => {
                    std::thread::sleep(TICK);
                    continue;
                }
            };
            let is_dry = pieces.is_empty();
            if !is_dry || !signs.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() > SILENCE {
                // The observer finds that the program was cut short.
                return Ok(());
            }
            ahead.extend(signs);
            let mut pieces = VecDeque::from(pieces);
            loop {
                let piece = match pieces.pop_front() {
                    Some(piece) => piece,
                    // Events that were stored before a sign may have come between two looks, so it takes two to be sure.
                    None => match ahead.pop_front() {
                        Some(sign)
                            if place(&sign) > Some(offset) && !(is_dry && is_second_look) =>
                        {
                            ahead.push_front(sign);
                            break;
                        }
                        Some(sign) => sign,
                        None => break,
                    },
                };
                match self.pass(&piece, &mut offset, &stream) {
                    Passed::More => {}
                    Passed::All => return Ok(()),
                    Passed::Later(why) => return Err(NatsError(why).into()),
                }
            }
            is_second_look = is_dry && !ahead.is_empty();
        }
    }

    /// Passes a piece on.
    fn pass(&self, piece: &Message, offset: &mut u64, stream: &Stream) -> Passed {
        if let Some(end) = number(piece, END) {
            // If something is missing, the observer notices that there is no end.
            let is_whole = end == *offset && stream.finish_writing().is_ok();
            if is_whole {
                let mut half = stream;
                let _ = Reply::read(&mut half);
            }
            return Passed::All;
        }
        // Signs of life have neither.
        let Some(at) = number(piece, OFFSET) else { return Passed::More };
        if at < *offset {
            return Passed::More;
        }
        if at > *offset {
            return Passed::All;
        }
        *offset += piece.payload.len() as u64;
        let mut half = stream;
        if half.write_all(&piece.payload).is_err() {
            // The observer has closed it, and has its reasons.
            return Passed::All;
        }
        if at > 0 {
            return Passed::More;
        }
        // The first piece is the hello.
        match Reply::read(&mut half) {
            Ok(Some(Reply { status: Status::Welcome, .. })) => Passed::More,
            Ok(Some(Reply { status: Status::Later, text, .. })) => Passed::Later(text),
            Ok(Some(Reply { status: Status::Farewell, .. })) => Passed::All,
            Ok(Some(Reply { status: Status::Refused, text, .. })) => {
                Passed::Later(format!("the observer refuses it: {text}"))
            }
            Ok(None) | Err(_) => Passed::Later("the observer has closed its connection".to_owned()),
        }
    }
}

/// A number in the headers of a piece.
fn number(piece: &Message, name: &str) -> Option<u64> {
    piece.headers.as_ref()?.get(name)?.as_str().parse().ok()
}

/// Where a piece belongs.
fn place(piece: &Message) -> Option<u64> {
    number(piece, OFFSET).or(number(piece, END))
}

/// Reads messages from a stream, in its order and each once.
struct Reader<'r> {
    stream: &'r stream::Stream,
    subject: String,
    consumer: Option<PullConsumer>,
    /// How many the consumer has delivered.
    delivered: u64,
    /// The place in the stream of the last one.
    last: u64,
}

impl<'r> Reader<'r> {
    fn new(stream: &'r stream::Stream, subject: String) -> Reader<'r> {
        Reader { stream, subject, consumer: None, delivered: 0, last: 0 }
    }

    /// The next messages: those that are there, or that come soon.
    async fn next(&mut self, only_there: bool) -> Result<Vec<Message>, NatsError> {
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => {
                self.delivered = 0;
                self.open().await?
            }
        };
        let mut some = there(&consumer, PIECES).await?;
        if some.is_empty() && !only_there {
            some.extend(next(&consumer).await?);
        }
        let mut is_gapless = true;
        some.retain(|one| {
            // What the server delivers too late goes to nobody, and it never delivers it again.
            let info = one.info().ok().filter(|_| is_gapless);
            let info = info.filter(|info| info.consumer_sequence == self.delivered + 1);
            is_gapless = info.is_some();
            if let Some(info) = info {
                (self.delivered, self.last) = (info.consumer_sequence, info.stream_sequence);
            }
            is_gapless
        });
        // Another consumer begins after the last one that was read.
        self.consumer = is_gapless.then_some(consumer);
        Ok(some)
    }

    async fn open(&self) -> Result<PullConsumer, NatsError> {
        let wanted = pull::Config {
            ack_policy: AckPolicy::None,
            filter_subject: self.subject.clone(),
            deliver_policy: match self.last {
                0 => DeliverPolicy::All,
                last => DeliverPolicy::ByStartSequence { start_sequence: last + 1 },
            },
            inactive_threshold: Duration::from_secs(60),
            ..pull::Config::default()
        };
        let made = self.stream.create_consumer(wanted).await;
        made.map_err(|error| NatsError(format!("cannot read the events: {error}")))
    }
}

/// What became of a piece.
enum Passed {
    More,
    All,
    Later(String),
}

/// A message, if there is one soon.
async fn next(consumer: &PullConsumer) -> Result<Option<Message>, NatsError> {
    let failed = |error: &dyn std::fmt::Display| NatsError(format!("cannot take a run: {error}"));
    let wanted = consumer.batch().max_messages(1).expires(WAIT).messages();
    let mut messages = wanted.await.map_err(|error| failed(&error))?;
    // A server that is restarted forgets who waits.
    match tokio::time::timeout(2 * WAIT, messages.next()).await {
        Ok(Some(message)) => message.map(Some).map_err(|error| failed(&error)),
        Ok(None) | Err(_) => Ok(None),
    }
}

/// The messages that are there.
async fn there(consumer: &PullConsumer, most: usize) -> Result<Vec<Message>, NatsError> {
    let failed = |error: &dyn std::fmt::Display| NatsError(format!("cannot take a run: {error}"));
    let wanted = consumer.fetch().max_messages(most).messages();
    let mut messages = wanted.await.map_err(|error| failed(&error))?;
    let mut all = Vec::new();
    while let Ok(Some(message)) = tokio::time::timeout(WAIT, messages.next()).await {
        all.push(message.map_err(|error| failed(&error))?);
    }
    Ok(all)
}

/// The consumer that all observers share, if they look for the same.
async fn consumer(
    runs: &Runs,
    server: &Server,
    questions: &str,
) -> Result<PullConsumer, NatsError> {
    let wanted = pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        description: Some(questions.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: server.ack_wait,
        max_ack_pending: MOST_PENDING,
        ..pull::Config::default()
    };
    for _ in 0..2 {
        let opened = retry(server.patience, "open the consumer of runs", async || {
            runs.runs.get_or_create_consumer(CONSUMER, wanted.clone()).await
        });
        let consumer: PullConsumer = opened.await?;
        let info = retry(server.patience, "ask who observes", async || consumer.get_info().await);
        let info = info.await?;
        if info.config.description.as_deref() == Some(questions) {
            return Ok(consumer);
        }
        if info.num_waiting > 0 || info.num_ack_pending > 0 {
            break;
        }
        // Nobody observes with other questions any more.
        retry(server.patience, "take over the runs", async || {
            runs.runs.delete_consumer(CONSUMER).await
        })
        .await?;
    }
    Err(other_questions(server))
}

/// The runs belong to others.
fn other_questions(server: &Server) -> NatsError {
    NatsError(format!(
        "the runs of the queue `{}` are observed with other specifications, checks or limits: observers that \
         share runs must look for the same, or use another queue with --queue-name",
        server.queue
    ))
}

/// The verdict on a run, if there is one.
pub fn verdict(
    server: &Server,
    program: &str,
    id: ProgramId,
) -> Result<Option<Vec<u8>>, NatsError> {
    let background = Background::start()?;
    background.wait(async {
        let runs = Runs::open(server).await?;
        runs.verdict(&RunName::new(program, id)).await
    })
}

/// All findings of observed programs that the server still has, each with its subject.
pub fn findings(server: &Server) -> Result<Vec<(String, Vec<u8>)>, NatsError> {
    let background = Background::start()?;
    background.wait(async {
        let runs = Runs::open(server).await?;
        let mut said = Reader::new(&runs.verdicts, format!("{}.findings.>", server.queue));
        let mut all = Vec::new();
        loop {
            let some = said.next(false).await?;
            if some.is_empty() {
                return Ok(all);
            }
            let told = some.into_iter().map(|one| (one.subject.to_string(), one.payload.to_vec()));
            all.extend(told);
        }
    })
}
