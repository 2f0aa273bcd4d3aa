//! [`Piece`]: one piece of an object at its location on a drive, with reads and writes of it.
//!
//! Invariant: a write that has succeeded is durable.

use std::rc::Rc;

use csd_nvme::vendor::execute::SourceData;
use csd_reactor::Buffer;

use crate::array::Drive;
use crate::error::Error;
use crate::piece::Spot;

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
    /// Returns the piece as a source of an execution.
    pub(super) fn source(&self) -> SourceData {
        self.spot.location(self.drive.block.block_bytes()).source(self.bytes)
    }

    /// Reads the stored bytes; `None` if they are not there, or the drive finds them damaged.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn read(&self) -> Result<Option<Buffer>, Error> {
        self.spot.read(&self.drive, self.bytes).await
    }

    /// Writes the bytes to their location.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn write(&self, bytes: Buffer) -> Result<(), Error> {
        self.spot.write(&self.drive, bytes, true).await
    }
}
