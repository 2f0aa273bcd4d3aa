//! Space for a new medium on its file system, so that a lack of space shows when the medium is made
//! and not during a write.
//!
//! File systems without `fallocate` (some network file systems, many of FUSE) get the whole medium
//! written out with zeros.

use std::io;

use csd_reactor::{Buffer, File};

use super::PAGE_BYTES;

/// Length of one write of zeros.
const PIECE_BYTES: u64 = 4 << 20;

/// Called before each write of zeros, with the bytes written so far; never where the file system
/// reserves space by itself.
pub type OnZeros<'a> = &'a dyn Fn(u64);

/// Reserves the space of a new file of `bytes` bytes.
///
/// # Errors
/// When there is not enough space, or the file system fails.
pub(super) async fn reserve(file: &File, bytes: u64, on_zeros: OnZeros<'_>) -> io::Result<()> {
    match file.allocate(0, bytes).await {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            write_zeros(file, bytes, on_zeros).await
        }
        other => other,
    }
}

/// Writes a file of zeros, and makes it durable.
async fn write_zeros(file: &File, bytes: u64, on_zeros: OnZeros<'_>) -> io::Result<()> {
    let mut written = 0;
    while written < bytes {
        on_zeros(written);
        // Whole pages, for direct I/O; what is too much is cut off below.
        let length = PIECE_BYTES.min((bytes - written).next_multiple_of(PAGE_BYTES));
        let zeros = Buffer::zeroed(usize::try_from(length).expect("a few MiB"));
        file.write_vectored_at(written, vec![zeros]).await.0?;
        written += length;
    }
    file.set_len(bytes).await?;
    file.sync_data().await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use csd_reactor::{Config, FileOptions, block_on};

    use super::*;

    #[test]
    fn where_space_cannot_be_reserved_zeros_take_it() {
        let body = || async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("m");
            let options =
                FileOptions { read: true, write: true, create: true, ..FileOptions::default() };
            let file = File::open(&path, &options).await.unwrap();
            let seen = RefCell::new(Vec::new());
            let bytes = 2 * PIECE_BYTES + 100;
            write_zeros(&file, bytes, &|written| seen.borrow_mut().push(written)).await.unwrap();
            assert_eq!(seen.into_inner(), [0, PIECE_BYTES, 2 * PIECE_BYTES]);
            let content = std::fs::read(&path).unwrap();
            assert!(content.len() as u64 == bytes && content.iter().all(|byte| *byte == 0));
        };
        block_on(&Config::default(), body).expect("a core");
    }
}
