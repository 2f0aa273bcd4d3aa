//! [`Error`]: why something could not be done to an object, by a put, a get or a run.

use std::fmt;
use std::io;

use crate::array::{self, Drive};
use crate::fault::Fault;
use crate::room::Room;
use crate::{layout, source};

/// Objects that a kernel cannot run over as they are: wrong use, worded with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidJob(pub String);

impl fmt::Display for InvalidJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidJob {}

/// Why something could not be done to an object.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be used.
    Array(array::Error),
    /// The user's input cannot be stored.
    Source(source::Error),
    /// The user's chunk size, or the object's size, has no layout.
    Layout(layout::Error),
    /// There is no such object.
    Missing {
        /// The name asked for.
        name: String,
    },
    /// There is such an object, and objects are immutable.
    Exists {
        /// The name asked for.
        name: String,
    },
    /// The user's input is not what its layout needs.
    Input {
        /// The input.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Objects that a kernel cannot run over as they are.
    InvalidJob(InvalidJob),
    /// A program of the user's own failed, or could not be brought to run.
    Program {
        /// Why.
        why: String,
    },
    /// A signal ended a program's run.
    Interrupted {
        /// Drives that could not be asked to unload the program, by name.
        left: Vec<String>,
    },
    /// Another run keeps its vector in a drive's memory.
    MemoryBusy {
        /// The drive.
        drive: String,
    },
    /// A name that no object can have.
    Name {
        /// What is wrong with it.
        why: String,
    },
    /// A command to a drive failed.
    Drive {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Why.
        source: csd_initiator::Error,
    },
    /// A drive has no room left.
    Full {
        /// The drive.
        drive: String,
        /// What of it is full.
        what: &'static str,
        /// What objects can still take, where that was asked.
        room: Option<Room>,
    },
    /// What a drive holds is damaged or contradicts itself.
    Corrupt {
        /// The drive.
        drive: String,
        /// The object.
        object: String,
        /// What is wrong.
        why: String,
    },
    /// The chunks are sound, but are not what was put.
    Digest {
        /// The object.
        name: String,
    },
    /// Another writer of the same name was there first, or came later and won.
    Overtaken {
        /// The name.
        name: String,
    },
    /// Another writer of the name was cut off, and only drives that are down can tell how far it
    /// came.
    Undecided {
        /// The name.
        name: String,
    },
    /// The object was removed while it was read.
    Removed {
        /// The name.
        name: String,
    },
    /// Writing the output failed.
    Write {
        /// Why.
        source: io::Error,
    },
    /// The thread that reads, hashes and writes files failed: our bug.
    Lane,
}

impl Error {
    /// Whose fault it is.
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

    /// Name of the drive at fault, if it is one drive.
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

    /// A failed command of `drive`.
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
