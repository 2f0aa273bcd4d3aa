//! [`Error`]: reason why a run failed.

use std::borrow::Cow;

use csd_store::array::Drive;
use csd_store::fault::Fault;

/// Reason why a kernel cannot run over the given objects, with a remedy: wrong use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidJob(pub String);

/// Reason why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An object cannot be read or written.
    #[error(transparent)]
    Store(#[from] csd_store::Error),
    /// A kernel cannot run over the given objects.
    #[error(transparent)]
    InvalidJob(#[from] InvalidJob),
    /// A user's program failed, or could not be started.
    #[error("the program failed: {why}")]
    Program {
        /// Reason, in words.
        why: String,
    },
    /// A signal interrupted a program's run.
    #[error("interrupted; {}", unloaded(.left))]
    Interrupted {
        /// Names of the drives that could not be asked to unload the program.
        left: Vec<String>,
    },
    /// Another run keeps its vector in the drive's memory.
    #[error("the memory of drive {drive} is in use by another run: wait for its end")]
    MemoryBusy {
        /// The drive.
        drive: String,
    },
}

/// Returns the end of the message of [`Error::Interrupted`].
fn unloaded(left: &[String]) -> Cow<'static, str> {
    if left.is_empty() {
        return "the program is unloaded from the drives".into();
    }
    let left = left.join(", ");
    format!("drive {left} may still have the program: the next run unloads it").into()
}

impl Error {
    /// Converts the error of a command to `drive`.
    pub(crate) fn command(drive: &Drive, source: csd_initiator::Error) -> Self {
        csd_store::Error::command(drive, source).into()
    }

    /// Returns the error of data of `object` on `drive` that contradicts itself.
    pub(crate) fn corrupt(drive: &str, object: String, why: String) -> Self {
        csd_store::Error::Drive(csd_store::error::DriveError::Corrupt {
            drive: drive.to_owned(),
            object,
            why,
        })
        .into()
    }

    /// Returns true if a piece of a protected object cannot be read, and others may give it back.
    pub(crate) fn is_of_piece(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_of_piece())
    }

    /// Returns true if a drive's connection failed, or it is down: any error but an answer of the
    /// drive.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_lost())
    }

    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::InvalidJob(_) => Fault::Usage,
            _ => Fault::Run,
        }
    }

    /// Returns the name of the drive at fault, if it is one drive.
    #[must_use]
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Store(error) => error.drive(),
            Self::MemoryBusy { drive } => Some(drive),
            _ => None,
        }
    }
}

impl From<csd_store::layout::Error> for Error {
    fn from(error: csd_store::layout::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<csd_store::array::Error> for Error {
    fn from(error: csd_store::array::Error) -> Self {
        Self::Store(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_interruption_name_the_drives_that_keep_the_program() {
        let interrupted = |left: &[&str]| {
            let left = left.iter().map(ToString::to_string).collect();
            Error::Interrupted { left }.to_string()
        };
        assert_eq!(interrupted(&[]), "interrupted; the program is unloaded from the drives");
        assert_eq!(
            interrupted(&["d1", "d2"]),
            "interrupted; drive d1, d2 may still have the program: the next run unloads it"
        );
    }
}
