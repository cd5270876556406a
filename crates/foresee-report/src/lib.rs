//! How foresee shows what it found.
//!
//! [`Report`] holds everything one command has to say; [`text`] and [`json`] are two ways to say
//! it. [`Diagram`] is a stretch of a trace with a column for each thread and arrows for causes,
//! drawn as text or as SVG; [`lattice_svg`] draws the lattice of a property.

mod diagram;
pub mod json;
mod lattice_svg;
mod merge;
mod report;
#[cfg(test)]
mod schema;
mod svg;
pub mod text;
mod units;

pub use diagram::{Arrow, Diagram, Row};
pub use lattice_svg::lattice_svg;
pub use merge::{Parts, merge};
pub use report::{Report, exit_status};
pub use units::{TEST_BEGIN, TEST_END, Tests};
