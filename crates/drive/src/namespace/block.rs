//! The block namespace: Read, Write and Flush on a run of the medium.
//!
//! Never: partial blocks. Invariants: a block lies at `slba * block_bytes` of the run; a write is
//! durable after Flush, or at completion with FUA.

use std::rc::Rc;

use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::error::Access;
use crate::media::{Media, Syncer};

/// The block namespace as one core sees it.
#[derive(Clone)]
pub struct Block {
    media: Media,
    syncer: Rc<Syncer>,
    offset: u64,
    blocks: u64,
    block_bytes: u32,
}

impl Block {
    /// The namespace on `length` bytes of the medium from `offset` on.
    pub fn new(media: Media, syncer: Rc<Syncer>, offset: u64, length: u64, bytes: u32) -> Self {
        Self { media, syncer, offset, blocks: length / u64::from(bytes), block_bytes: bytes }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Length of an extent in bytes.
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

    /// Reads `buffer.len()` bytes from `skip` bytes into block `slba` on; the caller has checked
    /// the extent with [`Self::length`].
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_READ_ERROR`].
    pub async fn read(&self, slba: u64, skip: u64, buffer: Buffer) -> Result<Buffer, Status> {
        let at = self.offset + slba * u64::from(self.block_bytes) + skip;
        let (result, buffer) = self.media.read(at, buffer).await;
        result.map_err(|error| error.status(Access::Read))?;
        Ok(buffer)
    }

    /// Writes an extent that [`Self::length`] has checked.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`] or [`Status::NAMESPACE_WRITE_PROTECTED`].
    pub async fn write(&self, extent: Extent, data: Vec<Buffer>, fua: bool) -> Result<(), Status> {
        let at = self.offset + extent.slba * u64::from(self.block_bytes);
        let (result, _) = self.media.write(at, data).await;
        result.map_err(|error| error.status(Access::Write))?;
        if fua { self.flush().await } else { Ok(()) }
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`] or [`Status::NAMESPACE_WRITE_PROTECTED`].
    pub async fn flush(&self) -> Result<(), Status> {
        self.syncer.sync().await.map_err(|error| error.status(Access::Write))
    }
}
