//! [`Accesses`]: the accesses of a faulty medium in their order, of which a test may choose one
//! that fails.

use super::Operation;
use crate::error::MediaError;

/// An access of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Kind.
    pub operation: Operation,
    /// Offset on the medium in bytes; 0 for a sync.
    pub offset: u64,
    /// Length in bytes; 0 for a sync.
    pub bytes: u64,
}

/// Way in which an access fails. Only a write differs by what it leaves on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// EIO, and nothing of a write is there.
    Io,
    /// ENOSPC, and nothing of a write is there.
    Full,
    /// EIO behind a part of the write.
    Short,
    /// EIO behind all of the write.
    Whole,
}

impl Fault {
    /// Returns the error that the access ends with.
    pub(super) fn error(self) -> MediaError {
        match self {
            Self::Full => MediaError::Full("No space left on device (os error 28)".to_owned()),
            _ => MediaError::Io("Input/output error (os error 5)".to_owned()),
        }
    }
}

/// Accesses so far, and the one that is to fail.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    pub(super) begun: Vec<Access>,
    pub(super) chosen: Option<(usize, Fault)>,
}

impl Accesses {
    /// Notes an access that begins. Returns its fault if it is the one that is to fail.
    pub(super) fn begin(&mut self, access: Access) -> Option<Fault> {
        let number = self.begun.len();
        self.begun.push(access);
        self.chosen.filter(|(chosen, _)| *chosen == number).map(|(_, fault)| fault)
    }
}
