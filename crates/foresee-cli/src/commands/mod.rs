//! One module per command.

pub(crate) mod baseline;
pub(crate) mod batch;
pub(crate) mod cc;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod explore;
pub(crate) mod index;
pub(crate) mod instrument_jvm;
pub(crate) mod lsp;
pub(crate) mod observe;
#[cfg(feature = "tui")]
mod observe_screen;
mod observe_view;
pub(crate) mod picture;
pub(crate) mod query;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod self_test;
pub(crate) mod send;
pub(crate) mod sending;
pub(crate) mod shell;
pub(crate) mod spec;
pub(crate) mod trace;
pub(crate) mod worker;
