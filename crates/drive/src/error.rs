//! Errors of a drive, by the party at fault.

use csd_kvlog::error::MediaError;

/// Why a drive could not be opened or served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asks for something impossible. The text says what to change.
    #[error("{0}")]
    Usage(String),
    /// The medium cannot be used.
    #[error(transparent)]
    Medium(csd_kvlog::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address with {option}")]
    Listen {
        /// Option that set the address.
        option: &'static str,
        /// Address.
        address: csd_reactor::Endpoint,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The runtime could not start, or a core ended in a panic.
    #[error("runtime: {0}")]
    Runtime(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<csd_kvlog::Error> for Error {
    fn from(error: csd_kvlog::Error) -> Self {
        match error {
            csd_kvlog::Error::Usage(text) => Self::Usage(text),
            other => Self::Medium(other),
        }
    }
}

impl From<MediaError> for Error {
    fn from(error: MediaError) -> Self {
        Self::Medium(error.into())
    }
}
