//! [`Error`]: errors of connections and commands, sorted by the party at fault; each names the
//! drive.
//!
//! Invariant: [`Error::Status`], [`Error::Damaged`], [`Error::Misuse`] and [`Error::TooLarge`]
//! leave the controller usable; every other error of a command means that it is closed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::status::Status;

/// Error of a connection or a command. `drive` is the drive's address.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user's fault: a text that is not a drive's address.
    #[error("{text:?} is not an address: {reason}")]
    BadAddress {
        /// The text as given.
        text: String,
        /// The error in it.
        reason: String,
    },
    /// The caller's fault: a request that this drive does not support.
    #[error("drive {drive}: {reason}")]
    Misuse {
        /// The drive's address.
        drive: Arc<str>,
        /// The mistake.
        reason: String,
    },
    /// The caller's fault: a value or transfer above the limit of the drive or the caller.
    #[error("drive {drive}: {bytes} bytes are more than the {bytes_max} bytes allowed")]
    TooLarge {
        /// The drive's address.
        drive: Arc<str>,
        /// Size in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        bytes_max: u64,
    },
    /// The network's fault: no connection could be made.
    #[error("drive {drive}: cannot be reached: {cause}")]
    Unreachable {
        /// The drive's address.
        drive: Arc<str>,
        /// Error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The network's or the drive's fault: an established connection broke.
    #[error("drive {drive}: the connection was lost: {cause}")]
    Lost {
        /// The drive's address.
        drive: Arc<str>,
        /// Error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// The drive's fault: no answer in time.
    #[error("drive {drive}: no answer to {what} within {} s", .after.as_secs_f64())]
    Timeout {
        /// The drive's address.
        drive: Arc<str>,
        /// The awaited answer or step.
        what: &'static str,
        /// Time waited.
        after: Duration,
    },
    /// The drive's verdict on one command.
    #[error("drive {drive}: {what} failed: {}", verdict(*.status, .reason.as_deref()))]
    Status {
        /// The drive's address.
        drive: Arc<str>,
        /// Name of the command.
        what: &'static str,
        /// Its status.
        status: Status,
        /// Reason in words, of an execution that is in the drive's log.
        reason: Option<Arc<str>>,
    },
    /// The network's fault: data of one command arrived with a wrong digest.
    #[error("drive {drive}: data of {what} arrived damaged")]
    Damaged {
        /// The drive's address.
        drive: Arc<str>,
        /// Name of the command.
        what: &'static str,
    },
    /// The drive's fault: it broke the rules of the protocol.
    #[error("drive {drive}: broke the protocol: {reason}")]
    Protocol {
        /// The drive's address.
        drive: Arc<str>,
        /// Broken rule.
        reason: String,
    },
    /// The host's or the drive's fault: one could not prove its identity to the other.
    #[error("drive {drive}: authentication failed: {reason}")]
    Authentication {
        /// The drive's address.
        drive: Arc<str>,
        /// Reason.
        reason: String,
    },
    /// The controller was closed on this side.
    #[error("drive {drive}: the controller is closed")]
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

    /// Returns the reason of a failed execution in words, if the drive's log has it.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Status { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }

    /// Returns the address of the drive; `None` for a text that is not an address.
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

fn verdict(status: Status, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{reason} ({status})"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_has_a_source() {
        let cause = Arc::new(io::Error::from(io::ErrorKind::ConnectionReset));
        let error = Error::Lost { drive: "nvme+tcp://d".into(), cause: Arc::clone(&cause) };
        let source = std::error::Error::source(&error).expect("the system's error");
        assert_eq!(source.to_string(), cause.to_string());
        let text = format!("drive nvme+tcp://d: the connection was lost: {cause}");
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn errors_cross_cores_and_name_the_drive() {
        fn crosses<T: Send + Sync + 'static>(value: T) -> T {
            value
        }
        let drive: Arc<str> = "nvme+tcp://10.0.0.1:4420/nqn.x".into();
        let status = Status::KEY_EXISTS;
        let error = crosses(Error::Status { drive, what: "Store", status, reason: None });
        assert_eq!(error.status(), Some(Status::KEY_EXISTS));
        let text = error.to_string();
        assert!(text.starts_with("drive nvme+tcp://10.0.0.1:4420/nqn.x: Store failed"), "{text}");
    }
}
