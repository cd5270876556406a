//! A language server for specification files.
//!
//! An editor starts `foresee lsp` and speaks the Language Server Protocol with it over standard input and output. The server keeps
//! the text of every open file ([`Document`]), reports its mistakes after every change, explains what is under the cursor,
//! completes words and names, and formats. With the names of a trace it also knows which variables, locks, threads, methods and
//! events exist.

mod completion;
mod document;
mod hover;
mod server;
mod transport;

pub use document::Document;
pub use server::{Known, ServeError, serve, serve_on};

/// The server's side of a connection in memory, and the editor's; for tests and for editors that are in the same process.
pub use lsp_server::Connection;
