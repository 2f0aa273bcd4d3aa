//! The programs of every drive: the kernels, fed from streams.
//!
//! Invariant: a program's answer is its kernel's, whatever the pieces its streams come in.

mod array_merge;
mod count;
mod page_rank;
#[cfg(test)]
mod tests;
mod vector_add;
mod verify;

use csd_kernels as kernels;
use csd_nvme::compute::{ProgramDescriptor, device_defined};
use csd_nvme::execute::{Execution, Output as Destination};
use csd_nvme::status::Status;

use super::parts::Grain;
use super::{Failure, Inputs, Program, Step};

/// Bytes that a program works on in a step.
const STEP_BYTES: usize = 256 << 10;

/// The programs of every drive, by program index.
pub fn programs() -> Vec<ProgramDescriptor> {
    [
        (kernels::count::PROGRAM_ID, kernels::count::NAME),
        (kernels::vector_add::PROGRAM_ID, kernels::vector_add::NAME),
        (kernels::array_merge::PROGRAM_ID, kernels::array_merge::NAME),
        (kernels::page_rank::PROGRAM_ID, kernels::page_rank::NAME),
        (kernels::verify::PROGRAM_ID, kernels::verify::NAME),
    ]
    .map(|(pid, name)| device_defined(pid, name))
    .to_vec()
}

/// The program that an execution names, before its first step.
///
/// # Errors
/// When there is none, or its parameters, streams or output are not what it takes.
pub fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    match execution.program {
        kernels::count::PROGRAM_ID => count::start(execution),
        kernels::vector_add::PROGRAM_ID => vector_add::start(execution),
        kernels::array_merge::PROGRAM_ID => array_merge::start(execution),
        kernels::page_rank::PROGRAM_ID => page_rank::start(execution),
        kernels::verify::PROGRAM_ID => verify::start(execution),
        _ => Err(Status::NO_PROGRAM.into()),
    }
}

/// How an execution may be cut; `None` when its program, its form or what it is told forbids that.
pub(super) fn grain(execution: &Execution) -> Option<Grain> {
    match execution.program {
        kernels::count::PROGRAM_ID => count::grain(execution),
        kernels::vector_add::PROGRAM_ID => vector_add::grain(execution),
        kernels::page_rank::PROGRAM_ID => page_rank::grain(execution),
        kernels::verify::PROGRAM_ID => verify::grain(execution),
        _ => None,
    }
}

/// Most memory that a program keeps of what it reads, bytes.
pub(super) fn kept_bytes(execution: &Execution) -> u64 {
    match execution.program {
        kernels::page_rank::PROGRAM_ID => page_rank::vector_bytes(execution),
        _ => 0,
    }
}

/// How a step ends that has used what it could of one stream.
fn after(inputs: &Inputs, stream: usize) -> Step {
    if inputs.peek(stream).is_empty() { Step::Starved { stream } } else { Step::More }
}

/// Refuses an execution whose program's result is bytes, and that wants none.
fn require_output(execution: &Execution, name: &str) -> Result<(), Failure> {
    match execution.output {
        Destination::Completion => Err(Failure::misuse(format!("{name} needs an output"))),
        _ => Ok(()),
    }
}

/// Refuses chunks of an output that would cut elements of `bytes` bytes.
fn require_whole(execution: &Execution, bytes: usize) -> Result<(), Failure> {
    match execution.output {
        Destination::KvChunks { chunk_bytes, .. }
            if !(chunk_bytes as usize).is_multiple_of(bytes) =>
        {
            let reason = format!("chunks of {chunk_bytes} bytes cut elements of {bytes} bytes");
            Err(Failure::misuse(reason))
        }
        _ => Ok(()),
    }
}

/// Streams that should be equally long, and are not.
fn unequal(stream: usize) -> Failure {
    Failure::new(Status::SOURCE_TYPE, format!("stream {stream} ended before the other"))
}
