//! [`FileOp`]: an operation on a file, and its execution on a thread that may block.
//!
//! Invariant: an operation owns its descriptor and its buffers from start to end.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::handle::{File, FileOptions};
use super::open;
use crate::backend::os;
use csd_buffer::Buffer;

/// Returns the error for an operation without an answer, which only a core that ends leaves behind.
pub(super) fn vanished() -> io::Error {
    io::Error::other("the file operation was given up")
}

/// An operation in flight, with its descriptor and buffers.
pub(crate) struct FileOp {
    /// File; absent for [`Action::Open`] alone.
    pub(super) file: Option<File>,
    pub(crate) action: Action,
    /// Number of bytes read or written so far.
    pub(crate) transferred: usize,
}

/// Kind of operation, with its arguments.
pub(crate) enum Action {
    Open { path: PathBuf, options: FileOptions },
    Read { offset: u64, buffers: Vec<Buffer> },
    Write { offset: u64, buffers: Vec<Buffer> },
    Sync,
    Allocate { offset: u64, len: u64, mode: libc::c_int },
    SetLen(u64),
    Len,
}

/// Outcome of an operation; the buffers come back whatever the result.
pub(crate) struct FileDone {
    pub(crate) result: io::Result<u64>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) opened: Option<File>,
}

impl FileOp {
    /// Returns the descriptor, or -1 (which every call refuses) before the file is open.
    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, |file| file.0.file.as_raw_fd())
    }

    /// Returns the number of bytes that a read or write moves in all.
    pub(crate) fn wanted(&self) -> usize {
        match &self.action {
            Action::Read { buffers, .. } | Action::Write { buffers, .. } => {
                buffers.iter().map(|buffer| buffer.len()).sum()
            }
            _ => 0,
        }
    }

    /// Records that a read or write moved `count` bytes; returns true if it is complete.
    pub(crate) fn advance(&mut self, count: usize) -> io::Result<bool> {
        self.transferred += count;
        let whole = self.transferred >= self.wanted();
        match &self.action {
            Action::Write { .. } if count == 0 && !whole => Err(io::ErrorKind::WriteZero.into()),
            // A direct read that stops inside a block has met the end of the file; to ask for the
            // rest at an odd offset would be an error.
            Action::Read { .. } => {
                let direct = self.file.as_ref().is_some_and(File::is_direct);
                Ok(whole || count == 0 || (direct && !count.is_multiple_of(512)))
            }
            _ => Ok(whole),
        }
    }

    /// Ends the operation.
    pub(crate) fn finish(self, result: io::Result<u64>) -> FileDone {
        let buffers = match self.action {
            Action::Read { buffers, .. } | Action::Write { buffers, .. } => buffers,
            _ => Vec::new(),
        };
        FileDone { result, buffers, opened: None }
    }

    /// Executes the operation on the calling thread, which may block.
    pub(crate) fn run(mut self) -> FileDone {
        if let Action::Open { path, options } = &self.action {
            return match open::open(path, options) {
                Ok(file) => FileDone { result: Ok(0), buffers: Vec::new(), opened: Some(file) },
                Err(error) => self.finish(Err(error)),
            };
        }
        let result = self.run_opened();
        self.finish(result)
    }

    fn run_opened(&mut self) -> io::Result<u64> {
        let Some(opened) = self.file.clone() else { return Err(vanished()) };
        let file = &opened.0.file;
        match &self.action {
            Action::Read { .. } | Action::Write { .. } => self.transfer(file),
            Action::Sync => file.sync_data().map(|()| 0),
            Action::SetLen(len) => file.set_len(*len).map(|()| 0),
            Action::Len => length(file),
            Action::Allocate { offset, len, mode } => {
                os::fallocate(file.as_raw_fd(), *mode, *offset, *len).map(|()| 0)
            }
            Action::Open { .. } => Err(vanished()),
        }
    }

    fn transfer(&mut self, file: &std::fs::File) -> io::Result<u64> {
        if self.wanted() == 0 {
            return Ok(0);
        }
        loop {
            let done = self.transferred;
            let moved = match &mut self.action {
                Action::Read { offset, buffers } => {
                    let at = *offset + done as u64;
                    buffers
                        .first_mut()
                        .map_or(Ok(0), |buffer| file.read_at(&mut buffer[done..], at))
                }
                Action::Write { offset, buffers } => {
                    let slices = slices_after(buffers, done);
                    os::write_vectored(file.as_raw_fd(), &slices, *offset + done as u64)
                }
                _ => Ok(0),
            };
            match moved {
                Ok(count) => {
                    if self.advance(count)? {
                        return Ok(self.transferred as u64);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the part of `buffers` after `done` bytes, at most as many slices as a call takes.
pub(crate) fn slices_after(buffers: &[Buffer], mut done: usize) -> Vec<IoSlice<'_>> {
    let mut slices = Vec::with_capacity(buffers.len().min(libc::UIO_MAXIOV as usize));
    for buffer in buffers {
        if done >= buffer.len() {
            done -= buffer.len();
            continue;
        }
        if slices.len() == libc::UIO_MAXIOV as usize {
            break;
        }
        slices.push(IoSlice::new(&buffer[done..]));
        done = 0;
    }
    slices
}

/// Returns the length by seeking, because `fstat` does not report a block device's capacity;
/// positions are not otherwise used.
fn length(mut file: &std::fs::File) -> io::Result<u64> {
    io::Seek::seek(&mut file, io::SeekFrom::End(0))
}
