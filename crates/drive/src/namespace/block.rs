//! The block namespace: the NVM command set on a range of the medium.
//!
//! Invariants: a block lies at `slba * block_bytes` of the range; a change is durable after Flush,
//! or at completion with FUA; a fused Compare and Write has the namespace to itself; a deallocated
//! block reads as zeros.

use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::error::Access;
use csd_kvlog::media::{Media, Syncer};
use csd_nvme::nvm::{COPY_RANGES_MAX, Extent};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, core_id, spawn};

use super::write_gate::{Inside, WriteGate};

/// Compare, Verify and Copy read in pieces of this many bytes.
pub const PIECE_BYTES: u32 = 1 << 20;
/// Most bytes that one Copy moves, and one of its sources (MCL, MSSRL). They are in memory at once.
pub const COPY_BYTES_MAX: u32 = 16 << 20;
/// Most blocks of a fused Compare and Write (ACWU).
const FUSED_BLOCKS_MAX: u32 = 1;

/// The block namespace as one core sees it.
#[derive(Clone)]
pub struct Block {
    media: Media,
    syncer: Rc<Syncer>,
    gate: Arc<WriteGate>,
    offset: u64,
    blocks: u64,
    block_bytes: u32,
}

impl Block {
    /// Makes the namespace on `length` bytes of the medium from `offset` on, whose writers pass
    /// `gate`.
    pub fn new(
        media: Media,
        syncer: Rc<Syncer>,
        gate: Arc<WriteGate>,
        (offset, length): (u64, u64),
        block_bytes: u32,
    ) -> Self {
        Self { media, syncer, gate, offset, blocks: length / u64::from(block_bytes), block_bytes }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the size of a block in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns the length of an extent in bytes.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`] when it is not on the namespace.
    pub fn length(&self, extent: Extent) -> Result<u64, Status> {
        let end = extent.slba.checked_add(u64::from(extent.blocks));
        if end.is_none_or(|end| end > self.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok(u64::from(extent.blocks) * u64::from(self.block_bytes))
    }

    /// Reads `buffer.len()` bytes from byte `skip` of block `slba` on. The caller has checked the
    /// extent with [`Self::length`].
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_READ_ERROR`].
    pub async fn read(&self, slba: u64, skip: u64, buffer: Buffer) -> Result<Buffer, Status> {
        let (result, buffer) = self.media.read(self.at(slba) + skip, buffer).await;
        result.map_err(|error| error.status(Access::Read))?;
        Ok(buffer)
    }

    /// Writes an extent that [`Self::length`] has checked.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`], [`Status::CAPACITY_EXCEEDED`] or
    /// [`Status::NAMESPACE_WRITE_PROTECTED`].
    pub async fn write(&self, extent: Extent, data: Vec<Buffer>, fua: bool) -> Result<(), Status> {
        let inside = self.enter().await;
        self.put(extent.slba, data).await?;
        drop(inside);
        self.flush_if(fua).await
    }

    /// Returns true when [`Self::read_now`] and [`Self::write_now`] are worth trying.
    pub fn is_synchronous(&self) -> bool {
        self.media.is_synchronous()
    }

    /// Reads the `into.len()` bytes of an extent that [`Self::length`] has checked, without
    /// waiting; false when that cannot be done.
    pub fn read_now(&self, extent: Extent, into: &mut [u8]) -> bool {
        self.media.read_now(self.at(extent.slba), into)
    }

    /// Writes an extent that [`Self::length`] has checked, without waiting; false when that cannot
    /// be done. A write that succeeds is as durable as it can be on such a medium.
    pub fn write_now(&self, extent: Extent, data: &[u8]) -> bool {
        let inside = self.gate.try_enter(core_id().0);
        inside.is_some() && self.media.write_now(self.at(extent.slba), data)
    }

    /// Compares an extent with data of its length.
    ///
    /// # Errors
    /// [`Status::COMPARE_FAILURE`] when any byte differs, or as [`Self::read`].
    pub async fn compare(&self, extent: Extent, data: &[Buffer]) -> Result<(), Status> {
        let mut skip = 0;
        for expected in data {
            let found =
                self.read(extent.slba, skip, Buffer::with_room(0, expected.len(), 0)).await?;
            if found[..] != expected[..] {
                return Err(Status::COMPARE_FAILURE);
            }
            skip += expected.len() as u64;
        }
        Ok(())
    }

    /// Compares, and writes if the data is equal, with no other change between the two. Returns the
    /// results of both. Runs to its end even if the caller is dropped, so that a pair is not cut in
    /// two.
    pub async fn compare_and_write(
        &self,
        extent: Extent,
        (compared, data): (Vec<Buffer>, Vec<Buffer>),
        fua: bool,
    ) -> (Result<(), Status>, Result<(), Status>) {
        if extent.blocks > FUSED_BLOCKS_MAX {
            return (Err(Status::ATOMIC_UNIT_EXCEEDED), Err(Status::ABORTED_FAILED_FUSED));
        }
        let this = self.clone();
        let pair = spawn(Class::Foreground, async move {
            let alone = this.gate.enter_alone().await;
            if let Err(status) = this.compare(extent, &compared).await {
                return (Err(status), Err(Status::ABORTED_FAILED_FUSED));
            }
            let written = this.put(extent.slba, data).await;
            drop(alone);
            match written {
                Ok(()) => (Ok(()), this.flush_if(fua).await),
                Err(status) => (Ok(()), Err(status)),
            }
        });
        pair.await
    }

    /// Makes an extent that [`Self::length`] has checked read as zeros, and frees its space if that
    /// is wanted and possible.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn zero(&self, extent: Extent, deallocate: bool, fua: bool) -> Result<(), Status> {
        let bytes = self.length(extent)?;
        let inside = self.enter().await;
        let at = self.at(extent.slba);
        let result = match deallocate {
            true => self.media.discard(at, bytes).await,
            false => self.media.zero(at, bytes).await,
        };
        result.map_err(|error| error.status(Access::Write))?;
        drop(inside);
        self.flush_if(fua).await
    }

    /// Deallocates ranges. Changes none when one is not on the namespace.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`], or as [`Self::write`].
    pub async fn deallocate(&self, ranges: &[Extent]) -> Result<(), Status> {
        for range in ranges {
            self.length(*range)?;
        }
        for range in ranges {
            self.zero(*range, true, false).await?;
        }
        Ok(())
    }

    /// Reads an extent that [`Self::length`] has checked, to see that it can be read.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn verify(&self, extent: Extent) -> Result<(), Status> {
        let bytes = self.length(extent)?;
        let mut skip = 0;
        while skip < bytes {
            skip += self.piece(extent.slba, skip, bytes).await?.len() as u64;
        }
        Ok(())
    }

    /// Copies sources one behind the other to `to`, as if all had been read before the first block
    /// is written. Returns the number of bytes.
    ///
    /// # Errors
    /// [`Status::COPY_LIMIT_EXCEEDED`], [`Status::LBA_OUT_OF_RANGE`], or as [`Self::read`] and
    /// [`Self::write`]. A failed copy does not report the block at which it stopped (dword 0 is 0:
    /// no range is known to be complete).
    pub async fn copy(&self, sources: &[Extent], to: u64, fua: bool) -> Result<u64, Status> {
        let most = COPY_BYTES_MAX / self.block_bytes;
        let blocks: u64 = sources.iter().map(|source| u64::from(source.blocks)).sum();
        let too_long = sources.iter().any(|source| source.blocks > most);
        if sources.len() > usize::from(COPY_RANGES_MAX) || too_long || blocks > u64::from(most) {
            return Err(Status::COPY_LIMIT_EXCEEDED);
        }
        let blocks = u32::try_from(blocks).expect("within the limit");
        let bytes = self.length(Extent { slba: to, blocks })?;
        for source in sources {
            self.length(*source)?;
        }
        let mut data = Vec::new();
        for source in sources {
            data.append(&mut self.collect(*source).await?);
        }
        self.write(Extent { slba: to, blocks }, data, fua).await?;
        Ok(bytes)
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`] or [`Status::NAMESPACE_WRITE_PROTECTED`].
    pub async fn flush(&self) -> Result<(), Status> {
        self.syncer.sync().await.map_err(|error| error.status(Access::Write))
    }

    async fn flush_if(&self, fua: bool) -> Result<(), Status> {
        if fua { self.flush().await } else { Ok(()) }
    }

    fn at(&self, slba: u64) -> u64 {
        self.offset + slba * u64::from(self.block_bytes)
    }

    async fn enter(&self) -> Inside<'_> {
        self.gate.enter(core_id().0).await
    }

    async fn put(&self, slba: u64, data: Vec<Buffer>) -> Result<(), Status> {
        let (result, _) = self.media.write(self.at(slba), data).await;
        result.map_err(|error| error.status(Access::Write))
    }

    /// Reads at most [`PIECE_BYTES`] of an extent of `bytes` bytes that [`Self::length`] has
    /// checked, from `skip` on.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn piece(&self, slba: u64, skip: u64, bytes: u64) -> Result<Buffer, Status> {
        let length = (bytes - skip).min(u64::from(PIECE_BYTES));
        let size = usize::try_from(length).expect("at most a mebibyte");
        self.read(slba, skip, Buffer::with_room(0, size, 0)).await
    }

    async fn collect(&self, extent: Extent) -> Result<Vec<Buffer>, Status> {
        let bytes = self.length(extent)?;
        let (mut pieces, mut skip) = (Vec::new(), 0);
        while skip < bytes {
            let piece = self.piece(extent.slba, skip, bytes).await?;
            skip += piece.len() as u64;
            pieces.push(piece);
        }
        Ok(pieces)
    }
}
