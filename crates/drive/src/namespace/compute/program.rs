//! What a program is: steps over [`Inputs`], towards an [`Output`].

use std::fmt;

use csd_nvme::status::Status;

use super::{Inputs, Output};

/// A program under way in the compute lane. Never blocks; a step takes about a millisecond.
pub trait Program: Send {
    /// Works on what is at hand: consumes from `inputs`, appends to `output`, counts its work
    /// there.
    ///
    /// # Errors
    /// [`Failure`]; the program is not stepped again.
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure>;
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// Nothing to do until more of this stream has come.
    Starved {
        /// The stream.
        stream: usize,
    },
    /// Nothing to do until the output has been drained.
    Full,
    /// The program is done.
    Done {
        /// Its result, for dwords 0 and 1 of the completion.
        result: u64,
    },
}

/// Why an execution failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the command is answered with.
    pub status: Status,
    /// The reason in words, for the log.
    pub reason: String,
}

impl Failure {
    /// A failure with its reason.
    pub fn new(status: Status, reason: impl fmt::Display) -> Self {
        Self { status, reason: reason.to_string() }
    }

    /// The program's parameters, sources or output are not what it takes.
    pub fn misuse(reason: impl fmt::Display) -> Self {
        Self::new(Status::INVALID_PROGRAM_DATA, reason)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::new(status, status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}
