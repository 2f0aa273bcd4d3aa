//! The built-in programs of a drive, by program index: the kernels of `csd-kernels`, `combine`
//! and `pages`.

use std::ops::Range;

use csd_kernels::kernel::Kernel;
use csd_kernels::program::{Program, SplitRule};
use csd_kernels::registry::{self, BUILTIN};
use csd_nvme::compute::{ProgramDescriptor, device_defined};
use csd_nvme::status::Status;
use csd_nvme::vendor::combine;
use csd_nvme::vendor::execute::Execution;
use csd_nvme::vendor::pages;

use super::Failure;
use super::output::wanted;

/// Returns the built-in programs, by program index. Their identifiers count from 1.
pub fn programs() -> Vec<ProgramDescriptor> {
    let kernels = BUILTIN.iter().map(|kernel| (kernel.program_id(), kernel.name()));
    let others = [(combine::PROGRAM_ID, combine::NAME), (pages::PROGRAM_ID, pages::NAME)];
    let mut all: Vec<_> = kernels.chain(others).collect();
    all.sort_unstable_by_key(|(pid, _)| *pid);
    all.into_iter().map(|(pid, name)| device_defined(pid, name)).collect()
}

fn kernel(execution: &Execution) -> Option<&'static dyn Kernel> {
    registry::by_program_id(execution.program)
}

/// Starts the program that an execution names.
///
/// # Errors
/// [`Status::NO_PROGRAM`], or the program's refusal of its parameters, streams or output.
pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let kernel = kernel(execution).ok_or(Status::NO_PROGRAM)?;
    Ok(kernel.start(&execution.parameters, wanted(&execution.output))?)
}

/// Returns where an execution may be split; `None` if it may not.
pub(super) fn split_rule(execution: &Execution) -> Option<SplitRule> {
    kernel(execution)?.split(&execution.parameters, wanted(&execution.output))
}

/// Returns the result of an execution from those of its parts, in order.
pub(super) fn join(execution: &Execution, parts: &[(Range<u64>, u64)]) -> u64 {
    kernel(execution).map_or(0, |kernel| kernel.join(&execution.parameters, parts))
}

/// Returns the parameters of a part with this unrolling; `None` if the drive does not choose it.
pub(super) fn adapted(execution: &Execution, unroll: u8) -> Option<Vec<u8>> {
    kernel(execution)?.adapted(&execution.parameters, unroll)
}

/// Returns the most memory that a program keeps of its inputs, bytes.
pub(super) fn kept_bytes(execution: &Execution) -> u64 {
    kernel(execution).map_or(0, |kernel| kernel.kept_bytes(&execution.parameters))
}
