//! Errors of the engine, by the party at fault, and their mapping to status codes.

use std::path::PathBuf;

use csd_nvme::status::Status;

/// Why a medium could not be opened, recovered or checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asks for something impossible. The text says what to change.
    #[error("{0}")]
    Usage(String),
    /// The media cannot be opened, created or resized.
    #[error("media {}: {source}", .path.display())]
    Media {
        /// Path of the medium.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The medium holds no drive of this format, or a version that this program does not read.
    #[error("not a usable drive: {0}")]
    Format(String),
    /// The log is damaged where it was acknowledged. The text has the place.
    #[error(
        "the medium is damaged ({0}), and serving it could lose or bring back values; \
         `csd drive check` tells all of it, --salvage serves what is whole, read-only"
    )]
    Damaged(String),
    /// Reading or writing the media failed.
    #[error(transparent)]
    Access(#[from] MediaError),
}

/// Why an access to the media failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The range is not on the medium. This is an error of the program, and the access is refused.
    #[error("access beyond the end of the media")]
    OutOfRange,
    /// The file system, the user's quota or the process's limit of file size has no space for the
    /// write. The text is the operating system's.
    #[error("no room left where the media lies: {0}")]
    Full(String),
    /// The operating system failed the access.
    #[error("media access failed: {0}")]
    Io(String),
    /// An earlier sync failed. The medium is read-only from then on, because data of the failed
    /// sync may be lost, and a retry would hide that.
    #[error("media is read-only after a failed sync")]
    ReadOnly,
    /// The medium is no longer what was opened, so that nothing written from now on would be found
    /// again: its file was deleted or cut, or its superblock overwritten. It is read-only from then
    /// on.
    #[error("{0}")]
    Gone(String),
    /// The power is cut (simulated media only).
    #[error("media has lost its power")]
    PowerCut,
}

impl From<&std::io::Error> for MediaError {
    fn from(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Kind of an access, for the status of its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading blocks.
    Read,
    /// Reading a value. The Key Value command set has a status of its own for that.
    Value,
    /// Writing or syncing.
    Write,
}

impl MediaError {
    /// Returns the status that a command fails with.
    pub fn status(&self, access: Access) -> Status {
        match (self, access) {
            (Self::OutOfRange, _) => Status::INTERNAL_ERROR,
            (Self::Full(_), _) => Status::CAPACITY_EXCEEDED,
            (Self::ReadOnly | Self::Gone(_), _) => Status::NAMESPACE_WRITE_PROTECTED,
            (Self::Io(_) | Self::PowerCut, Access::Read) => Status::UNRECOVERED_READ_ERROR,
            (Self::Io(_) | Self::PowerCut, Access::Value) => Status::UNRECOVERED_ERROR,
            (Self::Io(_) | Self::PowerCut, Access::Write) => Status::WRITE_FAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io::{Error as IoError, ErrorKind};

    use super::*;

    #[test]
    fn failures_of_the_medium_have_their_status() {
        let status =
            |kind: ErrorKind, access| MediaError::from(&IoError::from(kind)).status(access);
        assert_eq!(status(ErrorKind::StorageFull, Access::Write), Status::CAPACITY_EXCEEDED);
        assert_eq!(status(ErrorKind::QuotaExceeded, Access::Write), Status::CAPACITY_EXCEEDED);
        assert_eq!(status(ErrorKind::FileTooLarge, Access::Write), Status::CAPACITY_EXCEEDED);
        assert_eq!(status(ErrorKind::Other, Access::Write), Status::WRITE_FAULT);
        assert_eq!(status(ErrorKind::Other, Access::Read), Status::UNRECOVERED_READ_ERROR);
        let read_only = MediaError::ReadOnly.status(Access::Write);
        assert_eq!(read_only, Status::NAMESPACE_WRITE_PROTECTED);
    }

    #[test]
    fn an_error_of_the_system_is_the_source_and_is_printed_once() {
        let source = IoError::from(ErrorKind::PermissionDenied);
        let error = Error::Media { path: "/m".into(), source };
        assert_eq!(error.to_string(), "media /m: permission denied");
        assert_eq!(error.source().unwrap().to_string(), "permission denied");
        let full = MediaError::from(&IoError::from(ErrorKind::StorageFull));
        let error = Error::from(full.clone());
        assert_eq!(error.to_string(), full.to_string());
        assert!(error.source().is_none());
    }
}
