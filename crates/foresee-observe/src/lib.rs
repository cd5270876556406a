//! Observing running programs: they send their events over sockets to analyses.
//!
//! A [`Server`] listens on TCP and Unix sockets. Each program that sends a hello becomes a
//! [`Program`], whose frames may come over several connections and in any order. An [`Observer`] is
//! called for it on a separate thread and reads it as an [`foresee_trace::EventSource`], like a
//! growing file. What is analysed there is up to the observer. [`send`] is the other end.
//!
//! Memory is bounded for each program (`reassemble.rs`), no input of a sender is trusted
//! (`wire.rs`), and problems of one sender do not affect others.

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
pub use program::{LogReader, Program};
pub use reassemble::Backlog;
pub use send::{
    Connection, Editions, Open, Outlet, Pace, SendError, SendOptions, Sent, Unwritten, send,
    send_through,
};
pub use server::{Listening, Observer, Server, ServerOptions};
pub use wire::ProgramId;
