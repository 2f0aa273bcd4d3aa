//! [`Piece`]: one piece of an object at its place on a drive, with reads and writes of it.
//!
//! Invariant: a write that has succeeded is durable.

use std::rc::Rc;

use csd_nvme::execute::{Place, chunk_key};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::array::{BLOCK_NSID, Drive, OBJECTS_NSID};
use crate::catalogue::ObjectId;
use crate::error::Error;

/// Place of a piece on its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A value in the objects' namespace, by the two parts of its key.
    Value(ObjectId, u32),
    /// Bytes of the block namespace from here on.
    Blocks(u64),
}

/// A piece of a stripe, as the entry describes it.
#[derive(Clone)]
pub(super) struct Piece {
    /// Number in the stripe: data, then parity from n on.
    pub(super) number: usize,
    pub(super) drive: Rc<Drive>,
    pub(super) spot: Spot,
    pub(super) bytes: u32,
    /// CRC-32C.
    pub(super) sum: u32,
}

impl Piece {
    /// Returns the piece's place as a source of an execution.
    pub(super) fn place(&self) -> Place {
        match self.spot {
            Spot::Value(id, first) => {
                Place::KvChunks { nsid: OBJECTS_NSID, prefix: id.0, first, count: 1, stride: 1 }
            }
            Spot::Blocks(offset) => Place::Blocks {
                nsid: BLOCK_NSID,
                slba: offset / u64::from(self.drive.block.block_bytes()),
                skip: 0, // chunks begin with a block
                bytes: self.bytes,
            },
        }
    }

    /// Reads the stored bytes; `None` if they are not there, or the drive finds them damaged.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn read(&self) -> Result<Option<Buffer>, Error> {
        let bytes = self.bytes as usize;
        let read = match self.spot {
            Spot::Value(id, number) => {
                let front = self.drive.objects.front(&chunk_key(&id.0, number), self.bytes).await;
                let is_whole = |(_, whole): &(Buffer, u64)| *whole == u64::from(self.bytes);
                front.map(|front| front.filter(is_whole).map(|(front, _)| front))
            }
            Spot::Blocks(offset) => {
                let whole = bytes.next_multiple_of(self.drive.block.block_bytes() as usize);
                self.drive.block.read(offset, whole).await.map(Some)
            }
        };
        match read {
            Ok(read) => Ok(read.map(|mut read| {
                read.truncate(bytes);
                read
            })),
            Err(error) if is_damage(error.status()) => Ok(None),
            Err(error) => Err(Error::command(&self.drive, error)),
        }
    }

    /// Writes the bytes to their place.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn write(&self, mut bytes: Buffer) -> Result<(), Error> {
        let written = match self.spot {
            Spot::Value(id, number) => {
                self.drive.objects.store(&chunk_key(&id.0, number), vec![bytes], 0).await
            }
            Spot::Blocks(offset) => {
                let block_bytes = self.drive.block.block_bytes() as usize;
                let padding = bytes.len().next_multiple_of(block_bytes) - bytes.len();
                bytes.append(padding).fill(0);
                self.drive.block.write(offset, vec![bytes], true).await
            }
        };
        written.map_err(|error| Error::command(&self.drive, error))
    }
}

/// Returns true if a drive says that it cannot read the medium at this place.
pub(super) fn is_damage(status: Option<Status>) -> bool {
    matches!(status, Some(Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR))
}
