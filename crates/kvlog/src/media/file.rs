//! A plain file or a block device as a medium, with direct I/O where that is possible.
//!
//! Direct I/O takes aligned transfers only. Payloads arrive aligned, so they move without a copy. A
//! read that is not aligned reads the covering blocks into a buffer of its own, whose live range is
//! then narrowed: no copy either. A write whose pieces are not aligned, such as a group of records,
//! is copied into aligned pieces once.
//!
//! Invariants: a device that holds something else is not written; after a failed sync every write
//! and sync is refused (the kernel drops the error and the dirty pages with it, so a second sync
//! would report success wrongly); no other process has the medium open at the same time.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csd_reactor::{Buffer, DirectAlignment, File, FileOptions, yield_now};

use super::reserve::{OnZeros, reserve};
use super::{Failures, HEAD_BYTES, PAGE_BYTES, Returned};
use crate::error::{Error, MediaError};

/// Longest piece into which unaligned writes are copied.
const BOUNCE_BYTES: usize = 1 << 20;

/// Use of direct I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// Direct I/O where the file system takes it.
    #[default]
    Auto,
    /// Direct I/O, or an error.
    On,
    /// No direct I/O.
    Off,
}

/// A file or block device opened as a medium; clones share it.
#[derive(Clone)]
pub struct FileMedia {
    file: File,
    bytes: u64,
    // Alignment of direct I/O; `None` when transfers go through the page cache.
    alignment: Option<DirectAlignment>,
    note: Arc<str>,
    read_only: Arc<AtomicBool>,
    failures: Arc<Failures>,
    path: Arc<Path>,
    // True if its file system counts the names of a file.
    has_names: bool,
}

impl std::fmt::Debug for FileMedia {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileMedia({} bytes, {})", self.bytes, self.note)
    }
}

impl FileMedia {
    /// Opens `path`, and returns true with it if it is new: a file that did not exist or was empty,
    /// or has `bytes` bytes that all are zeros, or a block device that begins with zeros. A new
    /// file gets `bytes` bytes, reserved on its file system, or [written as zeros](OnZeros) where
    /// that cannot be; a file that was made for this and cannot get them is removed. Of a new
    /// device `bytes` bytes are used, or all of it if that is 0.
    ///
    /// # Errors
    /// [`Error::Media`] when it cannot be opened, is in use, or has no space; [`Error::Usage`] when
    /// a device is smaller than `bytes`, or direct I/O is required and refused.
    pub async fn open(
        path: &Path,
        bytes: u64,
        direct: Direct,
        on_zeros: OnZeros<'_>,
    ) -> Result<(Self, bool), Error> {
        let was_there = path.exists();
        let options =
            FileOptions { read: true, write: true, create: true, ..FileOptions::default() };
        let mut media = Self::open_as(path, options, direct).await?;
        let length = media.bytes;
        if media.file.is_block_device() {
            if bytes > length {
                let (path, wanted) = (path.display(), bytes >> 20);
                let has = length >> 20;
                return Err(Error::Usage(format!("{path} has {has} MiB, not {wanted}")));
            }
            let is_new = media.is_blank(HEAD_BYTES).await?;
            media.bytes = if is_new && bytes > 0 { bytes } else { length };
            return Ok((media, is_new));
        }
        // A first start that did not come to its end leaves reserved zeros.
        if length > 0 && (length != bytes || !media.is_blank(bytes).await?) {
            return Ok((media, false));
        }
        let failed = |source| Error::Media { path: path.to_owned(), source };
        if let Err(source) = reserve(&media.file, bytes, on_zeros).await {
            // No half-made media stays behind that a next start would take for a drive.
            let _ = match was_there {
                true => media.file.set_len(0).await,
                false => std::fs::remove_file(path),
            };
            return Err(failed(source));
        }
        if media.has_names {
            sync_folder(path).await.map_err(failed)?;
        }
        media.bytes = bytes;
        Ok((media, true))
    }

    /// Opens `path` read-only.
    ///
    /// # Errors
    /// [`Error::Media`] when it cannot be opened, or a drive serves it.
    pub async fn open_read_only(path: &Path) -> Result<Self, Error> {
        let options = FileOptions { read: true, ..FileOptions::default() };
        let media = Self::open_as(path, options, Direct::Auto).await?;
        media.read_only.store(true, Ordering::Release);
        Ok(media)
    }

    async fn open_as(path: &Path, plain: FileOptions, direct: Direct) -> Result<Self, Error> {
        let failed = |source| Error::Media { path: path.to_owned(), source };
        // The alignment is known only of an open file. It is closed again before the lock is taken.
        let seen = File::open(path, &plain).await.map_err(failed)?;
        let alignment = seen.direct_alignment().filter(|alignment| {
            let fits = |bytes: u32| bytes.is_power_of_two() && u64::from(bytes) <= PAGE_BYTES;
            fits(alignment.memory_bytes) && fits(alignment.offset_bytes)
        });
        drop(seen);
        let exclusive = FileOptions { exclusive: true, ..plain };
        let mut note = "direct I/O off, as asked for".to_owned();
        if direct != Direct::Off {
            match open_direct(path, &exclusive, alignment).await {
                Ok((file, alignment)) => {
                    let bytes = file.len().await.map_err(failed)?;
                    let block = alignment.offset_bytes;
                    let note = format!("direct I/O on, in blocks of {block} bytes");
                    return Ok(Self::of(path, file, bytes, Some(alignment), &note));
                }
                Err(error) if !is_refusal(&error) => return Err(failed(error)),
                Err(error) if direct == Direct::On => {
                    let path = path.display();
                    return Err(Error::Usage(format!(
                        "{path}: the file system refuses direct I/O ({error}): use --direct auto"
                    )));
                }
                Err(_) => note = "direct I/O off: the file system refuses it".to_owned(),
            }
        }
        let file = File::open(path, &exclusive).await.map_err(failed)?;
        let bytes = file.len().await.map_err(failed)?;
        Ok(Self::of(path, file, bytes, None, &note))
    }

    fn of(
        path: &Path,
        file: File,
        bytes: u64,
        alignment: Option<DirectAlignment>,
        note: &str,
    ) -> Self {
        let has_names = file.names_and_bytes().is_ok_and(|(names, _)| names > 0);
        Self {
            file,
            bytes,
            alignment,
            note: note.into(),
            read_only: Arc::default(),
            failures: Arc::default(),
            path: path.into(),
            has_names,
        }
    }

    /// Returns the failures.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns the path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes no more writes.
    pub fn refuse_writes(&self) {
        self.read_only.store(true, Ordering::Release);
    }

    /// Checks that the file still has a name, and its length. A device is not looked at, because
    /// its node in the file system says nothing of it.
    ///
    /// # Errors
    /// [`MediaError::Gone`].
    pub fn check_presence(&self) -> Result<(), MediaError> {
        if self.file.is_block_device() {
            return Ok(());
        }
        // What cannot be asked tells nothing.
        let Ok((names, bytes)) = self.file.names_and_bytes() else { return Ok(()) };
        let what = match () {
            () if self.has_names && names == 0 => "its file was deleted or replaced".to_owned(),
            () if bytes < self.bytes => {
                format!("its file was cut from {} to {bytes} bytes", self.bytes)
            }
            () => return Ok(()),
        };
        Err(MediaError::Gone(what))
    }

    /// Returns the smallest write in bytes; 1 through the page cache.
    pub fn write_unit(&self) -> u32 {
        self.alignment.map_or(1, |alignment| alignment.offset_bytes)
    }

    /// Returns a description of direct I/O: on, or the reason why not.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Returns the medium with another [`Self::note`].
    pub fn noted(mut self, note: &str) -> Self {
        self.note = note.into();
        self
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true when nothing can be written any more.
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire)
    }

    /// Returns true when the first `bytes` bytes are nothing but zeros.
    async fn is_blank(&self, bytes: u64) -> Result<bool, Error> {
        let bytes = bytes.min(self.bytes);
        for offset in (0..bytes).step_by(usize::try_from(HEAD_BYTES).expect("1 MiB")) {
            let length = usize::try_from(HEAD_BYTES.min(bytes - offset)).expect("at most 1 MiB");
            let (result, piece) = self.read(offset, Buffer::with_room(0, length, 0)).await;
            result?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills `buffer` from `offset` on. May return another buffer of the same length, with at least
    /// the headroom and tailroom of the given one.
    pub async fn read(&self, offset: u64, buffer: Buffer) -> Returned<Buffer> {
        let wanted = buffer.len();
        let (skip, covering) = match self.alignment {
            Some(alignment) if !is_aligned(alignment, offset, &buffer) => {
                cover(alignment, offset, buffer)
            }
            _ => (0, buffer),
        };
        let (result, mut buffer) = self.file.read_at(offset - skip as u64, covering).await;
        buffer.advance(skip);
        buffer.truncate(wanted);
        let result = match result {
            // The covering blocks may extend beyond the end of a file; the range asked for may not.
            Ok(count) if count >= skip + wanted => Ok(()),
            Ok(_) => Err(MediaError::Io("the file has become shorter".into())),
            Err(error) => Err(MediaError::Io(error.to_string())),
        };
        (result, buffer)
    }

    /// Writes the buffers one behind the other from `offset` on.
    pub async fn write(&self, offset: u64, buffers: Vec<Buffer>) -> Returned<Vec<Buffer>> {
        if self.is_read_only() {
            return (Err(MediaError::ReadOnly), buffers);
        }
        let aligned =
            |alignment| buffers.iter().all(|buffer| is_aligned(alignment, offset, buffer));
        let (result, buffers) = match self.alignment {
            Some(alignment) if !aligned(alignment) => {
                let total: usize = buffers.iter().map(|buffer| buffer.len()).sum();
                let unit = u64::from(alignment.offset_bytes);
                if !offset.is_multiple_of(unit) || !(total as u64).is_multiple_of(unit) {
                    // Part of a block. The drive is opened so that this does not happen.
                    return (Err(MediaError::OutOfRange), buffers);
                }
                let pieces = bounced(&buffers, total).await;
                (self.file.write_vectored_at(offset, pieces).await.0, buffers)
            }
            _ => self.file.write_vectored_at(offset, buffers).await,
        };
        (result.map_err(|error| MediaError::from(&error)), buffers)
    }

    /// Deallocates a range, so that it reads as zeros; false when the file system cannot, and
    /// nothing was done.
    ///
    /// # Errors
    /// When the file is read-only, or the operating system failed for another reason.
    pub async fn punch(&self, offset: u64, bytes: u64) -> Result<bool, MediaError> {
        if self.is_read_only() {
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
    /// The error of the operating system at first, [`MediaError::ReadOnly`] later.
    pub async fn sync(&self) -> Result<(), MediaError> {
        if self.is_read_only() {
            return Err(MediaError::ReadOnly);
        }
        self.file.sync_data().await.map_err(|error| {
            self.read_only.store(true, Ordering::Release);
            MediaError::Io(error.to_string())
        })
    }
}

/// Opens a file for direct I/O and tries a transfer, because some file systems refuse only that.
async fn open_direct(
    path: &Path,
    options: &FileOptions,
    alignment: Option<DirectAlignment>,
) -> io::Result<(File, DirectAlignment)> {
    let alignment = alignment.ok_or(io::ErrorKind::Unsupported)?;
    let file = File::open(path, &FileOptions { direct: true, ..*options }).await?;
    let page = usize::try_from(PAGE_BYTES).expect("a page");
    file.read_at(0, Buffer::with_room(0, page, 0)).await.0?;
    Ok((file, alignment))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

fn is_aligned(alignment: DirectAlignment, offset: u64, buffer: &Buffer) -> bool {
    let (memory, unit) = (alignment.memory_bytes as usize, alignment.offset_bytes);
    buffer.as_ptr().addr().is_multiple_of(memory)
        && buffer.len().is_multiple_of(unit as usize)
        && offset.is_multiple_of(unit.into())
}

/// Makes a buffer for the blocks that cover a read, with the headroom and tailroom of `wanted`.
/// Returns it with the number of bytes before the read.
fn cover(alignment: DirectAlignment, offset: u64, wanted: Buffer) -> (usize, Buffer) {
    let unit = alignment.offset_bytes as usize;
    let skip = usize::try_from(offset % unit as u64).expect("less than a block");
    let length = (skip + wanted.len()).next_multiple_of(unit);
    (skip, Buffer::with_room(wanted.headroom(), length, wanted.tailroom()))
}

/// Copies the bytes to aligned pieces, and yields to other tasks after each.
async fn bounced(buffers: &[Buffer], total: usize) -> Vec<Buffer> {
    let mut pieces = Vec::with_capacity(total.div_ceil(BOUNCE_BYTES));
    let mut sources = buffers.iter();
    let (mut rest, mut left): (&[u8], usize) = (&[], total);
    while left > 0 {
        let mut piece = Buffer::with_room(0, left.min(BOUNCE_BYTES), 0);
        let mut filled = 0;
        while filled < piece.len() {
            if rest.is_empty() {
                rest = sources.next().expect("as many bytes as counted");
                continue;
            }
            let count = rest.len().min(piece.len() - filled);
            let (now, later) = rest.split_at(count);
            piece[filled..filled + count].copy_from_slice(now);
            filled += count;
            rest = later;
        }
        left -= piece.len();
        pieces.push(piece);
        if left > 0 {
            yield_now().await;
        }
    }
    pieces
}

/// Makes a new file's name durable: without it a power cut may lose the whole drive.
async fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let options = FileOptions { read: true, ..FileOptions::default() };
    File::open(folder, &options).await?.sync_data().await
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
