//! [`Error`]: what may go wrong, sorted by who is at fault; each names the drive.
//!
//! Invariant: [`Error::Status`], [`Error::Damaged`], [`Error::Misuse`] and [`Error::TooLarge`]
//! leave the controller usable; every other error of a command means that it is closed.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::status::Status;

/// Why a connection or a command failed. `drive` is the drive's address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The user's fault: a text that is not a drive's address.
    BadAddress {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The caller's fault: something that this drive cannot be asked.
    Misuse {
        /// The drive's address.
        drive: Arc<str>,
        /// What is wrong.
        reason: String,
    },
    /// The caller's fault: a value or transfer longer than the drive takes or the caller allowed.
    TooLarge {
        /// The drive's address.
        drive: Arc<str>,
        /// Size in bytes.
        bytes: u64,
        /// Largest size in bytes.
        bytes_max: u64,
    },
    /// The network's fault: no connection could be made.
    Unreachable {
        /// The drive's address.
        drive: Arc<str>,
        /// What the operating system said.
        cause: Arc<io::Error>,
    },
    /// The network's or the drive's fault: an established connection broke.
    Lost {
        /// The drive's address.
        drive: Arc<str>,
        /// What the operating system said.
        cause: Arc<io::Error>,
    },
    /// The drive's fault: no answer in time.
    Timeout {
        /// The drive's address.
        drive: Arc<str>,
        /// What was waited for.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// The drive's verdict on one command.
    Status {
        /// The drive's address.
        drive: Arc<str>,
        /// Name of the command.
        what: &'static str,
        /// Its status.
        status: Status,
    },
    /// The network's fault: data of one command arrived with a wrong digest.
    Damaged {
        /// The drive's address.
        drive: Arc<str>,
        /// Name of the command.
        what: &'static str,
    },
    /// The drive's fault: it broke the rules of the protocol.
    Protocol {
        /// The drive's address.
        drive: Arc<str>,
        /// Which rule.
        reason: String,
    },
    /// The host's or the drive's fault: one could not prove to the other who it is.
    Authentication {
        /// The drive's address.
        drive: Arc<str>,
        /// Why.
        reason: String,
    },
    /// The controller was closed on this side.
    Closed {
        /// The drive's address.
        drive: Arc<str>,
    },
}

impl Error {
    /// Returns the drive's status, when it answered with one.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Address of the drive; `None` for a text that is no address.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::BadAddress { .. } => None,
            Self::Misuse { drive, .. }
            | Self::TooLarge { drive, .. }
            | Self::Unreachable { drive, .. }
            | Self::Lost { drive, .. }
            | Self::Timeout { drive, .. }
            | Self::Status { drive, .. }
            | Self::Damaged { drive, .. }
            | Self::Protocol { drive, .. }
            | Self::Authentication { drive, .. }
            | Self::Closed { drive } => Some(drive),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(drive) = self.drive() {
            write!(f, "drive {drive}: ")?;
        }
        match self {
            Self::BadAddress { text, reason } => write!(f, "{text:?} is not an address: {reason}"),
            Self::Misuse { reason, .. } => f.write_str(reason),
            Self::TooLarge { bytes, bytes_max, .. } => {
                write!(f, "{bytes} bytes are more than the {bytes_max} bytes allowed")
            }
            Self::Unreachable { cause, .. } => write!(f, "cannot be reached: {cause}"),
            Self::Lost { cause, .. } => write!(f, "the connection was lost: {cause}"),
            Self::Timeout { what, after, .. } => {
                write!(f, "no answer to {what} within {} s", after.as_secs_f64())
            }
            Self::Status { what, status, .. } => write!(f, "{what} failed: {status}"),
            Self::Damaged { what, .. } => write!(f, "data of {what} arrived damaged"),
            Self::Protocol { reason, .. } => write!(f, "broke the protocol: {reason}"),
            Self::Authentication { reason, .. } => write!(f, "authentication failed: {reason}"),
            Self::Closed { .. } => f.write_str("the controller is closed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { cause, .. } | Self::Lost { cause, .. } => Some(&**cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_cross_cores_and_name_the_drive() {
        fn crosses<T: Send + Sync + 'static>(value: T) -> T {
            value
        }
        let drive: Arc<str> = "nvme+tcp://10.0.0.1:4420/nqn.x".into();
        let status = Status::KEY_EXISTS;
        let error = crosses(Error::Status { drive, what: "Store", status });
        assert_eq!(error.status(), Some(Status::KEY_EXISTS));
        let text = error.to_string();
        assert!(text.starts_with("drive nvme+tcp://10.0.0.1:4420/nqn.x: Store failed"), "{text}");
    }
}
