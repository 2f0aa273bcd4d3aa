//! [`Error`]: reason why an array cannot be used.

use super::vote::remedy;
use super::{FileError, words};
use crate::fault::Fault;

/// Reason why an array cannot be used: drives or the network are at fault, except for
/// [`Error::File`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array file is missing or invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// A drive that is needed is down.
    #[error("drive {drive} ({url}) is down: {why}")]
    Down {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Reason, in words.
        why: String,
    },
    /// Too few of the drives are up and vote.
    #[error("{}: {}", too_few(*.up, *.drives, *.needed, .down), .down.join("; "))]
    TooFew {
        /// Number of drives that are up and vote.
        up: usize,
        /// Number of drives of the array.
        drives: usize,
        /// Number of drives that are needed.
        needed: usize,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
    /// Too few of the other drives are up and vote to rebuild one.
    #[error(
        "drive {drive} is rebuilt from the other drives: {up} of {others} are up and vote, \
         {needed} are needed: {}",
        .down.join("; ")
    )]
    TooFewOthers {
        /// The drive.
        drive: String,
        /// Number of other drives that are up and vote.
        up: usize,
        /// Number of other drives.
        others: usize,
        /// Number of other drives that are needed.
        needed: usize,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
    /// A command about membership failed.
    #[error("drive {drive} ({url}): {}", words(.source))]
    Command {
        /// The drive.
        drive: String,
        /// Its address.
        url: String,
        /// Error of the command.
        source: csd_initiator::Error,
    },
    /// A drive has lost its vote while it was in use.
    #[error("drive {drive} does not vote: {why}; {}", remedy(.drive, .why))]
    Vote {
        /// The drive.
        drive: String,
        /// Reason, in words.
        why: String,
    },
    /// Other hosts register drives all the time.
    #[error("other hosts changed the list of drives again and again: try again")]
    Restless,
}

/// Returns the beginning of the message of [`Error::TooFew`].
fn too_few(up: usize, drives: usize, needed: usize, down: &[String]) -> String {
    let is_down = |why: &String| why.contains(" is down: ");
    match (up, down.iter().all(is_down)) {
        (0, true) => "no drive is up; `csd array up` starts them; down".to_owned(),
        (_, true) => format!(
            "{up} of {drives} drives are up, {needed} are needed: `csd array up` starts those that \
             are down"
        ),
        (_, false) => format!("{up} of {drives} drives are up and vote, {needed} are needed"),
    }
}

impl Error {
    /// Returns the name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Down { drive, .. } | Self::Command { drive, .. } | Self::Vote { drive, .. } => {
                Some(drive)
            }
            Self::File(_) | Self::TooFew { .. } | Self::TooFewOthers { .. } | Self::Restless => {
                None
            }
        }
    }

    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::File(error) => error.fault(),
            _ => Fault::Run,
        }
    }
}
