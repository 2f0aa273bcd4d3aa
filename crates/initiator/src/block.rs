//! [`Block`]: a block namespace as typed calls, in bytes.
//!
//! Long transfers are split into commands that are in flight together. This module neither caches
//! nor reads to modify; it refuses transfers that are not aligned to blocks. Invariant: a read or
//! write succeeds only if each of its commands has.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use csd_nvme::nvm::{self, BLOCKS_MAX, Extent};
use csd_reactor::Buffer;

use crate::handle::is_handle;
use crate::{Controller, Error, Handle, NamespaceKind};

/// A block namespace; clones are cheap.
#[derive(Clone, Debug)]
pub struct Block {
    handle: Handle,
    blocks: u64,
    block_bytes: u32,
}

is_handle!(Block);

impl Block {
    /// Returns the block namespace `nsid` of a drive.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it has no such namespace.
    pub fn open(controller: &Controller, nsid: u32) -> Result<Self, Error> {
        let (handle, (blocks, block_bytes)) =
            Handle::open(controller, nsid, "block", |kind| match kind {
                NamespaceKind::Block { blocks, block_bytes } => Some((blocks, block_bytes)),
                _ => None,
            })?;
        if controller.transfer_bytes_max() < block_bytes {
            return Err(controller.protocol("a block is larger than its transfers"));
        }
        Ok(Self { handle, blocks, block_bytes })
    }

    /// Returns the size of a block in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns the size of the namespace in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }

    /// Reads `len` bytes at `offset_bytes`, both multiples of the block size.
    ///
    /// # Errors
    /// [`Error::Misuse`] if unaligned or beyond the namespace; else any of a command's.
    pub async fn read(&self, offset_bytes: u64, len: usize) -> Result<Buffer, Error> {
        self.check(offset_bytes, len as u64)?;
        let pieces = self.pieces(len);
        let reads = pieces.iter().map(|piece| {
            let (sqe, bytes) = (nvm::read(self.nsid, self.extent(offset_bytes, piece)), piece.len);
            async move {
                let reply = self.controller.submit(sqe, Vec::new(), bytes).await?;
                if reply.data.len() != bytes as usize {
                    return Err(self.controller.protocol("a read is not as long as asked for"));
                }
                Ok(reply.data)
            }
        });
        let mut parts = join(reads).await?;
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let mut whole = Buffer::with_room(0, 0, len);
        for part in parts {
            whole.append(part.len()).copy_from_slice(&part);
        }
        Ok(whole)
    }

    /// Writes at `offset_bytes`; the offset and the length of `data` are multiples of the block
    /// size. Durable at completion if `fua`.
    ///
    /// # Errors
    /// [`Error::Misuse`] if unaligned or beyond the namespace; else any of a command's, and then
    /// any part may have been written.
    pub async fn write(
        &self,
        offset_bytes: u64,
        mut data: Vec<Buffer>,
        fua: bool,
    ) -> Result<(), Error> {
        self.write_kept(offset_bytes, &mut data, fua).await
    }

    /// Does the same as [`Self::write`]. If the connection is lost before all answers come, the
    /// bytes are in `data` again, for another connection.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_kept(
        &self,
        offset_bytes: u64,
        data: &mut Vec<Buffer>,
        fua: bool,
    ) -> Result<(), Error> {
        let len = data.iter().map(|part| part.len()).sum::<usize>();
        self.check(offset_bytes, len as u64)?;
        let pieces = self.pieces(len);
        if let [piece] = &pieces[..] {
            let sqe = nvm::write(self.nsid, self.extent(offset_bytes, piece), fua);
            return self.controller.submit_kept(sqe, data, 0).await.map(drop);
        }
        // A drive whose transfers are that short takes one of its parts and not the next.
        let kept: Vec<Buffer> = data.iter().map(|part| Buffer::from_slice(part)).collect();
        let payloads = split(
            std::mem::replace(data, kept),
            pieces.first().map_or(0, |piece| piece.len as usize),
        );
        let writes = pieces.iter().zip(payloads).map(|(piece, payload)| {
            let sqe = nvm::write(self.nsid, self.extent(offset_bytes, piece), fua);
            self.controller.submit(sqe, payload, 0)
        });
        join(writes).await.map(drop)
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn flush(&self) -> Result<(), Error> {
        self.controller.submit(nvm::flush(self.nsid), Vec::new(), 0).await.map(drop)
    }

    fn check(&self, offset: u64, len: u64) -> Result<(), Error> {
        let block = u64::from(self.block_bytes);
        if !offset.is_multiple_of(block) || !len.is_multiple_of(block) {
            let reason = format!("{len} bytes at {offset} are not whole blocks of {block} bytes");
            return Err(self.controller.misuse(reason));
        }
        if offset.checked_add(len).is_none_or(|end| end > self.bytes()) {
            let reason = format!(
                "{len} bytes at {offset} are beyond the namespace's {} bytes",
                self.bytes()
            );
            return Err(self.controller.misuse(reason));
        }
        Ok(())
    }

    /// Splits `len` bytes into commands within the drive's transfer limit and 65,536 blocks.
    fn pieces(&self, len: usize) -> Vec<Piece> {
        let blocks = (self.controller.transfer_bytes_max() / self.block_bytes).min(BLOCKS_MAX);
        let most = (blocks * self.block_bytes) as usize;
        let starts = (0..len).step_by(most);
        let piece = |start: usize| Piece {
            start: start as u64,
            len: u32::try_from(most.min(len - start)).expect("a transfer's length is a u32"),
        };
        starts.map(piece).collect()
    }

    fn extent(&self, offset: u64, piece: &Piece) -> Extent {
        let slba = (offset + piece.start) / u64::from(self.block_bytes);
        Extent { slba, blocks: piece.len / self.block_bytes }
    }
}

/// Bytes of one command, relative to the transfer's start.
struct Piece {
    start: u64,
    len: u32,
}

/// Splits buffers into pieces of `most` bytes, the last one shorter. Copies only the head of a
/// buffer that the end of a piece cuts.
pub(crate) fn split(data: Vec<Buffer>, most: usize) -> Vec<Vec<Buffer>> {
    let mut pieces = Vec::new();
    let (mut piece, mut room) = (Vec::new(), most);
    for mut buffer in data {
        while buffer.len() > room {
            piece.push(Buffer::from_slice(&buffer[..room]));
            buffer.advance(room);
            pieces.push(std::mem::take(&mut piece));
            room = most;
        }
        room -= buffer.len();
        if !buffer.is_empty() {
            piece.push(buffer);
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Runs futures together; returns their outputs in order, or the first error after all have ended.
pub(crate) async fn join<T, F>(futures: impl Iterator<Item = F>) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    if running.len() == 1 {
        return Ok(vec![running.remove(0).await?]);
    }
    let mut outputs: Vec<Option<Result<T, Error>>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let waiting = running.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none());
        for (future, output) in waiting {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_dealt_into_pieces_in_order() {
        let lens = [3usize, 0, 10, 4, 1];
        let mut next = 0u8;
        let buffers: Vec<Buffer> = lens
            .iter()
            .map(|len| {
                let mut buffer = Buffer::zeroed(*len);
                buffer.iter_mut().for_each(|byte| {
                    *byte = next;
                    next += 1;
                });
                buffer
            })
            .collect();
        let pieces = split(buffers, 4);
        let flat = |piece: &Vec<Buffer>| piece.iter().flat_map(|part| part.to_vec()).collect();
        let pieces: Vec<Vec<u8>> = pieces.iter().map(flat).collect();
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4, 4, 2]);
        assert_eq!(pieces.concat(), (0..18).collect::<Vec<u8>>());
        assert!(split(Vec::new(), 0).is_empty());
    }
}
