//! [`Execution`]: a program run over bytes at hand on this thread, as hosts do.

use csd_buffer::Buffer;

use super::output::CHUNK_BYTES;
use super::{Cause, Failure, Inputs, Output, Program, Step};

/// A program that is run over bytes at hand.
pub struct Execution {
    program: Box<dyn Program>,
    inputs: Inputs,
    output: Output,
    written: Vec<Buffer>,
}

impl Execution {
    /// Prepares a program to read `inputs` and write to `output`.
    #[must_use]
    pub fn new(program: Box<dyn Program>, inputs: Inputs, output: Output) -> Self {
        Self { program, inputs, output, written: Vec::new() }
    }

    /// Appends bytes to a stream.
    pub fn push(&mut self, stream: usize, bytes: Buffer) {
        self.inputs.push(stream, bytes.into());
    }

    /// Runs the program until it needs more input, or is done. Returns its result if it is done.
    ///
    /// # Errors
    /// [`Failure`] of the program, or [`Cause::Program`] if it waits for a stream that has ended.
    pub fn advance(&mut self) -> Result<Option<u64>, Failure> {
        loop {
            self.inputs.free_spent();
            self.inputs.admit()?;
            let step = self.program.step(&mut self.inputs, &mut self.output)?;
            let is_done = matches!(step, Step::Done { .. });
            self.written.extend(self.output.take(is_done));
            match step {
                Step::Done { result } => return Ok(Some(result)),
                Step::Starved { stream } if !self.inputs.has_unseen(stream) => {
                    if self.inputs.is_last(stream) {
                        let reason = format!("it waits for more of stream {stream}, which ended");
                        return Err(Failure::new(Cause::Program, reason));
                    }
                    return Ok(None);
                }
                Step::Starved { .. } | Step::More | Step::Full => {}
            }
        }
    }

    /// Marks all streams as complete, and runs the program to its end. Returns its result.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn finish(&mut self) -> Result<u64, Failure> {
        (0..self.inputs.streams()).for_each(|stream| self.inputs.end(stream));
        Ok(self.advance()?.expect("it cannot wait: every stream has ended"))
    }

    /// Returns the work that the program counted.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.output.work()
    }

    /// Takes the program, and the chunks that it wrote.
    #[must_use]
    pub fn into_parts(self) -> (Box<dyn Program>, Vec<Buffer>) {
        (self.program, self.written)
    }
}

/// Runs a program over streams, each in chunks, to its end. Returns its result and the bytes that
/// it wrote.
///
/// # Errors
/// [`Failure`] of the program, or [`Cause::Program`] if it waits for a stream that has ended.
pub fn run(
    program: Box<dyn Program>,
    streams: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<u8>), Failure> {
    let (inputs, output) = (Inputs::complete(streams), Output::in_chunks(CHUNK_BYTES));
    let mut execution = Execution::new(program, inputs, output);
    let result = execution.finish()?;
    let mut written = Vec::new();
    execution.written.iter().for_each(|chunk| written.extend_from_slice(chunk));
    Ok((result, written))
}
