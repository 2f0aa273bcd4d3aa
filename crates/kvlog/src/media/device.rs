//! [`require_device`]: refuses a medium in `/dev` that is no block device.
//!
//! A file created in `/dev` lies in the machine's memory and is lost at the next boot, so a
//! mistyped name of a device must not create one. `/dev/shm` is for files, and is left out.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Most links that are followed, as many as the kernel does.
const LINKS_MAX: usize = 40;

/// Checks a medium's path, through any links. The opening refuses a path that leads nowhere.
///
/// # Errors
/// [`Error::Usage`] when it leads into `/dev` and no block device is there.
pub fn require_device(path: &Path) -> Result<(), Error> {
    let Ok(target) = target(path) else { return Ok(()) };
    if !target.starts_with("/dev") || target.starts_with("/dev/shm") {
        return Ok(());
    }
    let target = target.display();
    match path.metadata() {
        Ok(there) if there.file_type().is_block_device() => Ok(()),
        Ok(_) => Err(Error::Usage(format!("{target} is not a block device"))),
        Err(_) => Err(Error::Usage(format!("there is no such device: {target}"))),
    }
}

/// Returns the path that opening `path` would open or create.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
            _ => Path::new(".").canonicalize()?,
        };
        let Some(name) = path.file_name() else { return path.canonicalize() };
        let plain = folder.join(name);
        match plain.read_link() {
            Ok(link) => path = folder.join(link),
            Err(_) => return Ok(plain),
        }
    }
    Err(io::Error::other("too many links"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn in_dev_only_what_is_a_device_is_a_medium() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &str| {
            let path = folder.path().join(name);
            symlink(to, &path).unwrap();
            path
        };
        let missing = "/dev/csdstore-no-such-device";
        for (path, why) in [
            (PathBuf::from(missing), "there is no such device: /dev/csdstore-no-such-device"),
            (link("a", missing), "there is no such device"),
            (link("b", "a"), "there is no such device"),
            (link("c", "/dev").join("csdstore-no-such-device"), "there is no such device"),
            (PathBuf::from("/dev/../dev/csdstore-no-such-device"), "there is no such device"),
            (PathBuf::from("/dev/null"), "/dev/null is not a block device"),
        ] {
            let error = require_device(&path).expect_err("it is refused").to_string();
            assert!(error.contains(why), "{}: {error}", path.display());
        }
        let new = folder.path().join("new");
        for fine in [&new, &link("d", "new"), Path::new("/dev/shm/new"), &link("e", "e")] {
            require_device(fine).unwrap();
        }
    }
}
