//! [`Shared`]: state that the executions of all cores share.

use std::sync::Arc;

use csd_kernels::program::{Limits, TooMuch};
use csd_nvme::compute::Controls;
use csd_nvme::status::Status;

use super::Failure;
use super::cancel::Executions;
use super::library::Library;
use super::ranges::RangeSets;
use crate::controller::{InsideOnly, Settings};
use crate::log::Log;
use crate::namespace::memory::LocalMemory;
use crate::peers::Peers;

/// State that the executions of all cores share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Memory namespace.
    pub memory: Arc<LocalMemory>,
    /// Programs that hosts have loaded.
    pub library: Arc<Library>,
    /// Memory range sets.
    pub range_sets: Arc<RangeSets>,
    /// Executions that run.
    pub executions: Arc<Executions>,
    /// Limits of one execution.
    pub limits: Limits,
    /// Longest value of the kv namespaces in bytes.
    pub value_bytes_max: u32,
    /// Settings of hosts, for write protection.
    pub settings: Arc<Settings>,
    /// State in which only the inside changes blocks.
    pub inside_only: Arc<InsideOnly>,
    /// Drives that this drive may work with.
    pub peers: Option<Arc<Peers>>,
    /// Log of events.
    pub log: Log,
}

impl Shared {
    /// Returns the limits of an execution with these controls.
    ///
    /// # Errors
    /// [`Status::INSUFFICIENT_PROGRAM_RESOURCES`] when it asks for more than the drive allows.
    pub(super) fn limits_of(&self, controls: Controls) -> Result<Limits, Status> {
        let time_ms = u32::try_from(controls.time_ms()).expect("32 bits");
        let lowered = self.limits.lowered(time_ms, controls.memory_mib() << 20);
        lowered.map_err(|TooMuch| Status::INSUFFICIENT_PROGRAM_RESOURCES)
    }

    /// Checks that hosts have not write protected a namespace against commands of this opcode.
    pub(super) fn may_change(&self, nsid: u32, opcode: u8) -> Result<(), Failure> {
        match self.settings.refuses(nsid, opcode) {
            true => Err(Status::NAMESPACE_WRITE_PROTECTED.into()),
            false => Ok(()),
        }
    }
}
