//! Why a session could not answer.

use foresee_trace::ReadError;

use super::spec::BadSpec;
use crate::analysis::AnalysisError;

/// Why a session could not answer. What it could not answer of one property alone is in the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such check.
    #[error("there is no check named `{0}`; there are: {1}")]
    UnknownCheck(String, String),
    /// A specification cannot be used.
    #[error(transparent)]
    Spec(#[from] BadSpec),
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stored part of a growing trace cannot be read.
    #[error("the saved copy of the trace")]
    Stored(#[source] ReadError),
    /// An index cannot be used.
    #[cfg(feature = "index")]
    #[error(transparent)]
    Index(#[from] foresee_index::IndexError),
    /// An analysis could not go on.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}
