//! Batches, explorations and observed programs on many machines, with everything that they share in NATS JetStream.
//!
//! A batch puts traces and specifications into an object store, by their digests, and jobs into a work queue. [Workers](work)
//! take jobs, fetch what these name, and put each result into a key-value store, by the key of its job; only then they acknowledge the job.
//! So a worker that dies costs nothing but time: its job is delivered again after a while in which it gave no sign of life. A
//! job that fails three workers gets a result that says so. A result that is computed twice is the same result.
//!
//! What is where, for a queue called `foresee`:
//!
//! | name | kind | contents |
//! |---|---|---|
//! | `foresee_jobs` | stream, work queue | subjects `foresee.jobs.VERSION`: jobs in JSON; its description names the version that uses the queue |
//! | `workers_VERSION` | its durable consumer | shared by all workers |
//! | `foresee_blobs` | object store | traces, specifications and large results, by digest |
//! | `foresee_results` | key-value store | results, by the key of the job; `tries.KEY`: why a try failed |
//! | `foresee.done` | subject | the key of a job whose result has just been stored; only to hurry, nothing is lost with it |
//! | `foresee_calls` | stream, work queue | subjects `foresee.calls.VERSION.GROUP`: requests to run a program; answers are results, `call.ID` |
//! | `calls_VERSION_GROUP` | its durable consumers | each shared by the workers of a group |
//! | `foresee.called.ID` | subject | tells that a request was answered; only to hurry |
//!
//! Runs of observed programs have streams of their own: `runs` lists them.
//!
//! | file | what it does |
//! |---|---|
//! | `server` | where the queue is, and who asks; connections |
//! | `retry` | tries again, later and later |
//! | `store` | what is where |
//! | `submit` | the side of the batch: a [`Queue`](foresee_batch::Queue) |
//! | `worker` | the side of the workers |
//! | `fetched` | traces that a worker has fetched, within a limit |
//! | `calls` | requests that workers answer, and who asks |
//! | `runs`, `publish`, `observe` | runs of observed programs: what is where, the side of the programs, the side of the observers |
//! | `relay` | a socket for programs that publish while they run |
//! | `background` | a runtime for those who wait |

mod background;
mod calls;
mod fetched;
mod observe;
mod publish;
mod relay;
mod retry;
mod runs;
mod server;
mod store;
mod submit;
mod worker;

pub use calls::{BadGroup, Caller, Group};
pub use observe::{Fleet, findings, verdict};
pub use publish::{Publisher, ready};
pub use relay::{Relay, Relayed};
pub use server::{Auth, BadName, NatsError, QueueName, Server, Tls};
pub use submit::NatsQueue;
pub use worker::{Answering, Perform, Served, Worked, Worker, work};

/// How often a job is tried.
pub const TRIES: i64 = 3;
