//! Files that an operating system that runs has mounted: they change in their place.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::Error;

/// Writes a file. If that fails, such as on a full disk, what was there before is there again.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let before = fs::read(path).ok();
    if before.as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    overwrite(path, text.as_bytes()).map_err(|error| {
        let _restored = match &before {
            Some(before) => overwrite(path, before),
            None => fs::remove_file(path),
        };
        Error::os(path.display(), error)
    })
}

/// Replaces the content, first the bytes that have their room.
fn overwrite(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    #[test]
    fn a_file_that_cannot_grow_keeps_its_content_in_place() {
        let full = memfd_create("hosts", MemfdFlags::ALLOW_SEALING).unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", full.as_raw_fd()));
        write(&path, "before\n").unwrap();
        fcntl_add_seals(&full, SealFlags::GROW).unwrap();
        assert!(write(&path, "before and after\n").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"before\n");
        write(&path, "short\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short\n");
    }
}
