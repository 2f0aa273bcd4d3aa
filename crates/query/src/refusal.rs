//! [`Refusal`]: what a plan of a drive cannot have, in words.

use std::fmt;

/// Reason why something has no place in a plan of a drive: the host then does that part itself, and
/// a drive that meets it refuses the plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    /// Makes a refusal of what is named in words.
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }

    /// Names the place where it was met.
    pub(crate) fn of(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<datafusion::error::DataFusionError> for Refusal {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::new(error.strip_backtrace())
    }
}

impl From<datafusion::arrow::error::ArrowError> for Refusal {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        Self::new(error)
    }
}
