//! [`Compute`]: a compute namespace as typed calls.
//!
//! Programs and their parameters are opaque here. Invariant: [`csd_nvme::vendor::execute`] alone
//! defines the format of an execution.

use std::sync::Arc;

use csd_nvme::capsule::Sqe;
use csd_nvme::compute::{
    self, Controls, PROGRAM_LIST_HEADER_BYTES, ProgramDescriptor, Ranges, parse_program_list,
};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::Execution;
use csd_nvme::vendor::executions::{self, Entry};
use csd_reactor::Buffer;

use crate::handle::is_handle;
use crate::{Controller, Error, Handle, NamespaceKind};

/// A compute namespace; clones are cheap.
#[derive(Clone, Debug)]
pub struct Compute {
    handle: Handle,
}

/// Maximum number of programs fetched from the list.
const PROGRAMS_MAX: usize = 1024;

/// Verdicts on an execution whose reason only the drive knows.
const HAS_REASON: [Status; 4] = [
    Status::PROGRAM_FAILED,
    Status::INVALID_PROGRAM_DATA,
    Status::SOURCE_TYPE,
    Status::SOURCE_ORDER,
];

is_handle!(Compute);

impl Compute {
    /// Returns the compute namespace `nsid` of a drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has no such namespace.
    pub fn open(controller: &Controller, nsid: u32) -> Result<Self, Error> {
        let is_compute = |kind| (kind == NamespaceKind::Compute).then_some(());
        let (handle, ()) = Handle::open(controller, nsid, "compute", is_compute)?;
        Ok(Self { handle })
    }

    /// Returns the programs by index.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the list is malformed; else any of a command's.
    pub async fn programs(&self) -> Result<Vec<ProgramDescriptor>, Error> {
        let malformed = || self.controller.protocol("its list of programs is malformed");
        let mut count = 0;
        // Others may load programs between two reads: then it is longer than it was.
        loop {
            let bytes = PROGRAM_LIST_HEADER_BYTES + count * ProgramDescriptor::SIZE;
            let data = self.program_list(bytes).await?;
            let now = data.first_chunk().map(|count| u32::from_le_bytes(*count));
            let now = now.ok_or_else(malformed)? as usize;
            if now > PROGRAMS_MAX {
                return Err(malformed());
            }
            if now <= count {
                return parse_program_list(&data).ok_or_else(malformed);
            }
            count = now;
        }
    }

    async fn program_list(&self, bytes: usize) -> Result<Buffer, Error> {
        let bytes = u32::try_from(bytes).expect("a list of at most 1024 programs");
        let sqe = get_log_page(LogId::PROGRAM_LIST, self.nsid, Csi::CP, 0, bytes);
        Ok(self.controller.admin(sqe, &[], bytes).await?.data)
    }

    /// Returns the number of executions that have ended since the drive started, and its log of the
    /// last ones, newest first.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the log is malformed; the status
    /// [`csd_nvme::status::Status::INVALID_LOG_PAGE`] if the drive has none; else any of a
    /// command's.
    pub async fn executions(&self) -> Result<(u64, Vec<Entry>), Error> {
        let bytes = u32::try_from(executions::LOG_BYTES_MAX).expect("33 KiB");
        let sqe = get_log_page(LogId::EXECUTIONS, self.nsid, Csi::CP, 0, bytes);
        let log = self.controller.admin(sqe, &[], bytes).await?.data;
        let malformed = || self.controller.protocol("its log of executions is malformed");
        executions::parse(&log).ok_or_else(malformed)
    }

    /// Executes the program with this index; returns its result.
    ///
    /// # Errors
    /// [`Error::Status`] with the program's verdict; else any of a command's.
    pub async fn execute(&self, program: u16, execution: &Execution) -> Result<u64, Error> {
        self.execute_within(program, execution, Controls::default()).await
    }

    /// Executes a program as [`Self::execute`] does, within limits. `controls` may ask for the
    /// number of bytes that the program wrote to memory.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub async fn execute_within(
        &self,
        program: u16,
        execution: &Execution,
        controls: Controls,
    ) -> Result<u64, Error> {
        let data = Buffer::from_slice(&execution.encode());
        let length = u32::try_from(data.len()).expect("at most 1 MiB");
        let sqe = compute::execute_ranges(self.nsid, program, length, Ranges::None, controls);
        self.run(sqe, vec![data]).await
    }

    /// Runs an execution; the error of one that failed has the reason from the drive's log.
    pub(crate) async fn run(&self, sqe: Sqe, mut data: Vec<Buffer>) -> Result<u64, Error> {
        let answer = self.controller.start(sqe, &mut data, 0).await?;
        let cid = answer.cid();
        let mut ended = answer.await.0;
        if let (Some(cid), Err(Error::Status { status, reason, .. })) = (cid, &mut ended)
            && HAS_REASON.contains(status)
        {
            *reason = self.reason(cid, *status).await;
        }
        Ok(ended?.result)
    }

    /// Returns the reason of the command with this identifier, which has just failed. Other
    /// commands of this controller may have failed since; those of other hosts may have pushed it
    /// out of the log, and a drive of another maker has none.
    async fn reason(&self, cid: u16, status: Status) -> Option<Arc<str>> {
        let (_, entries) = self.executions().await.ok()?;
        let cntlid = self.controller.identity().cntlid();
        let is_it =
            |entry: &&Entry| (entry.cntlid(), entry.cid(), entry.status()) == (cntlid, cid, status);
        let reason = entries.iter().find(is_it)?.reason_text();
        (!reason.is_empty()).then(|| reason.into())
    }
}
