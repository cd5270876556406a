//! The specification language of foresee.
//!
//! A specification states what must hold in every run of a program. [`parse`] turns its text into a
//! [`ast::Spec`] and reports mistakes with their positions; [`format()`] formats it; [`resolve`]
//! maps the names in it to those of a trace.

pub mod ast;
pub mod automaton;
pub mod custom;
pub mod dependence;
pub mod diagnostic;
pub mod draw;
pub mod ere;
pub mod explain;
mod interest;
pub mod letter;
pub mod logic;
pub mod ltl;
mod mentions;
pub mod monitor;
mod objects;
pub mod observe;
pub mod params;
mod past;
pub mod pattern;
pub mod property;
pub mod ptltl;
mod resolve;
pub mod run;
mod syntax;
#[cfg(test)]
mod testing;
pub mod value;

pub use diagnostic::{Diagnostic, Severity, render};
pub use interest::{Interest, Touch};
pub use mentions::{methods, object_types, variables};
pub use objects::{Expanded, expand};
pub use resolve::{Resolution, Resolved, resolve};
pub use syntax::{Parsed, format, parse, print, print_atom, print_formula, print_method};
