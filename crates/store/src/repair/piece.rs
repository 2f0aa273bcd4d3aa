//! [`Piece`]: one piece of an object at its place on a drive, with reads and writes of it.
//!
//! Invariant: a write that has succeeded is durable.

use std::rc::Rc;

use csd_nvme::execute::{Place, chunk_key};
use csd_reactor::Buffer;

use crate::array::Drive;
use crate::error::Error;
use crate::piece::{Spot, is_damage};

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
        self.spot.place(self.bytes, self.drive.block.block_bytes())
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
