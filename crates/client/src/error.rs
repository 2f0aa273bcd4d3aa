//! [`Error`]: errors of connections, commands and long objects; [`SettingsError`]: of settings.
//!
//! Invariant: an error names the drive where one is at fault, and repeats no secret.

use std::sync::Arc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Unanswered;

/// Error of a call.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The drive, the network, or the command: see [`csd_initiator::Error`].
    #[error(transparent)]
    Drive(#[from] csd_initiator::Error),
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The client was closed, or its process forked.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The runtime could not be started, or failed.
    #[error(transparent)]
    Runtime(Arc<csd_reactor::Error>),
    /// The caller's fault: a key of another length.
    #[error("a key has 1 to 16 bytes, not {0}")]
    KeyLength(usize),
    /// The caller's fault: an object under a key of the form that keys of pieces have.
    #[error(
        "keys of 16 bytes that begin with F5 43 53 44 are those of pieces of long objects: store \
         the object under another key"
    )]
    PieceKey,
    /// The drive has no key-value namespace.
    #[error("drive {drive}: has no key-value namespace")]
    NoNamespace {
        /// The drive's address.
        drive: String,
    },
    /// The source of an object could not be read, or its destination not be written.
    #[error("{0}")]
    Stream(Arc<std::io::Error>),
    /// A long object was replaced or deleted while it was read.
    #[error("{} was replaced while it was read: read it again", name(.0))]
    Replaced(Key),
    /// A long object does not have the bytes that its manifest says.
    #[error("{} is damaged: {reason}", name(.key))]
    Damaged {
        /// The object.
        key: Key,
        /// The difference.
        reason: String,
    },
}

impl Error {
    /// Returns the drive's status, when it answered with one.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Drive(error) => error.status(),
            _ => None,
        }
    }
}

impl From<csd_reactor::Error> for Error {
    fn from(error: csd_reactor::Error) -> Self {
        Self::Runtime(Arc::new(error))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Stream(Arc::new(error))
    }
}

fn name(key: &Key) -> String {
    format!("the object of key \"{}\"", key.as_bytes().escape_ascii())
}

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    /// The mistake, in words.
    pub message: String,
    /// True if the settings must change; false if the system refused a file.
    pub usage: bool,
}

impl SettingsError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), usage: true }
    }

    pub(crate) fn system(message: impl Into<String>) -> Self {
        Self { message: message.into(), usage: false }
    }
}
