//! [`File`] as a handle, and [`FileOptions`].

use std::sync::Arc;

/// Options for opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Open for reading.
    pub read: bool,
    /// Open for writing.
    pub write: bool,
    /// Create the file if it does not exist; needs `write`.
    pub create: bool,
    /// Create the file, or fail if it exists; needs `write`.
    pub create_new: bool,
    /// Truncate the file to length 0; needs `write`.
    pub truncate: bool,
    /// Bypass the page cache (`O_DIRECT`): offsets, lengths and addresses must be multiples of the
    /// device's block. Some file systems refuse it.
    pub direct: bool,
    /// Open exclusively. Refuses a block device that is mounted or that another process opened
    /// exclusively (`O_EXCL`), and a file that another process opened with this flag; with `read`
    /// alone, only a file that another process opened for writing with it. The error is
    /// `ResourceBusy`.
    pub exclusive: bool,
}

/// An open file or block device, usable from any core. It closes when its last copy is
/// dropped and its last operation has ended.
#[derive(Clone, Debug)]
pub struct File(pub(super) Arc<Opened>);

#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: std::fs::File,
    pub(super) direct: bool,
    pub(super) is_block_device: bool,
    pub(super) alignment: Option<DirectAlignment>,
}

/// Alignment that direct transfers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of buffer addresses, bytes.
    pub memory_bytes: u32,
    /// Alignment of offsets and lengths, bytes.
    pub offset_bytes: u32,
}
