//! [`Program`]: a computation in bounded steps over [`Inputs`] towards an [`Output`].
//!
//! Drives and hosts run the same programs: the built-in kernels, and programs that users load
//! through an [`Engine`]. A program sees only bytes in memory; its caller reads the inputs,
//! verifies them and stores the output.
//!
//! Modules: `inputs` and `output` are the two ends of a program, `split` says how an execution is
//! divided among cores, `engine` compiles programs that users bring, `run` runs one over bytes at
//! hand.

mod engine;
mod inputs;
mod output;
mod run;
mod split;

use std::fmt;

pub use engine::{Compiled, Engine, Limits, TooMuch};
pub use inputs::{Check, Chunk, Inputs};
pub use output::{CHUNK_BYTES, FULL_BYTES, Output};
pub use run::{Execution, run};
pub use split::SplitRule;

/// Bytes that a built-in program works on in one step.
pub const STEP_BYTES: usize = 256 << 10;

/// A program in progress. It never blocks; a step takes about a millisecond.
pub trait Program: Send {
    /// Works on the bytes at hand: consumes from `inputs`, appends to `output`, counts its work
    /// there.
    ///
    /// # Errors
    /// [`Failure`]; the program is not stepped again.
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure>;

    /// Prepares for another part of the split inputs and keeps the inputs that every part reads
    /// whole. Returns false if the program cannot: then a new one is started for each part.
    fn next_part(&mut self) -> bool {
        false
    }
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// Nothing to do until more bytes of this input arrive.
    Starved {
        /// Index of the input stream.
        stream: usize,
    },
    /// Nothing to do until the output has been drained.
    Full,
    /// The program has finished.
    Done {
        /// Its result: dwords 0 and 1 of the completion.
        result: u64,
    },
}

impl Step {
    /// Returns the outcome of a step that used all it could of one stream.
    #[must_use]
    pub fn after(inputs: &Inputs, stream: usize) -> Self {
        if inputs.peek(stream).is_empty() { Self::Starved { stream } } else { Self::More }
    }
}

/// Cause of a failure, which shows where to correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The parameters, inputs or output are not those that the program takes.
    Parameters,
    /// An input does not hold what the program reads: elements are cut, lengths differ.
    InputType,
    /// An input is not in the order that the program needs.
    InputOrder,
    /// An input does not match its checksum.
    Corrupt,
    /// The program itself failed.
    Program,
}

/// A failed program: the cause, and the reason in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// The reason in words, for the log.
    pub reason: String,
}

impl Failure {
    /// Makes a failure of a cause and its reason.
    pub fn new(cause: Cause, reason: impl fmt::Display) -> Self {
        Self { cause, reason: reason.to_string() }
    }

    /// Makes the failure of a program that was started with wrong parameters.
    pub fn parameters(reason: impl fmt::Display) -> Self {
        Self::new(Cause::Parameters, reason)
    }
}
