//! [`Error`]: reason why a put, a get or a run failed.

use std::io;
use std::ops::Range;

use csd_nvme::status::Status;

use crate::array::{self, Drive};
use crate::fault::Fault;
use crate::room::Room;
use crate::{layout, source};

/// Reason why an operation on an object failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be used.
    #[error(transparent)]
    Array(array::Error),
    /// The user's input cannot be stored.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The user's chunk size, or the object's size, has no layout.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// No object has this name.
    #[error("there is no object {name:?}")]
    Missing {
        /// Name asked for.
        name: String,
    },
    /// An object of this name exists, and objects are immutable.
    #[error("object {name:?} exists and is immutable: remove it with `csd rm` first")]
    Exists {
        /// Name asked for.
        name: String,
    },
    /// The user's input does not fit the layout asked for.
    #[error("{name}: {why}")]
    Input {
        /// Name of the input.
        name: String,
        /// Description of the fault, with a remedy.
        why: String,
    },
    /// The name is invalid for an object.
    #[error("{why}")]
    Name {
        /// Rule that the name breaks.
        why: String,
    },
    /// A command to a drive failed.
    #[error("drive {drive} ({url}): {}", array::words(.source))]
    Drive {
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
    /// Every chunk is intact, but the content differs from that of the put.
    #[error("object {name:?} does not hash to its digest: it is damaged")]
    Digest {
        /// The object.
        name: String,
    },
    /// More pieces of an object are lost than its parity covers.
    #[error(
        "object {name:?}: more pieces are lost than its parity covers, bytes {} cannot be read: \
         {why}; bring the drives back, or fetch the rest with `csd get --partial`",
        in_words(.ranges)
    )]
    Lost {
        /// The object.
        name: String,
        /// Bytes that cannot be read, in order.
        ranges: Vec<Range<u64>>,
        /// Reason of the first loss.
        why: String,
    },
    /// An object cannot have this protection.
    #[error("{why}")]
    Protection {
        /// Description of the fault, with a remedy.
        why: String,
    },
    /// Too few pieces of a stripe are durable.
    #[error(
        "object {name:?}: stripe {stripe} has only {durable} durable pieces and needs {needed}, \
         one more than its data: bring drives back first"
    )]
    Thin {
        /// The object.
        name: String,
        /// The first such stripe.
        stripe: u32,
        /// Number of its durable pieces.
        durable: usize,
        /// Number of pieces that it needs.
        needed: usize,
    },
    /// Too few drives vote for a change of a name that more than a majority must hold.
    #[error(
        "object {name:?} survives the loss of {losses} drives, so each change of its name needs \
         {needed} of {drives} drives, and {up} are up and vote: bring drives back, or choose fewer \
         parity pieces; {}",
        .down.join("; ")
    )]
    Writers {
        /// The name.
        name: String,
        /// Number of losses that the name survives.
        losses: usize,
        /// Number of drives that must hold its entries.
        needed: usize,
        /// Number of drives of the array.
        drives: usize,
        /// Number of drives that are up and vote.
        up: usize,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
    /// Another writer of the name won, earlier or later.
    #[error("another put or rm of object {name:?} was under way and won")]
    Overtaken {
        /// The name.
        name: String,
    },
    /// Another writer of the name was interrupted, and its progress is known only to drives that
    /// are down.
    #[error(
        "another put or rm of object {name:?} was cut off, and a drive that is down must tell how \
         far it came: bring that drive back"
    )]
    Undecided {
        /// The name.
        name: String,
    },
    /// The object was removed while it was being read.
    #[error("object {name:?} was removed while it was read")]
    Removed {
        /// The name.
        name: String,
    },
    /// The object was moved to other drives while it was being read.
    #[error("object {name:?} was moved to other drives while it was read: read it again")]
    Moved {
        /// The name.
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

/// Most ranges in a message.
const RANGES_SHOWN: usize = 8;

/// Describes ranges of bytes.
#[must_use]
pub fn in_words(ranges: &[Range<u64>]) -> String {
    let shown = ranges.iter().take(RANGES_SHOWN);
    let shown: Vec<String> =
        shown.map(|bytes| format!("{}-{}", bytes.start, bytes.end - 1)).collect();
    let more = match ranges.len().saturating_sub(RANGES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more ranges"),
    };
    shown.join(", ") + &more
}

impl Error {
    /// Returns true if a drive's connection failed, or it is down: any error but an answer of the
    /// drive.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        use csd_initiator::Error::{Closed, Lost, Protocol, Timeout, Unreachable};
        match self {
            Self::Drive { source, .. } => matches!(
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
        self.is_lost() || matches!(self, Self::Corrupt { .. })
    }

    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Array(error) => error.fault(),
            Self::Source(error) => error.fault(),
            Self::Layout(_)
            | Self::Missing { .. }
            | Self::Exists { .. }
            | Self::Input { .. }
            | Self::Protection { .. }
            | Self::Name { .. } => Fault::Usage,
            _ => Fault::Run,
        }
    }

    /// Returns the name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Array(error) => error.drive(),
            Self::Drive { drive, .. }
            | Self::Outdated { drive, .. }
            | Self::Foreign { drive }
            | Self::Full { drive, .. }
            | Self::Corrupt { drive, .. } => Some(drive),
            _ => None,
        }
    }

    /// Converts the error of a command to `drive`.
    pub fn command(drive: &Drive, source: csd_initiator::Error) -> Self {
        Self::of_command(drive.name.clone(), drive.url.clone(), source)
    }

    fn of_command(drive: String, url: String, source: csd_initiator::Error) -> Self {
        match source.status() {
            Some(Status::CAPACITY_EXCEEDED) => Self::Full { drive, what: "media", room: None },
            Some(Status::INVALID_OPCODE) => Self::Outdated { drive, url, source },
            _ => Self::Drive { drive, url, source },
        }
    }
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Self {
        match error {
            array::Error::Command { drive, url, source } => Self::of_command(drive, url, source),
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
    fn many_ranges_are_cut_short() {
        assert_eq!(in_words(&[0..1, 4096..8192]), "0-0, 4096-8191");
        let many: Vec<_> = (0..10).map(|begin| begin..begin + 1).collect();
        assert!(in_words(&many).ends_with("7-7 and 2 more ranges"));
    }

    #[test]
    fn words_of_an_error_follow_its_fields() {
        let full = |room| Error::Full { drive: "d1".into(), what: "media", room };
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
