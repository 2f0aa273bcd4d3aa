//! A file operation in flight on the ring, and the entry for its remaining bytes.
//!
//! This module only builds entries; its parent submits them. Invariant: all memory that an entry
//! points to lives in the operation or its slot, which does not move until the ring has answered.

use std::io;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};

use crate::file::{Action, FileDone, FileOp, slices_after};
use crate::oneshot::Sender;

/// Maximum bytes of one transfer: its length has 32 bits and is signed in the answer.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

/// A file operation to which the ring holds pointers.
pub(super) struct FileSlot {
    pub(super) op: Box<FileOp>,
    pub(super) reply: Sender<FileDone>,
    /// Read by the ring while a vectored write is in flight.
    vectors: Vec<libc::iovec>,
}

impl FileSlot {
    pub(super) fn new(op: Box<FileOp>, reply: Sender<FileDone>) -> Self {
        Self { op, reply, vectors: Vec::new() }
    }

    /// Returns the entry for the remaining bytes. Operations without an entry of their own, such as
    /// opening, never reach the ring.
    pub(super) fn entry(&mut self) -> squeue::Entry {
        let fd = Fd(self.op.fd());
        let done = self.op.transferred;
        match &mut self.op.action {
            Action::Read { offset, buffers } => {
                let rest = buffers.first_mut().map_or(&mut [][..], |buffer| &mut buffer[done..]);
                let len = transfer_len(rest.len());
                opcode::Read::new(fd, rest.as_mut_ptr(), len).offset(*offset + done as u64).build()
            }
            Action::Write { offset, buffers } if buffers.len() == 1 => {
                let rest = &buffers[0][done..];
                let len = transfer_len(rest.len());
                opcode::Write::new(fd, rest.as_ptr(), len).offset(*offset + done as u64).build()
            }
            Action::Write { offset, buffers } => {
                let vector = |slice: io::IoSlice<'_>| libc::iovec {
                    iov_base: slice.as_ptr().cast_mut().cast(),
                    iov_len: slice.len(),
                };
                self.vectors = slices_after(buffers, done).into_iter().map(vector).collect();
                let count = u32::try_from(self.vectors.len()).unwrap_or(0);
                opcode::Writev::new(fd, self.vectors.as_ptr(), count)
                    .offset(*offset + done as u64)
                    .build()
            }
            Action::Allocate { offset, len, mode } => {
                opcode::Fallocate::new(fd, *len).offset(*offset).mode(*mode).build()
            }
            _ => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
        }
    }
}

fn transfer_len(len: usize) -> u32 {
    u32::try_from(len.min(TRANSFER_BYTES_MAX)).unwrap_or(u32::MAX)
}
