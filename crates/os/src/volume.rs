//! The file system of an operating system in the drive's block namespace.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::filesystem::{Fs, LABEL};
use crate::os_folder::OsFolder;
use crate::{Error, mounts, ocfs2, tools};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// Place of what tells a file system.
struct Superblock {
    fs: Fs,
    at: u64,
    /// Bytes of its signature, and their offset in it.
    signature: (usize, &'static [u8]),
    label: Range<usize>,
}

/// Fields s_magic and s_volume_name (Linux documentation, "ext4 Data Structures", "Super Block").
const EXT4: Superblock =
    Superblock { fs: Fs::Ext4, at: 1024, signature: (56, &[0x53, 0xEF]), label: 120..136 };
/// Third block of 4,096 bytes: i_signature of `struct ocfs2_dinode`, and s_label of `struct
/// ocfs2_super_block`, which begins at 0xC0 (Linux, fs/ocfs2/ocfs2_fs.h).
const OCFS2: Superblock =
    Superblock { fs: Fs::Ocfs2, at: 8192, signature: (0, b"OCFSV2"), label: 0x110..0x150 };

impl Superblock {
    /// Returns true if this is one that this program has made.
    fn is_own(&self, block: &[u8]) -> bool {
        let (at, signature) = self.signature;
        let label = &block[self.label.clone()];
        let length = label.iter().position(|byte| *byte == 0).unwrap_or(label.len());
        block[at..].starts_with(signature) && &label[..length] == LABEL.as_bytes()
    }
}

/// Contents of a block namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file system of this program.
    Own(Fs),
    /// Zeros alone.
    Empty,
    /// Something else, from this byte on.
    Other(u64),
}

/// Reads a namespace up to the first byte that decides.
///
/// # Errors
/// If it cannot be read.
pub fn look(blocks: &Path) -> Result<Found, Error> {
    let cannot = |error: io::Error| Error::os(blocks.display(), error);
    let file = File::open(blocks).map_err(cannot)?;
    let bytes = file.metadata().map_err(cannot)?.len();
    for superblock in [EXT4, OCFS2] {
        let mut block = [0; 1024];
        if bytes >= superblock.at + 1024 {
            file.read_exact_at(&mut block, superblock.at).map_err(cannot)?;
        }
        if superblock.is_own(&block) {
            return Ok(Found::Own(superblock.fs));
        }
    }
    let (mut at, mut piece) = (0, vec![0; PIECE_BYTES]);
    while at < bytes {
        let read = file.read_at(&mut piece, at).map_err(cannot)?;
        if read == 0 {
            let early = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(cannot(early));
        }
        if let Some(first) = piece[..read].iter().position(|byte| *byte != 0) {
            return Ok(Found::Other(at + first as u64));
        }
        at += read as u64;
    }
    Ok(Found::Empty)
}

/// Makes the file system. The namespace must be empty.
///
/// # Errors
/// If the namespace is too small, or the drive fails.
pub fn make(os_folder: &OsFolder, fs: Fs) -> Result<(), Error> {
    let blocks = os_folder.blocks();
    if fs == Fs::Ocfs2 {
        let device = mounts::device_of(&blocks)?;
        let made = ocfs2::make(&device);
        tools::run("losetup", &["--detach", &device])?;
        return made;
    }
    // The namespace reads as zeros, so nothing has to be discarded or zeroed.
    let options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    let path = blocks.to_string_lossy();
    let base = ["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", LABEL];
    tools::run("mke2fs", &[&base[..], &["-E", options, &path]].concat()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of 3 MiB of zeros.
    fn zeros() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(3 << 20).unwrap();
        file
    }

    #[test]
    fn only_zeros_alone_are_empty() {
        let file = zeros();
        assert_eq!(look(file.path()).unwrap(), Found::Empty);
        for at in [0, 1024 + 56, (1 << 20) - 1, (3 << 20) - 1] {
            let file = zeros();
            file.as_file().write_all_at(&[1], at).unwrap();
            assert_eq!(look(file.path()).unwrap(), Found::Other(at));
        }
        let tiny = tempfile::NamedTempFile::new().unwrap();
        tiny.as_file().set_len(4).unwrap();
        assert_eq!(look(tiny.path()).unwrap(), Found::Empty);
        assert!(look(Path::new("/none/such")).is_err());
    }

    #[test]
    fn a_file_system_is_known_by_its_label() {
        for (label, found) in [
            ("csd-os", Found::Own(Fs::Ext4)),
            ("csd-os2", Found::Other(1080)),
            ("csd", Found::Other(1080)),
            ("", Found::Other(1080)),
        ] {
            let file = zeros();
            file.as_file().write_all_at(&[0x53, 0xEF], 1080).unwrap();
            file.as_file().write_all_at(label.as_bytes(), 1024 + 120).unwrap();
            assert_eq!(look(file.path()).unwrap(), found, "{label:?}");
            let file = zeros();
            file.as_file().write_all_at(b"OCFSV2", 8192).unwrap();
            file.as_file().write_all_at(label.as_bytes(), 8192 + 0x110).unwrap();
            let shared = if label == LABEL { Found::Own(Fs::Ocfs2) } else { Found::Other(8192) };
            assert_eq!(look(file.path()).unwrap(), shared, "{label:?}");
        }
    }
}
