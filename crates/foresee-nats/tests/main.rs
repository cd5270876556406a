//! Batches on a real server: `nats-server`, which Debian packages and `scripts/test` installs.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod calls;
mod credentials;
mod fleet;
mod harness;
mod trouble;
