//! How foresee shows what it found.
//!
//! [`Report`] holds everything one command has to say; [`text`], [`json`], [`sarif`],
//! [`junit`], [`github`] and [`html`] are ways to say it; [`export`] writes traces for other viewers. [`Diagram`] is a stretch of a trace with a
//! column for each thread and arrows for causes, drawn as text or as SVG; [`lattice_svg`] draws the
//! lattice of a property.

mod diagram;
pub mod export;
mod facts;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
mod lattice_svg;
mod merge;
mod report;
pub mod sarif;
#[cfg(test)]
mod schema;
mod svg;
pub mod text;
mod units;
mod uri;

pub use diagram::{Arrow, Diagram, Row};
pub use lattice_svg::lattice_svg;
pub use merge::{Merger, Parts, merge};
pub use report::{Report, Suppressed, exit_status};
pub use units::{TEST_BEGIN, TEST_END, Tests};
