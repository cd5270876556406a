//! The observer's ears: programs tell what they do over sockets, and analyses follow.
//!
//! A [`Server`] listens on TCP and Unix sockets. Each program that says hello becomes a [`Program`],
//! whose frames may come over several connections and in any order; an [`Observer`] is told of it
//! on a thread of its own, and reads it as an [`foresee_trace::EventSource`], like a file that
//! grows. What is looked for there is not this crate's business. [`send`] is the other end.
//!
//! Memory is bounded for each program (`reassemble.rs`), nothing that a sender says is believed
//! (`wire.rs`), and one sender's trouble is no other's.

mod address;
mod limits;
mod program;
mod reassemble;
mod send;
mod server;
mod spool;
pub mod wire;

pub use address::{Address, Stream};
pub use limits::Limits;
pub use program::Program;
pub use reassemble::Backlog;
pub use send::{Open, SendError, SendOptions, Sent, send};
pub use server::{Listening, Observer, Server, ServerOptions};
pub use wire::ProgramId;
