//! A program run on the spot, over bytes at hand: for measuring programs and for testing engines,
//! without a drive around them.
//!
//! Never used by a drive. Invariant: a program sees what it would see in the lane.

use csd_nvme::execute::Output as Destination;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::inputs::{Check, Chunk};
use super::{Failure, Inputs, Output, Program, Step};

/// Steps that do nothing after which a program is given up.
const IDLE_STEPS_MAX: usize = 1 << 20;

/// Runs a program over streams, each in chunks; its result, and the bytes that it wrote.
///
/// # Errors
/// Why it failed; also when it waits for what cannot come.
pub fn run_here(
    mut program: Box<dyn Program>,
    streams: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<u8>), Failure> {
    let mut inputs = Inputs::new(streams.len());
    for (index, chunks) in streams.into_iter().enumerate() {
        chunks
            .into_iter()
            .for_each(|bytes| inputs.push(index, Chunk { bytes, check: Check::Nothing }));
        inputs.end(index);
    }
    let wanted = Destination::Memory { nsid: 0, start: 0, bytes: u32::MAX };
    let mut output = Output::new(&wanted);
    let mut written = Vec::new();
    for _ in 0..IDLE_STEPS_MAX {
        inputs.free_spent();
        inputs.admit()?;
        match program.step(&mut inputs, &mut output)? {
            Step::Done { result } => {
                output.take(true).iter().for_each(|chunk| written.extend_from_slice(chunk));
                return Ok((result, written));
            }
            Step::Starved { stream } if !inputs.has_unseen(stream) => break,
            Step::Full => {
                output.take(false).iter().for_each(|chunk| written.extend_from_slice(chunk));
            }
            Step::Starved { .. } | Step::More => {}
        }
    }
    Err(Failure::new(Status::PROGRAM_FAILED, "it waits for what cannot come"))
}
