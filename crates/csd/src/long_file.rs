//! [`LongFile`]: a file that is written sequentially, most of it with direct I/O.
//!
//! The first [`DIRECT_FROM`] bytes, and unaligned writes, go through the page cache. The rest uses
//! direct I/O where the file system supports it. This saves a copy of every byte, the memory for it
//! and most of a later sync; bench/notes/direct-io-of-csd-get.md has the figures. Does not sync.
//! Invariant: the file has the written bytes in order, whichever way they took.

use std::fs::File;
use std::io::{self, Write};

use csd_reactor::ALIGNMENT;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// Number of first bytes that go through the page cache: shorter files are likely to be read again
/// soon.
const DIRECT_FROM: u64 = 64 << 20;
/// A new file that is being written.
#[derive(Debug)]
pub(crate) struct LongFile {
    file: File,
    position: u64,
    direct_from: u64,
    direct: bool,
}

impl LongFile {
    /// Wraps an empty file.
    pub(crate) fn new(file: File) -> Self {
        Self { file, position: 0, direct_from: DIRECT_FROM, direct: false }
    }

    /// Returns true if these bytes can be written with direct I/O.
    fn suits(&self, bytes: &[u8]) -> bool {
        let aligned = |number: usize| number.is_multiple_of(ALIGNMENT);
        self.position >= self.direct_from
            && self.position.is_multiple_of(ALIGNMENT as u64)
            && aligned(bytes.len())
            && aligned(bytes.as_ptr().addr())
    }

    /// Turns direct I/O on or off. Never tries again if the file system lacks it.
    fn set_direct(&mut self, direct: bool) -> io::Result<()> {
        if self.direct == direct {
            return Ok(());
        }
        let flags = fcntl_getfl(&self.file)?;
        let flags = if direct { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT };
        match fcntl_setfl(&self.file, flags) {
            Ok(()) => self.direct = direct,
            Err(Errno::INVAL) if direct => self.direct_from = u64::MAX,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Write for LongFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.set_direct(self.suits(bytes))?;
        let written = match self.file.write(bytes) {
            // The disk needs a larger alignment, or the file system does not support direct I/O
            // after all.
            Err(error)
                if self.direct && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) =>
            {
                self.direct_from = u64::MAX;
                self.set_direct(false)?;
                self.file.write(bytes)?
            }
            written => written?,
        };
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use csd_reactor::Buffer;

    use super::*;

    #[test]
    fn bytes_are_the_same_whichever_way_they_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        // Aligned until the last but one: what comes after that is at no multiple of 4096.
        let lengths = [8192, 65536, 4096, 4096, 5000, 8192];
        for direct_from in [0, 8192, u64::MAX] {
            let file = File::create(&path).unwrap();
            let mut long = LongFile { direct_from, ..LongFile::new(file) };
            let mut expected = Vec::new();
            for (fill, length) in (1u8..).zip(lengths) {
                let mut bytes = Buffer::zeroed(length);
                bytes.fill(fill);
                long.write_all(&bytes).unwrap();
                expected.extend_from_slice(&bytes);
            }
            assert!(!long.direct, "the last write was not at a multiple of 4096");
            assert!(std::fs::read(&path).unwrap() == expected, "{direct_from}");
        }
    }

    #[test]
    fn what_is_short_or_not_aligned_goes_through_the_page_cache() {
        let file = tempfile::tempfile().unwrap();
        let bytes = Buffer::zeroed(8192);
        let mut long = LongFile::new(file);
        assert!(!long.suits(&bytes), "the beginning");
        long.position = DIRECT_FROM;
        assert!(long.suits(&bytes) && long.suits(&bytes[..4096]));
        assert!(!long.suits(&bytes[..5000]) && !long.suits(&bytes[512..4608]));
        long.position += 128;
        assert!(!long.suits(&bytes), "behind a header");
    }
}
