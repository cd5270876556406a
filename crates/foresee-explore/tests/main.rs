//! All integration tests, as one executable.

mod classics;
mod journals;
mod programs;
mod properties;
mod random;
mod tiny;
mod truth;
