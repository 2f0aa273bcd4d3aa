//! [`Error`] of this crate.

use std::io;

/// Reason why an operating system was not started, stopped or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This machine or the given options do not allow it.
    #[error("{0}")]
    Usage(String),
    /// A step failed.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Makes an error of a step from one of the system.
    pub fn os(what: impl std::fmt::Display, error: impl Into<io::Error>) -> Self {
        Self::Failed(format!("{what}: {}", error.into()))
    }
}
