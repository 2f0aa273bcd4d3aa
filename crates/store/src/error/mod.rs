//! [`Error`]: reason why a put, a get or a run failed.

mod drive;
mod name;
mod protection;

use std::io;

use crate::array::{self, Drive};
use crate::fault::Fault;
use crate::{layout, source};
pub use drive::DriveError;
pub use name::NameError;
pub use protection::{ProtectionError, in_words};

/// Reason why an operation on an object failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be used.
    #[error(transparent)]
    Array(array::Error),
    /// The name cannot be given, found or changed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A drive cannot do its part.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The object cannot be protected, or its protection does not cover what is lost.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// The user's input cannot be stored.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The user's chunk size, or the object's size, has no layout.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// The user's input does not fit the layout asked for.
    #[error("{name}: {why}")]
    Input {
        /// Name of the input.
        name: String,
        /// Description of the fault, with a remedy.
        why: String,
    },
    /// Every chunk is intact, but the content differs from that of the put.
    #[error("object {name:?} does not hash to its digest: it is damaged")]
    Digest {
        /// The object.
        name: String,
    },
    /// A signal has interrupted a command.
    #[error("interrupted")]
    Stopped,
    /// Writing the output failed.
    #[error("cannot write the output: {source}")]
    Write {
        /// Error of the operating system.
        source: io::Error,
    },
    /// The thread that reads, hashes and writes files failed: an internal error.
    #[error("internal error: the compute thread failed")]
    ComputeThread,
}

impl Error {
    /// Returns true if a drive's connection failed, or it is down: any error but an answer of the
    /// drive.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        use csd_initiator::Error::{Closed, Lost, Protocol, Timeout, Unreachable};
        match self {
            Self::Drive(DriveError::Command { source, .. }) => matches!(
                source,
                Closed { .. } | Lost { .. } | Protocol { .. } | Timeout { .. } | Unreachable { .. }
            ),
            Self::Array(array::Error::Down { .. }) => true,
            _ => false,
        }
    }

    /// Returns true if a piece of a protected object cannot be read, and others may give it back.
    #[must_use]
    pub fn is_of_piece(&self) -> bool {
        self.is_lost() || matches!(self, Self::Drive(DriveError::Corrupt { .. }))
    }

    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Array(error) => error.fault(),
            Self::Source(error) => error.fault(),
            Self::Name(
                NameError::Missing { .. } | NameError::Exists { .. } | NameError::Invalid { .. },
            )
            | Self::Protection(ProtectionError::Impossible { .. })
            | Self::Layout(_)
            | Self::Input { .. } => Fault::Usage,
            _ => Fault::Run,
        }
    }

    /// Returns the name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Array(error) => error.drive(),
            Self::Drive(error) => Some(error.drive()),
            _ => None,
        }
    }

    /// Converts the error of a command to `drive`.
    pub fn command(drive: &Drive, source: csd_initiator::Error) -> Self {
        DriveError::of_command(drive.name.clone(), drive.url.clone(), source).into()
    }
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Self {
        match error {
            array::Error::Command { drive, url, source } => {
                DriveError::of_command(drive, url, source).into()
            }
            other => Self::Array(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn a_wrapped_error_keeps_its_words_and_its_source() {
        let path = "/a".into();
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::from(array::Error::from(array::FileError::Io { path, source: refused }));
        assert_eq!(error.to_string(), "array file /a: permission denied");
        assert_eq!(error.source().unwrap().to_string(), "permission denied");
    }

    #[test]
    fn words_of_an_error_follow_its_fields() {
        let full = |room| DriveError::Full { drive: "d1".into(), what: "media", room };
        assert_eq!(full(None).to_string(), "drive d1 is full: its media has no room");
        let few = |up| {
            let down = vec!["d1 is down: a".to_owned(), "d2 is down: b".to_owned()];
            array::Error::TooFew { up, drives: 3, needed: 2, down }.to_string()
        };
        assert_eq!(
            few(0),
            "no drive is up; `csd array up` starts them; down: d1 is down: a; d2 is down: b"
        );
        assert_eq!(
            few(1),
            "1 of 3 drives are up, 2 are needed: `csd array up` starts those that are down: \
             d1 is down: a; d2 is down: b"
        );
    }
}
