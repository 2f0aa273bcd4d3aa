//! [`Memory`]: a memory namespace as typed calls, in bytes.
//!
//! Long transfers are split into commands that are in flight together; nothing is cached.
//! Invariants: a range has whole dwords; a transfer of several commands is not atomic.

use csd_nvme::memory::{self, Range, Source, UNIT_BYTES};
use csd_nvme::nvm::Extent;
use csd_reactor::Buffer;

use crate::block::{join, split};
use crate::handle::is_handle;
use crate::{Block, Controller, Error, Handle, NamespaceKind};

/// Maximum sources of one Memory Copy.
const SOURCES_MAX: usize = 256;
/// Maximum bytes of one Memory Fill or of one source of a copy.
const RANGE_BYTES_MAX: u64 = 1 << 30;

/// A memory namespace; clones are cheap.
#[derive(Clone, Debug)]
pub struct Memory {
    handle: Handle,
    bytes: u64,
}

is_handle!(Memory);

impl Memory {
    /// Returns the memory namespace `nsid` of a drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has no such namespace.
    pub fn open(controller: &Controller, nsid: u32) -> Result<Self, Error> {
        let (handle, bytes) = Handle::open(controller, nsid, "memory", |kind| match kind {
            NamespaceKind::Memory { bytes } => Some(bytes),
            _ => None,
        })?;
        Ok(Self { handle, bytes })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads `len` bytes from byte `start` on.
    ///
    /// # Errors
    /// [`Error::Misuse`] if not on dwords or beyond the end; else any of a command's.
    pub async fn read(&self, start: u64, len: usize) -> Result<Buffer, Error> {
        let ranges = self.ranges(start, len as u64, self.controller.transfer_bytes_max().into())?;
        let reads = ranges.iter().map(|range| {
            let bytes = u32::try_from(range.length).expect("a transfer's length");
            async move {
                let sqe = memory::read(self.nsid, *range);
                let reply = self.controller.submit(sqe, Vec::new(), bytes).await?;
                if reply.data.len() != bytes as usize {
                    return Err(self.controller.protocol("a read is not as long as asked for"));
                }
                Ok(reply.data)
            }
        });
        let parts = join(reads).await?;
        let mut whole = Buffer::with_room(0, 0, len);
        for part in parts {
            whole.append(part.len()).copy_from_slice(&part);
        }
        Ok(whole)
    }

    /// Writes `data` from byte `start` on.
    ///
    /// # Errors
    /// As [`Self::read`]; any part may then have been written.
    pub async fn write(&self, start: u64, data: Vec<Buffer>) -> Result<(), Error> {
        let len: usize = data.iter().map(|part| part.len()).sum();
        let most = self.controller.transfer_bytes_max();
        let ranges = self.ranges(start, len as u64, most.into())?;
        let payloads = split(data, most as usize);
        let writes = ranges.iter().zip(payloads).map(|(range, payload)| {
            self.controller.submit(memory::write(self.nsid, *range), payload, 0)
        });
        join(writes).await.map(drop)
    }

    /// Zeroes `len` bytes from byte `start` on.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn fill(&self, start: u64, len: u64) -> Result<(), Error> {
        let ranges = self.ranges(start, len, RANGE_BYTES_MAX)?;
        let fills = ranges
            .iter()
            .map(|range| self.controller.submit(memory::fill(self.nsid, *range), Vec::new(), 0));
        join(fills).await.map(drop)
    }

    /// Copies sources one after the other to byte `to`, inside the drive. All of them are memory,
    /// or all of them blocks of the namespace `blocks`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no source, more than 256, or both kinds; else any of a command's.
    pub async fn copy(
        &self,
        sources: &[Source],
        to: u64,
        blocks: Option<&Block>,
    ) -> Result<(), Error> {
        let of_memory = |source: &&Source| matches!(source, Source::Memory { .. });
        let count = sources.iter().filter(of_memory).count();
        if sources.is_empty() || sources.len() > SOURCES_MAX {
            return Err(self.controller.misuse("a copy has 1 to 256 sources"));
        }
        if count != 0 && count != sources.len() {
            return Err(self.controller.misuse("the sources of a copy are of one kind"));
        }
        let block_bytes = match blocks {
            Some(blocks) => blocks.block_bytes(),
            None if count == sources.len() => 1,
            None => return Err(self.controller.misuse("blocks of which namespace?")),
        };
        let (sqe, data) = memory::copy(self.nsid, sources, to, block_bytes);
        self.controller.submit(sqe, vec![Buffer::from_slice(&data)], 0).await.map(drop)
    }

    /// Copies `len` bytes from byte `offset_bytes` of a block namespace to byte `to`, inside the
    /// drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if these are not whole blocks, or too many; else any of a command's.
    pub async fn load(
        &self,
        blocks: &Block,
        offset_bytes: u64,
        len: u64,
        to: u64,
    ) -> Result<(), Error> {
        let unit = u64::from(blocks.block_bytes());
        if !offset_bytes.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(self.controller.misuse(format!("not whole blocks of {unit} bytes")));
        }
        let (mut slba, end) = (offset_bytes / unit, (offset_bytes + len) / unit);
        let mut sources = Vec::new();
        while slba < end {
            let count = u32::try_from((end - slba).min(1 << 16)).expect("at most 65,536");
            let extent = Extent { slba, blocks: count };
            sources.push(Source::Blocks { nsid: blocks.nsid(), extent });
            slba += u64::from(count);
        }
        self.copy(&sources, to, Some(blocks)).await
    }

    /// Copies ranges of this memory, one after the other, to byte `offset_bytes` of a block
    /// namespace, inside the drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the offset is not the beginning of a block, or for no ranges or more
    /// than 256; else any of a command's.
    pub async fn store(
        &self,
        ranges: &[Range],
        blocks: &Block,
        offset_bytes: u64,
    ) -> Result<(), Error> {
        let unit = u64::from(blocks.block_bytes());
        if !offset_bytes.is_multiple_of(unit) || ranges.is_empty() || ranges.len() > SOURCES_MAX {
            return Err(self.controller.misuse(format!("1 to 256 ranges, to a block of {unit}")));
        }
        let sources: Vec<_> = ranges.iter().map(|range| (self.nsid, *range)).collect();
        let (sqe, data) = memory::copy_to_blocks(blocks.nsid(), &sources, offset_bytes / unit);
        self.controller.submit(sqe, vec![Buffer::from_slice(&data)], 0).await.map(drop)
    }

    /// Splits `len` bytes from `start` on into ranges of at most `most` bytes.
    fn ranges(&self, start: u64, len: u64, most: u64) -> Result<Vec<Range>, Error> {
        if !start.is_multiple_of(UNIT_BYTES) || !len.is_multiple_of(UNIT_BYTES) {
            let reason = format!("{len} bytes at {start} are not whole dwords");
            return Err(self.controller.misuse(reason));
        }
        if start.checked_add(len).is_none_or(|end| end > self.bytes) {
            let reason = format!("{len} bytes at {start} are beyond the memory's {}", self.bytes);
            return Err(self.controller.misuse(reason));
        }
        let count = len.div_ceil(most);
        let range = |index| {
            let offset = index * most;
            Range { start: start + offset, length: most.min(len - offset) }
        };
        Ok((0..count).map(range).collect())
    }
}
