//! The programs of every drive: the kernels, fed from streams.
//!
//! Invariant: a program's answer is its kernel's, whatever the pieces its streams come in.

mod count;

use csd_kernels::count as count_kernel;
use csd_nvme::compute::{ProgramDescriptor, device_defined};
use csd_nvme::execute::Execution;
use csd_nvme::status::Status;

use super::{Failure, Program};

/// Bytes that a program works on in a step.
const STEP_BYTES: usize = 256 << 10;

/// The programs of every drive, by program index.
pub fn programs() -> Vec<ProgramDescriptor> {
    vec![device_defined(count_kernel::PROGRAM_ID, count_kernel::NAME)]
}

/// The program that an execution names, before its first step.
pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    match execution.program {
        count_kernel::PROGRAM_ID => count::start(execution),
        _ => Err(Status::NO_PROGRAM.into()),
    }
}
