//! Chunks and parity pieces at their locations on drives.

use csd_nvme::status::Status;
use csd_nvme::vendor::execute::chunk_key;
use csd_nvme::vendor::location::{Location, LocationKind};
use csd_reactor::Buffer;

use crate::array::{BLOCK_NSID, Drive, OBJECTS_NSID};
use crate::catalogue::{Entry, ObjectId, Placement};
use crate::error::Error;
use crate::extent_ranges::byte_ranges;
use crate::layout::Layout;
use crate::link::Link;

/// Location of a piece on its drive, as the store computes it: before it knows the drive's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A value in the objects' namespace, by the two parts of its key.
    Value(ObjectId, u32),
    /// Bytes of the block namespace from here on.
    Blocks(u64),
}

impl Spot {
    /// Returns true if it lies on blocks.
    pub(crate) fn is_on_blocks(self) -> bool {
        matches!(self, Self::Blocks(_))
    }

    /// Returns the location of a chunk of an object, which has this layout, on its drive.
    pub(crate) fn of_chunk(entry: &Entry, layout: &Layout, chunk: u32) -> Self {
        let Placement::Block(extents) = &entry.placement else {
            return Self::Value(entry.id, layout.number(chunk));
        };
        let start = u64::from(layout.local(chunk)) * u64::from(entry.chunk_bytes);
        let bytes = layout.chunk_len(chunk).into();
        // A chunk never crosses a unit, so there is one range.
        Self::Blocks(byte_ranges(&extents[layout.member(chunk)], start, bytes)[0].0)
    }

    /// Reads a piece of `bytes` bytes; `None` if it is not there, or the drive finds it damaged.
    ///
    /// # Errors
    /// A failed command.
    pub(crate) async fn read(self, drive: &Drive, bytes: u32) -> Result<Option<Buffer>, Error> {
        let read = match self {
            Self::Value(id, number) => {
                let front = drive.objects.front(&chunk_key(&id.0, number), bytes).await;
                let is_whole = |(_, whole): &(Buffer, u64)| *whole == u64::from(bytes);
                front.map(|front| front.filter(is_whole).map(|(front, _)| front))
            }
            Self::Blocks(start) => {
                let whole = (bytes as usize).next_multiple_of(drive.block.block_bytes() as usize);
                drive.block.read(start, whole).await.map(Some)
            }
        };
        match read {
            Ok(read) => Ok(read.map(|mut read| {
                read.truncate(bytes as usize);
                read
            })),
            Err(error) if is_damage(error.status()) => Ok(None),
            Err(error) => Err(Error::command(drive, error)),
        }
    }

    /// Writes a piece to its location, of blocks with zeros up to the end of the last one. A piece
    /// on blocks is durable afterwards if `is_durable`, a value always.
    ///
    /// # Errors
    /// A failed command.
    pub(crate) async fn write(
        self,
        drive: &Drive,
        piece: Buffer,
        is_durable: bool,
    ) -> Result<(), Error> {
        self.write_kept(drive, &mut vec![piece], is_durable).await
    }

    /// Writes a piece to its location, again over another connection if the first is lost; one on
    /// blocks is not durable afterwards.
    ///
    /// # Errors
    /// A failed command.
    pub(crate) async fn write_over(self, link: &Link, piece: Buffer) -> Result<(), Error> {
        let mut piece = vec![piece];
        link.run(async |drive| self.write_kept(drive, &mut piece, false).await).await
    }

    /// Does the same as [`Self::write`] with one buffer. If the connection is lost before an answer
    /// comes, the piece is in `piece` again, for another connection.
    ///
    /// # Errors
    /// A failed command.
    async fn write_kept(
        self,
        drive: &Drive,
        piece: &mut Vec<Buffer>,
        is_durable: bool,
    ) -> Result<(), Error> {
        let written = match self {
            Self::Value(id, number) => {
                drive.objects.store_kept(&chunk_key(&id.0, number), piece, 0).await
            }
            Self::Blocks(start) => {
                let block_bytes = drive.block.block_bytes() as usize;
                for bytes in &mut *piece {
                    let padding = bytes.len().next_multiple_of(block_bytes) - bytes.len();
                    bytes.append(padding).fill(0);
                }
                drive.block.write_kept(start, piece, is_durable).await
            }
        };
        written.map_err(|error| Error::command(drive, error))
    }

    /// Returns kind, namespace, identifier and start by which page lists of an object name a piece.
    pub(crate) fn listed(self, object: ObjectId) -> (LocationKind, u32, ObjectId, u64) {
        match self {
            Self::Value(id, number) => (LocationKind::VALUE, OBJECTS_NSID, id, number.into()),
            Self::Blocks(start) => (LocationKind::BLOCKS, BLOCK_NSID, object, start),
        }
    }

    /// Returns the location in the units of commands, on a drive whose blocks have this size.
    pub(crate) fn location(self, block_bytes: u32) -> Location {
        match self {
            Self::Value(id, number) => {
                Location::Value { nsid: OBJECTS_NSID, key: *chunk_key(&id.0, number).padded() }
            }
            // Pieces begin with a block.
            Self::Blocks(start) => {
                Location::Blocks { nsid: BLOCK_NSID, slba: start / u64::from(block_bytes) }
            }
        }
    }
}

/// Returns the result of `verify` over pieces with these checksums, each a page.
pub(crate) fn verified(sums: &[u32]) -> u64 {
    let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    u64::from(crc32c::crc32c(&bytes)) | (sums.len() as u64) << 32
}

/// Returns true if a drive says that it cannot read the medium there.
pub fn is_damage(status: Option<Status>) -> bool {
    matches!(status, Some(Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR))
}

#[cfg(test)]
mod tests {
    use csd_kernels::kernel::{Kernel, Wanted};
    use csd_kernels::program;
    use csd_kernels::verify::{self, Parameters, Plan, Spacing};
    use csd_reactor::Buffer;

    use super::*;

    #[test]
    fn the_digest_is_that_of_the_kernel() {
        let chunks = [vec![1; 4096], vec![2; 4096], vec![3; 100]];
        let sums: Vec<u32> = chunks.iter().map(|chunk| crc32c::crc32c(chunk)).collect();
        let parameters =
            Parameters { plan: Plan::sequential(4096), spacing: Spacing::default() }.encode();
        let program = verify::KERNEL.start(&parameters, Wanted::Result).unwrap();
        let stream = chunks.iter().map(|chunk| Buffer::from_slice(chunk)).collect();
        assert_eq!(program::run(program, vec![stream]).unwrap().0, verified(&sums));
    }
}
