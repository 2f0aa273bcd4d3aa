//! [`File`] as a handle, and [`FileOptions`]: how one is opened.

use std::sync::Arc;

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
pub struct File(pub(super) Arc<Opened>);

#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: std::fs::File,
    pub(super) direct: bool,
    pub(super) is_block_device: bool,
    pub(super) alignment: Option<DirectAlignment>,
}

/// What direct transfers must be multiples of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Addresses of buffers, bytes.
    pub memory_bytes: u32,
    /// Offsets and lengths, bytes.
    pub offset_bytes: u32,
}
