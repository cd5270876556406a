//! Many traces, specifications and checks as one batch.
//!
//! A [`Plan`] makes [`Job`]s of traces and questions: each is one trace and what one
//! [`Session`](foresee_predict::session::Session) is to answer of it. A [`Queue`] has them done, in this process or
//! elsewhere. Results are kept in a [`Cache`], named by the digest of everything that they depend on, so what was done once is
//! not done again: neither after a change of something else, nor after a batch was killed. [`run`] merges the reports into
//! one, in which each finding occurs once with the traces that show it.
//!
//! | file | what it does |
//! |---|---|
//! | `digest` | names for contents |
//! | `collect`, `manifest` | which traces and specifications, from arguments and from a file |
//! | `plan` | traces and questions become jobs, which may be split |
//! | `job` | one job, and what its result depends on |
//! | `perform` | does a job |
//! | `queue` | has jobs done, on the cores of this machine |
//! | `cache` | results on disk |
//! | `batch` | all of it, and the merged report |
//! | `parts` | the reports on parts of the questions become that on all of them |
//! | `shard` | one of several batches that share the jobs |

mod batch;
mod cache;
mod collect;
mod digest;
mod job;
mod manifest;
mod parts;
mod perform;
mod plan;
mod queue;
mod shard;

pub use batch::{BatchError, Done, Progress, run};
pub use cache::Cache;
pub use collect::{CollectError, Collected, collect, expand};
pub use digest::Digest;
pub use foresee_predict::checks::Decided;
pub use job::{Blob, Job, VERSION};
pub use manifest::{BadManifest, Manifest, Product};
pub use parts::join;
pub use perform::{Answer, BadAnswer, Blobs, Failed, Performed, decode, encode, perform};
pub use plan::{LocalBlobs, Plan, PlanError, Planned, Questions, SpecSource};
pub use queue::{HandOver, InProcess, Queue, QueueError};
pub use shard::{BadShard, Shard};
