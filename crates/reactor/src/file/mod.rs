//! Files: [`File`], and the operations that back ends carry out for it.
//!
//! File operations do not block the core. Invariant: an operation owns its descriptor and its
//! buffers from start to end; dropping its future discards the answer, not the operation.

mod handle;
mod op;
mod open;
mod threads;

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::backend::os;
use crate::current::current;
use crate::oneshot::oneshot;
use csd_buffer::Buffer;
pub use handle::{DirectAlignment, File, FileOptions};
use op::vanished;
pub(crate) use op::{Action, FileDone, FileOp, slices_after};
pub(crate) use threads::{FileThreads, no_thread};

/// Returns true if a file is on a file system of a process (FUSE); of one that is not there yet, if
/// its folder is. Blocks as the system call does, so it is not for a core that serves.
///
/// # Errors
/// Those of `statfs(2)`.
pub fn is_on_fuse(path: &Path) -> io::Result<bool> {
    let ask = |path: &Path| os::is_on_fuse(&CString::new(path.as_os_str().as_bytes())?);
    match ask(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            ask(folder.unwrap_or(Path::new(".")))
        }
        answer => answer,
    }
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

    /// Returns true if the file bypasses the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// Returns the alignment that direct transfers need; `None` where the file system refuses them.
    #[must_use]
    pub fn direct_alignment(&self) -> Option<DirectAlignment> {
        self.0.alignment
    }

    /// Returns the number of the file's names (0 once it is deleted) and its length in bytes. Does
    /// not wait: on a network file system both are what this machine knows.
    ///
    /// # Errors
    /// Those of `statx(2)`.
    pub fn names_and_bytes(&self) -> io::Result<(u32, u64)> {
        os::names_and_bytes(self.0.file.as_raw_fd())
    }

    /// Returns true if the file is a block device.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.0.is_block_device
    }

    /// Fills `buffer`'s live range from the file; returns it with the number of bytes read, which
    /// is less than its length only at the end of the file.
    pub async fn read_at(&self, offset: u64, buffer: Buffer) -> (io::Result<usize>, Buffer) {
        let done = self.run(Action::Read { offset, buffers: vec![buffer] }).await;
        let count = done.result.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        (count, done.buffers.into_iter().next().unwrap_or_default())
    }

    /// Writes all of `buffer`'s live range, and returns the buffer.
    pub async fn write_at(&self, offset: u64, buffer: Buffer) -> (io::Result<()>, Buffer) {
        let done = self.run(Action::Write { offset, buffers: vec![buffer] }).await;
        (done.result.map(drop), done.buffers.into_iter().next().unwrap_or_default())
    }

    /// Writes all of `buffers` one after the other, and returns them.
    pub async fn write_vectored_at(
        &self,
        offset: u64,
        buffers: Vec<Buffer>,
    ) -> (io::Result<()>, Vec<Buffer>) {
        let done = self.run(Action::Write { offset, buffers }).await;
        (done.result.map(drop), done.buffers)
    }

    /// Makes all earlier writes durable (`fdatasync`).
    ///
    /// # Errors
    /// Those of `fdatasync(2)`. After an error the earlier writes may be lost; a second try proves
    /// nothing.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.run(Action::Sync).await.result.map(drop)
    }

    /// Frees the range's space; it then reads as zeros.
    ///
    /// # Errors
    /// Those of `fallocate(2)`; `Unsupported` on some file systems.
    pub async fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.run(Action::Allocate { offset, len, mode }).await.result.map(drop)
    }

    /// Reserves the range's space, and extends the file to hold it.
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

    /// Returns the file's length, bytes; of a block device, its capacity.
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
