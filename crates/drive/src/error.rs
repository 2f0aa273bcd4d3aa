//! Errors of a drive, by the party at fault, and their mapping to status codes.

use std::path::PathBuf;

use csd_nvme::status::Status;

/// Why a drive could not be opened or served.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller asks for something impossible. The text says what to change.
    Usage(String),
    /// The media cannot be opened, created or resized.
    Media {
        /// Path of the medium.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The medium holds no drive of this format, or a version that this program does not read.
    Format(String),
    /// The log is damaged where it was acknowledged. The text has the place.
    Damaged(String),
    /// Reading or writing the media failed.
    Access(MediaError),
    /// The address cannot be listened on.
    Listen {
        /// Option that set the address.
        option: &'static str,
        /// Address.
        address: std::net::SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The runtime could not start, or a core ended in a panic.
    Runtime(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text) => write!(f, "{text}"),
            Self::Media { path, source } => write!(f, "media {}: {source}", path.display()),
            Self::Format(text) => write!(f, "not a usable drive: {text}"),
            Self::Damaged(text) => write!(
                f,
                "the medium is damaged ({text}), and serving it could lose or bring back values; \
                 `csd drive check` tells all of it, --salvage serves what is whole, read-only"
            ),
            Self::Access(error) => write!(f, "{error}"),
            Self::Listen { option, address, source } => write!(
                f,
                "cannot listen on {address}: {source}; choose another address with {option}"
            ),
            Self::Runtime(text) => write!(f, "runtime: {text}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why an access to the media failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaError {
    /// The range is not on the medium. This is an error of the program, and the access is refused.
    OutOfRange,
    /// The file system, the user's quota or the process's limit of file size has no space for the
    /// write.
    Full,
    /// The operating system failed the access.
    Io(String),
    /// An earlier sync failed. The medium is read-only from then on, because data of the failed
    /// sync may be lost, and a retry would hide that.
    ReadOnly,
    /// The power is cut (simulated media only).
    PowerCut,
}

impl std::fmt::Display for MediaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfRange => write!(f, "access beyond the end of the media"),
            Self::Full => write!(f, "no room left where the media lies"),
            Self::Io(text) => write!(f, "media access failed: {text}"),
            Self::ReadOnly => write!(f, "media is read-only after a failed sync"),
            Self::PowerCut => write!(f, "media has lost its power"),
        }
    }
}

impl std::error::Error for MediaError {}

impl From<&std::io::Error> for MediaError {
    fn from(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full,
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
            (Self::Full, _) => Status::CAPACITY_EXCEEDED,
            (Self::ReadOnly, _) => Status::NAMESPACE_WRITE_PROTECTED,
            (Self::Io(_) | Self::PowerCut, Access::Read) => Status::UNRECOVERED_READ_ERROR,
            (Self::Io(_) | Self::PowerCut, Access::Value) => Status::UNRECOVERED_ERROR,
            (Self::Io(_) | Self::PowerCut, Access::Write) => Status::WRITE_FAULT,
        }
    }
}

impl From<MediaError> for Error {
    fn from(error: MediaError) -> Self {
        Self::Access(error)
    }
}

#[cfg(test)]
mod tests {
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
}
