//! All integration tests, as one executable.

mod random;
mod tiny;
mod truth;
