//! [`UblkRequest`]: a request of the kernel to a device, answered exactly once.

use std::io;
use std::rc::Rc;

use csd_buffer::Buffer;

use super::queue::Queue;
use super::ring::Ring;
use super::wire::{
    COMMIT_AND_FETCH, Commit, Descriptor, FLAG_FUA, FLAG_NO_UNMAP, OP_DISCARD, OP_FLUSH, OP_MASK,
    OP_READ, OP_WRITE, OP_WRITE_ZEROES,
};

/// Operations of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UblkAction {
    /// Read; the data is given by [`UblkRequest::fill`].
    Read,
    /// Write of [`UblkRequest::data`].
    Write {
        /// True if it must be durable when it ends (FUA).
        durable: bool,
    },
    /// All writes that have ended become durable.
    Flush,
    /// Discard: the range is not needed any more.
    Discard,
    /// The range reads as zeros afterwards.
    WriteZeroes {
        /// True if its space may be given back.
        unmap: bool,
    },
    /// An operation that this module does not know.
    Unknown,
}

impl UblkAction {
    fn of(word: u32) -> Self {
        match word & OP_MASK {
            OP_READ => Self::Read,
            OP_WRITE => Self::Write { durable: word & FLAG_FUA != 0 },
            OP_FLUSH => Self::Flush,
            OP_DISCARD => Self::Discard,
            OP_WRITE_ZEROES => Self::WriteZeroes { unmap: word & FLAG_NO_UNMAP == 0 },
            _ => Self::Unknown,
        }
    }
}

/// A request; one that is dropped unanswered fails with EIO.
pub struct UblkRequest {
    ring: Rc<Ring>,
    queue: Rc<Queue>,
    tag: u16,
    descriptor: Descriptor,
    /// Its outcome: bytes, or a negative error number.
    result: i32,
}

impl UblkRequest {
    pub(super) fn new(ring: &Rc<Ring>, queue: &Rc<Queue>, tag: u16) -> Self {
        let descriptor = queue.descriptor(tag);
        let (ring, queue) = (Rc::clone(ring), Rc::clone(queue));
        Self { ring, queue, tag, descriptor, result: -libc::EIO }
    }

    /// Returns what is asked for.
    #[must_use]
    pub fn action(&self) -> UblkAction {
        UblkAction::of(self.descriptor.word)
    }

    /// Returns the offset of the range in bytes; a flush has none.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.descriptor.offset()
    }

    /// Returns the length of the range in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.descriptor.bytes()
    }

    /// Copies the data of a write.
    ///
    /// # Errors
    /// If the device was stopped, or the request is no write.
    pub fn data(&self) -> io::Result<Buffer> {
        let length = usize::try_from(self.bytes()).map_err(io::Error::other)?;
        let mut data = Buffer::zeroed(length);
        self.queue.read_data(self.tag, &mut data)?;
        Ok(data)
    }

    /// Gives the data of a read.
    ///
    /// # Errors
    /// If the device was stopped, or the request is no read.
    pub fn fill(&self, data: &[u8]) -> io::Result<()> {
        self.queue.write_data(self.tag, data)
    }

    /// Ends the request: as a whole, or with an error number.
    pub fn end(mut self, outcome: Result<(), i32>) {
        self.result = match (outcome, self.action()) {
            (Err(errno), _) => -errno.max(1),
            (Ok(()), UblkAction::Read | UblkAction::Write { .. }) => {
                i32::try_from(self.bytes()).unwrap_or(i32::MAX)
            }
            (Ok(()), _) => 0,
        };
    }
}

impl Drop for UblkRequest {
    fn drop(&mut self) {
        let commit = Commit { queue: 0, tag: self.tag, result: self.result, addr: 0 };
        // The ring has room for all tags twice; and a device that ends fails its requests itself.
        let _queued = self.ring.commit(&self.queue.device, COMMIT_AND_FETCH, commit);
    }
}
