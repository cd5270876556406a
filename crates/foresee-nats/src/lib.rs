//! Batches on many machines, with the jobs, the traces and the results in NATS JetStream.
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
//!
//! | file | what it does |
//! |---|---|
//! | `server` | where the queue is, and who asks; connections |
//! | `retry` | tries again, later and later |
//! | `store` | what is where |
//! | `submit` | the side of the batch: a [`Queue`](foresee_batch::Queue) |
//! | `worker` | the side of the workers |
//! | `fetched` | traces that a worker has fetched, within a limit |

mod fetched;
mod retry;
mod server;
mod store;
mod submit;
mod worker;

pub use server::{Auth, BadName, NatsError, QueueName, Server, Tls};
pub use submit::NatsQueue;
pub use worker::{Perform, Worked, Worker, work};

/// How often a job is tried.
pub const TRIES: i64 = 3;
