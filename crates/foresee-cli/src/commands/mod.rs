//! One module a command.

pub(crate) mod check;
pub(crate) mod picture;
pub(crate) mod shell;
pub(crate) mod spec;
pub(crate) mod trace;
