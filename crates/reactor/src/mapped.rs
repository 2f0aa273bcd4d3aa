//! [`MappedFile`]: memory that pages to a scratch file.
//!
//! The file is deleted as soon as it is mapped, so no other process can reach or truncate it, and
//! it lives as long as the mapping. Access may wait for a disk: this is for measuring the cost of
//! such waits, not for a drive. Invariant: the mapping is as long as the file.

#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;

/// Zeroed memory, backed by a file of its own.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    len: usize,
}

impl MappedFile {
    /// Maps `bytes` bytes of a new file at `path`, and deletes its name.
    ///
    /// # Errors
    /// When the file exists or cannot be made, sized, mapped or deleted.
    pub fn scratch(path: &Path, bytes: u64) -> io::Result<Self> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "longer than memory");
        let len = usize::try_from(bytes.max(1)).map_err(too_long)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        std::fs::remove_file(path)?;
        file.set_len(len as u64)?;
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, wherever the kernel likes, of a file that is open and as long.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, kind, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped readable for `len` bytes until drop; only `bytes_mut` writes, which
        // borrows alone. No other process has the file: it was new, and its name is deleted.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Returns the bytes, mutably.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; mapped writable, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl MappedFile {
    /// Writes `range` out to the file, so that the system may reuse its memory.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write_out(&mut self, range: Range<usize>) -> io::Result<()> {
        let start = range.start.min(self.len) / PAGE_BYTES * PAGE_BYTES;
        let length = range.end.min(self.len).saturating_sub(start);
        // SAFETY: `start` lies in the mapping, on a page's begin, and `length` ends within it.
        let synced =
            unsafe { libc::msync(self.start.as_ptr().add(start).cast(), length, libc::MS_SYNC) };
        if synced == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Alignment of mappings, bytes: at least the page size of every supported machine.
const PAGE_BYTES: usize = 64 << 10;

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping that `scratch` made; no slice of it outlives `self`.
        let _unmapped = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_zero_until_written_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let mut map = MappedFile::scratch(&path, 10_000).unwrap();
        assert!(!path.exists());
        assert_eq!((map.bytes().len(), map.bytes().iter().max()), (10_000, Some(&0)));
        map.bytes_mut()[9_999] = 7;
        assert_eq!(map.bytes()[9_999], 7);
        map.write_out(9_000..20_000).unwrap();
        assert_eq!(map.bytes()[9_999], 7);
        std::fs::write(&path, b"taken").unwrap();
        let taken = MappedFile::scratch(&path, 1).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }
}
