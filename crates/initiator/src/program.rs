//! Programs that a host loads into a drive: [`Compute`]'s admin commands, memory range sets, and
//! executions over memory.
//!
//! Programs are opaque bytes here. Invariant: only commands of the standard are used.

use csd_nvme::compute::{self, Controls, Ranges};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::program::{
    self, LIST_HEADER_BYTES, LOAD_BYTES_MAX, MemoryRange, Part, ProgramType, RANGE_BYTES,
    RANGE_SETS_MAX, RANGES_MAX, RangeSet,
};
use csd_reactor::Buffer;

use crate::{Compute, Error};

/// Maximum bytes of the log of range sets; the log of program types is shorter.
const LIST_BYTES_MAX: usize =
    LIST_HEADER_BYTES + RANGE_SETS_MAX as usize * (RANGES_MAX as usize + 1) * RANGE_BYTES;

/// Index and identity of a program in a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSlot {
    /// Program index.
    pub index: u16,
    /// Program type.
    pub ptype: u8,
    /// Identifier, which executions give in addition to the index.
    pub pid: u64,
}

impl Compute {
    /// Loads a program, in as many parts as necessary.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it is empty or of 4 GiB; [`Error::Status`] if the drive refuses it;
    /// else any of a command's.
    pub async fn load(&self, slot: ProgramSlot, bytes: &[u8]) -> Result<(), Error> {
        let size = u32::try_from(bytes.len()).ok().filter(|size| *size > 0);
        let size = size.ok_or_else(|| {
            let reason = format!("a program has 1 byte to 4 GiB, not {}", bytes.len());
            self.controller().misuse(reason)
        })?;
        let most = LOAD_BYTES_MAX.min(self.controller().transfer_bytes_max());
        let ProgramSlot { index, ptype, pid } = slot;
        let mut offset = 0;
        for chunk in bytes.chunks(most as usize) {
            let bytes = u32::try_from(chunk.len()).expect("at most a part");
            let part = Part { index, ptype, pit: 1, pid, size, offset, bytes };
            self.controller().admin(program::load(self.nsid(), &part), chunk, 0).await?;
            offset += bytes;
        }
        Ok(())
    }

    /// Unloads a program that is not active.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn unload(&self, index: u16) -> Result<(), Error> {
        self.controller().admin(program::unload(self.nsid(), index), &[], 0).await.map(drop)
    }

    /// Allows or forbids executions of a program.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn activate(&self, index: u16, active: bool) -> Result<(), Error> {
        let sqe = program::activate(self.nsid(), index, active);
        self.controller().admin(sqe, &[], 0).await.map(drop)
    }

    /// Returns the types of program that the drive accepts.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the list is malformed; else any of a command's.
    pub async fn program_types(&self) -> Result<Vec<ProgramType>, Error> {
        let data = self.list(LogId::PROGRAM_TYPES).await?;
        let malformed = || self.controller().protocol("its list of program types is malformed");
        program::parse_program_types(&data).ok_or_else(malformed)
    }

    /// Returns the drive's memory range sets.
    ///
    /// # Errors
    /// As [`Self::program_types`].
    pub async fn range_sets(&self) -> Result<Vec<RangeSet>, Error> {
        let data = self.list(LogId::RANGE_SETS).await?;
        let malformed = || self.controller().protocol("its list of range sets is malformed");
        program::parse_range_sets(&data).ok_or_else(malformed)
    }

    /// Creates a memory range set; returns its identifier.
    ///
    /// # Errors
    /// [`Error::Misuse`] for none or too many; else any of a command's.
    pub async fn create_range_set(&self, ranges: &[MemoryRange]) -> Result<u16, Error> {
        if ranges.is_empty() || ranges.len() > RANGES_MAX.into() {
            return Err(self.controller().misuse(format!("a set has 1 to {RANGES_MAX} ranges")));
        }
        let (sqe, data) = program::create_range_set(self.nsid(), ranges);
        let reply = self.controller().admin(sqe, &data, 0).await?;
        let rsid = u16::try_from(reply.result & 0xFFFF).expect("16 bits");
        Ok(rsid)
    }

    /// Deletes a memory range set.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn delete_range_set(&self, rsid: u16) -> Result<(), Error> {
        let sqe = program::delete_range_set(self.nsid(), rsid);
        self.controller().admin(sqe, &[], 0).await.map(drop)
    }

    /// Executes a program over a memory range set; returns its result.
    ///
    /// # Errors
    /// [`Error::Status`] with the program's verdict; else any of a command's.
    pub async fn execute_set(
        &self,
        index: u16,
        rsid: u16,
        parameters: &[u8],
        controls: Controls,
    ) -> Result<u64, Error> {
        let length = u32::try_from(parameters.len()).unwrap_or(u32::MAX);
        let ranges = Ranges::Set(rsid);
        let sqe = compute::execute_ranges(self.nsid(), index, length, ranges, controls);
        let data = match parameters {
            [] => Vec::new(),
            bytes => vec![Buffer::from_slice(bytes)],
        };
        self.run(sqe, data).await
    }

    async fn list(&self, log: LogId) -> Result<Buffer, Error> {
        let bytes = u32::try_from(LIST_BYTES_MAX).expect("tens of kilobytes");
        let sqe = get_log_page(log, self.nsid(), Csi::CP, 0, bytes);
        Ok(self.controller().admin(sqe, &[], bytes).await?.data)
    }
}
