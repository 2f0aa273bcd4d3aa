//! A plain file as a medium.
//!
//! Never: formats. Invariant: after a failed sync every write and sync is refused (the kernel drops
//! the error and the dirty pages with it, so a second sync would lie).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csd_reactor::{Buffer, File, FileOptions};

use super::Returned;
use crate::error::{Error, MediaError};

/// A file opened as a medium; clones share it.
#[derive(Clone)]
pub struct FileMedia {
    file: File,
    bytes: u64,
    read_only: Arc<AtomicBool>,
}

impl std::fmt::Debug for FileMedia {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileMedia({} bytes)", self.bytes)
    }
}

impl FileMedia {
    /// Opens `path`; a new file gets `bytes` bytes, reserved on its file system so that a full
    /// folder is found now and not in the middle of a write.
    ///
    /// # Errors
    /// [`Error::Media`] when the file cannot be opened, or has no room.
    pub async fn open(path: &Path, bytes: u64) -> Result<(Self, bool), Error> {
        let failed = |source| Error::Media { path: path.to_owned(), source };
        let options =
            FileOptions { read: true, write: true, create: true, ..FileOptions::default() };
        let file = File::open(path, &options).await.map_err(failed)?;
        let length = file.len().await.map_err(failed)?;
        let is_new = length == 0;
        if is_new && let Err(source) = file.allocate(0, bytes).await {
            // Leave no half-made media behind that a next start would take for a drive.
            let _ = file.set_len(0).await;
            return Err(failed(source));
        }
        let bytes = if is_new { bytes } else { length };
        Ok((Self { file, bytes, read_only: Arc::default() }, is_new))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills `buffer` from `offset` on.
    pub async fn read(&self, offset: u64, buffer: Buffer) -> Returned<Buffer> {
        let wanted = buffer.len();
        let (result, buffer) = self.file.read_at(offset, buffer).await;
        let result = match result {
            Ok(count) if count == wanted => Ok(()),
            Ok(_) => Err(MediaError::Io("the file has become shorter".into())),
            Err(error) => Err(MediaError::Io(error.to_string())),
        };
        (result, buffer)
    }

    /// Writes the buffers one behind the other from `offset` on.
    pub async fn write(&self, offset: u64, buffers: Vec<Buffer>) -> Returned<Vec<Buffer>> {
        if self.read_only.load(Ordering::Acquire) {
            return (Err(MediaError::ReadOnly), buffers);
        }
        let (result, buffers) = self.file.write_vectored_at(offset, buffers).await;
        (result.map_err(|error| MediaError::from(&error)), buffers)
    }

    /// Gives a range's space back, so that it reads as zeros; false when the file system cannot,
    /// and nothing was done.
    ///
    /// # Errors
    /// When the file is read-only, or the operating system failed for another reason.
    pub async fn punch(&self, offset: u64, bytes: u64) -> Result<bool, MediaError> {
        if self.read_only.load(Ordering::Acquire) {
            return Err(MediaError::ReadOnly);
        }
        match self.file.punch_hole(offset, bytes).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(false),
            Err(error) => Err(MediaError::from(&error)),
        }
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// The first failure is the operating system's, later ones are [`MediaError::ReadOnly`].
    pub async fn sync(&self) -> Result<(), MediaError> {
        if self.read_only.load(Ordering::Acquire) {
            return Err(MediaError::ReadOnly);
        }
        self.file.sync_data().await.map_err(|error| {
            self.read_only.store(true, Ordering::Release);
            MediaError::Io(error.to_string())
        })
    }
}
