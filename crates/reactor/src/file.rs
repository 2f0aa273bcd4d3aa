//! Files: [`File`], and the operations that back ends carry out for it.
//!
//! Never blocks the core. Invariant: an operation owns its descriptor and its buffers from start
//! to end; a future that is dropped gives up the answer, not the operation.

mod open;
mod threads;

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::os;
use crate::buffer::Buffer;
use crate::core::current;
use crate::oneshot::oneshot;
pub use open::DirectAlignment;
pub(crate) use threads::FileThreads;

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// Created if it is not there; needs `write`.
    pub create: bool,
    /// Created, and an error if it is there; needs `write`.
    pub create_new: bool,
    /// Cut to nothing; needs `write`.
    pub truncate: bool,
    /// Bypasses the page cache (`O_DIRECT`): offsets, lengths and addresses must be multiples of
    /// the device's block. Some file systems refuse it.
    pub direct: bool,
    /// For this opener alone: a block device that anyone else has mounted or opened so is refused
    /// (`O_EXCL`), and so is a file that another has open with this flag; with `read` alone, a file
    /// that another has open to write with it. Errors then are `ResourceBusy`.
    pub exclusive: bool,
}

/// An open file or block device, usable from any core. Closed when its last copy and its last
/// operation are gone.
#[derive(Clone, Debug)]
pub struct File(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: std::fs::File,
    direct: bool,
    is_block_device: bool,
    alignment: Option<DirectAlignment>,
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of `open(2)`; `Unsupported` in the simulation, where media are simulated instead.
    pub async fn open(path: impl AsRef<Path>, options: &FileOptions) -> io::Result<Self> {
        let action = Action::Open { path: path.as_ref().to_owned(), options: *options };
        let done = perform(None, action).await;
        done.result?;
        done.opened.ok_or_else(vanished)
    }

    /// Whether it bypasses the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// What direct transfers of it must be aligned to; `None` where the file system refuses them.
    #[must_use]
    pub fn direct_alignment(&self) -> Option<DirectAlignment> {
        self.0.alignment
    }

    /// Whether it is a block device.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.0.is_block_device
    }

    /// Fills `buffer`'s live range from the file, and gives it back with the count of bytes read:
    /// less than its length only at the end of the file.
    pub async fn read_at(&self, offset: u64, buffer: Buffer) -> (io::Result<usize>, Buffer) {
        let done = self.run(Action::Read { offset, buffers: vec![buffer] }).await;
        let count = done.result.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        (count, done.buffers.into_iter().next().unwrap_or_default())
    }

    /// Writes all of `buffer`'s live range, and gives it back.
    pub async fn write_at(&self, offset: u64, buffer: Buffer) -> (io::Result<()>, Buffer) {
        let done = self.run(Action::Write { offset, buffers: vec![buffer] }).await;
        (done.result.map(drop), done.buffers.into_iter().next().unwrap_or_default())
    }

    /// Writes all of `buffers` one after the other, and gives them back.
    pub async fn write_vectored_at(
        &self,
        offset: u64,
        buffers: Vec<Buffer>,
    ) -> (io::Result<()>, Vec<Buffer>) {
        let done = self.run(Action::Write { offset, buffers }).await;
        (done.result.map(drop), done.buffers)
    }

    /// Makes what was written durable (`fdatasync`).
    ///
    /// # Errors
    /// Those of `fdatasync(2)`. After one, what was written is in doubt; do not try again.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.run(Action::Sync).await.result.map(drop)
    }

    /// Gives the range's space back; it then reads as zeros.
    ///
    /// # Errors
    /// Those of `fallocate(2)`; `Unsupported` on some file systems.
    pub async fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.run(Action::Allocate { offset, len, mode }).await.result.map(drop)
    }

    /// Reserves the range's space, and lengthens the file to hold it.
    ///
    /// # Errors
    /// Those of `fallocate(2)`.
    pub async fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.run(Action::Allocate { offset, len, mode: 0 }).await.result.map(drop)
    }

    /// Sets the file's length, bytes.
    ///
    /// # Errors
    /// Those of `ftruncate(2)`.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        self.run(Action::SetLen(len)).await.result.map(drop)
    }

    /// The file's length, bytes; of a block device, its capacity.
    ///
    /// # Errors
    /// Those of `lseek(2)`.
    pub async fn len(&self) -> io::Result<u64> {
        self.run(Action::Len).await.result
    }

    async fn run(&self, action: Action) -> FileDone {
        perform(Some(self.clone()), action).await
    }
}

async fn perform(file: Option<File>, action: Action) -> FileDone {
    let (reply, done) = oneshot();
    current().backend.file(Box::new(FileOp { file, action, transferred: 0 }), reply);
    done.await.unwrap_or_else(|| FileDone {
        result: Err(vanished()),
        buffers: Vec::new(),
        opened: None,
    })
}

/// Only a core that is being torn down leaves an operation without an answer.
fn vanished() -> io::Error {
    io::Error::other("the file operation was given up")
}

/// An operation in flight, with all that it touches.
pub(crate) struct FileOp {
    /// Absent for [`Action::Open`] alone.
    file: Option<File>,
    pub(crate) action: Action,
    /// Bytes of a read or write that are done.
    pub(crate) transferred: usize,
}

/// What is to be done.
pub(crate) enum Action {
    Open { path: PathBuf, options: FileOptions },
    Read { offset: u64, buffers: Vec<Buffer> },
    Write { offset: u64, buffers: Vec<Buffer> },
    Sync,
    Allocate { offset: u64, len: u64, mode: libc::c_int },
    SetLen(u64),
    Len,
}

/// The end of an operation; the buffers come back whatever the result.
pub(crate) struct FileDone {
    pub(crate) result: io::Result<u64>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) opened: Option<File>,
}

impl FileOp {
    /// The descriptor, or -1 (which no call accepts) before there is one.
    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, |file| file.0.file.as_raw_fd())
    }

    /// How many bytes a read or write is to move in all.
    pub(crate) fn wanted(&self) -> usize {
        match &self.action {
            Action::Read { buffers, .. } | Action::Write { buffers, .. } => {
                buffers.iter().map(|buffer| buffer.len()).sum()
            }
            _ => 0,
        }
    }

    /// Notes that a read or write moved `count` bytes. Returns whether it is complete.
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

    /// Carries the operation out on the calling thread, which may block.
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

/// What is left of `buffers` after `done` bytes, at most as many slices as a call takes.
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

/// `fstat` says nothing of a block device's capacity, so seek; positions are not otherwise used.
fn length(mut file: &std::fs::File) -> io::Result<u64> {
    io::Seek::seek(&mut file, io::SeekFrom::End(0))
}
