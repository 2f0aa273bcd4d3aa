//! [`Error`]: reason why a put, a get or a run failed.

use std::fmt;
use std::io;

use crate::array::{self, Drive};
use crate::fault::Fault;
use crate::room::Room;
use crate::{layout, source};

/// Reason why a kernel cannot run over the given objects, with a remedy: wrong use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidJob(pub String);

impl fmt::Display for InvalidJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidJob {}

/// Reason why an operation on an object failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be used.
    Array(array::Error),
    /// The user's input cannot be stored.
    Source(source::Error),
    /// The user's chunk size, or the object's size, has no layout.
    Layout(layout::Error),
    /// No object has this name.
    Missing {
        /// Name asked for.
        name: String,
    },
    /// An object of this name exists, and objects are immutable.
    Exists {
        /// Name asked for.
        name: String,
    },
    /// The user's input does not fit the layout asked for.
    Input {
        /// Name of the input.
        name: String,
        /// Description of the fault, with a remedy.
        why: String,
    },
    /// A kernel cannot run over the given objects.
    InvalidJob(InvalidJob),
    /// A user's program failed, or could not be started.
    Program {
        /// Reason, in words.
        why: String,
    },
    /// A signal interrupted a program's run.
    Interrupted {
        /// Names of the drives that could not be asked to unload the program.
        left: Vec<String>,
    },
    /// Another run keeps its vector in the drive's memory.
    MemoryBusy {
        /// The drive.
        drive: String,
    },
    /// The name is invalid for an object.
    Name {
        /// Rule that the name breaks.
        why: String,
    },
    /// A command to a drive failed.
    Drive {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Error of the command.
        source: csd_initiator::Error,
    },
    /// A drive has no room left.
    Full {
        /// The drive.
        drive: String,
        /// Part of the drive that is full.
        what: &'static str,
        /// Remaining room for objects, if it was determined.
        room: Option<Room>,
    },
    /// Data on a drive is damaged or contradicts itself.
    Corrupt {
        /// The drive.
        drive: String,
        /// The object.
        object: String,
        /// Description of the fault.
        why: String,
    },
    /// Every chunk is intact, but the content differs from that of the put.
    Digest {
        /// The object.
        name: String,
    },
    /// Another writer of the name won, earlier or later.
    Overtaken {
        /// The name.
        name: String,
    },
    /// Another writer of the name was interrupted, and its progress is known only to drives that
    /// are down.
    Undecided {
        /// The name.
        name: String,
    },
    /// The object was removed while it was being read.
    Removed {
        /// The name.
        name: String,
    },
    /// Writing the output failed.
    Write {
        /// Error of the operating system.
        source: io::Error,
    },
    /// The thread that reads, hashes and writes files failed: an internal error.
    Lane,
}

impl Error {
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
            | Self::InvalidJob(_)
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
            | Self::Full { drive, .. }
            | Self::Corrupt { drive, .. }
            | Self::MemoryBusy { drive } => Some(drive),
            _ => None,
        }
    }

    /// Converts the error of a command to `drive`.
    pub(crate) fn command(drive: &Drive, source: csd_initiator::Error) -> Self {
        use csd_nvme::status::Status;
        match source.status() {
            Some(Status::CAPACITY_EXCEEDED) => {
                Self::Full { drive: drive.name.clone(), what: "media", room: None }
            }
            _ => Self::Drive { drive: drive.name.clone(), url: drive.url.clone(), source },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(error) => error.fmt(f),
            Self::Source(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Missing { name } => write!(f, "there is no object {name:?}"),
            Self::Exists { name } => {
                write!(f, "object {name:?} exists and is immutable: remove it with `csd rm` first")
            }
            Self::Input { name, why } => write!(f, "{name}: {why}"),
            Self::InvalidJob(invalid) => invalid.fmt(f),
            Self::Program { why } => write!(f, "the program failed: {why}"),
            Self::Interrupted { left } if left.is_empty() => {
                f.write_str("interrupted; the program is unloaded from the drives")
            }
            Self::Interrupted { left } => write!(
                f,
                "interrupted; drive {} may still have the program: the next run unloads it",
                left.join(", ")
            ),
            Self::MemoryBusy { drive } => {
                write!(f, "the memory of drive {drive} is in use by another run: wait for its end")
            }
            Self::Name { why } => f.write_str(why),
            Self::Drive { drive, url, source } => {
                write!(f, "drive {drive} ({url}): {}", array::words(source))
            }
            Self::Full { drive, what, room } => {
                let whom = if room.is_some() { " for the object" } else { "" };
                write!(f, "drive {drive} is full: its {what} has no room{whom}")
            }
            Self::Corrupt { drive, object, why } => {
                write!(f, "drive {drive}, object {object:?}: corrupt: {why}")
            }
            Self::Digest { name } => {
                write!(f, "object {name:?} does not hash to its digest: it is damaged")
            }
            Self::Overtaken { name } => {
                write!(f, "another put or rm of object {name:?} was under way and won")
            }
            Self::Undecided { name } => write!(
                f,
                "another put or rm of object {name:?} was cut off, and a drive that is down must \
                 tell how far it came: bring that drive back"
            ),
            Self::Removed { name } => {
                write!(f, "object {name:?} was removed while it was read")
            }
            Self::Write { source } => write!(f, "cannot write the output: {source}"),
            Self::Lane => f.write_str("internal error: the compute lane failed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Drive { source, .. } => Some(source),
            Self::Write { source } => Some(source),
            _ => None,
        }
    }
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Self {
        Self::Array(error)
    }
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        Self::Source(error)
    }
}

impl From<layout::Error> for Error {
    fn from(error: layout::Error) -> Self {
        Self::Layout(error)
    }
}
