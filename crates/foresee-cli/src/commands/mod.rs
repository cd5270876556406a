//! One module a command.

pub(crate) mod cc;
pub(crate) mod check;
pub(crate) mod index;
pub(crate) mod picture;
pub(crate) mod query;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod spec;
mod thinned;
pub(crate) mod trace;
