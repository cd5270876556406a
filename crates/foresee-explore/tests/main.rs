//! All integration tests, as one executable.
