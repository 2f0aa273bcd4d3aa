//! [`Error`]: reasons why a measurement fails.

use std::io;
use std::path::Path;

/// Reason why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted: the measurement is not complete, and nothing was recorded")]
    Interrupted,
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System {
        /// Action that failed.
        what: String,
        /// Reason by the operating system.
        source: io::Error,
    },
    /// The measurement cannot be done as asked for.
    #[error("{0}")]
    Usage(String),
    /// A server failed, or broke the protocol.
    #[error("{0}")]
    Server(String),
    /// The client library's error.
    #[error(transparent)]
    Client(#[from] csd_client::Error),
}

impl From<csd_initiator::Error> for Error {
    fn from(error: csd_initiator::Error) -> Self {
        Self::Client(error.into())
    }
}

impl Error {
    /// Returns a function that makes an error of the operating system's.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what: what.into(), source }
    }

    /// Does the same for an action on a file or folder.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::system(path.display().to_string())
    }
}
