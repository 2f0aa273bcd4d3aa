//! Opens files, and determines their kind and their alignment for direct I/O.
//!
//! Opening may block, so it runs on a helper thread. An opener of a block device never creates a
//! file in its place.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::handle::{DirectAlignment, File, FileOptions, Opened};
use crate::backend::os;

/// Alignment assumed where the kernel reports none: large enough for every disk.
const CAUTIOUS: DirectAlignment = DirectAlignment { memory_bytes: 4096, offset_bytes: 4096 };

pub(super) fn open(path: &Path, options: &FileOptions) -> io::Result<File> {
    let is_device = |meta: std::fs::Metadata| meta.file_type().is_block_device();
    let is_block_device = std::fs::metadata(path).is_ok_and(is_device);
    let mut flags = if options.direct { libc::O_DIRECT } else { 0 };
    if options.exclusive && is_block_device {
        // Without O_CREAT this is the device's own lock, which mounting takes too.
        flags |= libc::O_EXCL;
    }
    let file = OpenOptions::new()
        .read(options.read)
        .write(options.write)
        .create(options.create && !is_block_device)
        .create_new(options.create_new)
        .truncate(options.truncate)
        .custom_flags(flags)
        // What a drive holds is for its user alone.
        .mode(0o600)
        .open(path)?;
    if options.exclusive && !is_block_device {
        lock(&file, options.write)?;
    }
    let alignment = alignment(&file);
    Ok(File(Arc::new(Opened { file, direct: options.direct, is_block_device, alignment })))
}

/// Takes the file's advisory lock, which lasts as long as the descriptor.
fn lock(file: &std::fs::File, write: bool) -> io::Result<()> {
    let locked = if write { file.try_lock() } else { file.try_lock_shared() };
    match locked {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "in use by another process"))
        }
        // Some network file systems have no locks; that is no reason not to serve.
        Err(std::fs::TryLockError::Error(error)) => match error.raw_os_error() {
            Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
            _ => Err(error),
        },
    }
}

fn alignment(file: &std::fs::File) -> Option<DirectAlignment> {
    match os::direct_alignment(file.as_raw_fd()) {
        Ok(Some((0, _) | (_, 0))) => None,
        Ok(Some((memory_bytes, offset_bytes))) => {
            Some(DirectAlignment { memory_bytes, offset_bytes })
        }
        // An old kernel, or a file system that does not say: opening will tell. One in memory
        // has nothing to bypass, though new kernels open it as if it had.
        _ if os::is_in_memory(file.as_raw_fd()) => None,
        _ => Some(CAUTIOUS),
    }
}
