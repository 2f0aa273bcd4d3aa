//! [`DriveError`]: reason why a drive cannot do its part.

use csd_nvme::status::Status;

use crate::array;
use crate::room::{MEDIA, Room};

/// Why a drive cannot do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// A command to a drive failed.
    #[error("drive {drive} ({url}): {}", array::words(.source))]
    Command {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Error of the command.
        source: csd_initiator::Error,
    },
    /// A drive does not know a command.
    #[error("drive {drive} ({url}) is of an earlier version, update it: {}", array::words(.source))]
    Outdated {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Error of the command.
        source: csd_initiator::Error,
    },
    /// A drive that should take a place of the array belongs elsewhere.
    #[error(
        "drive {drive} holds data of another array or of another place of this one: put the right \
         drive there, or erase this one"
    )]
    Foreign {
        /// The drive.
        drive: String,
    },
    /// A drive has no room left.
    #[error(
        "drive {drive} is full: its {what} has no room{}",
        if .room.is_some() { " for the object" } else { "" }
    )]
    Full {
        /// The drive.
        drive: String,
        /// Part of the drive that is full.
        what: &'static str,
        /// Remaining room for objects, if it was determined.
        room: Option<Room>,
    },
    /// Data on a drive is damaged or contradicts itself.
    #[error("drive {drive}, object {object:?}: corrupt: {why}")]
    Corrupt {
        /// The drive.
        drive: String,
        /// The object.
        object: String,
        /// Description of the fault.
        why: String,
    },
}

impl DriveError {
    /// Returns the name of the drive.
    #[must_use]
    pub fn drive(&self) -> &str {
        match self {
            Self::Command { drive, .. }
            | Self::Outdated { drive, .. }
            | Self::Foreign { drive }
            | Self::Full { drive, .. }
            | Self::Corrupt { drive, .. } => drive,
        }
    }

    /// Converts the error of a command to the drive at `url`.
    pub(crate) fn of_command(drive: String, url: String, source: csd_initiator::Error) -> Self {
        match source.status() {
            Some(Status::CAPACITY_EXCEEDED) => Self::Full { drive, what: MEDIA, room: None },
            Some(Status::INVALID_OPCODE) => Self::Outdated { drive, url, source },
            _ => Self::Command { drive, url, source },
        }
    }
}
