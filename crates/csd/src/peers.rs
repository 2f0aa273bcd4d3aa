//! The file of peers of a drive.
//!
//! Invariant: a file with secrets that others than its owner may access is refused, because others
//! may have read it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use csd_drive::peers::{Directory, PeerList};

use crate::report::Failure;

/// Permission bits of group and others.
const NOT_OWNER: u32 = 0o077;
/// Longest file of peers that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// State of the file at one time: a file that was replaced or changed has another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    mode: u32,
    seconds: i64,
    nanoseconds: i64,
}

/// Returns the directory of the file at `path`, which is read again when it has changed.
///
/// # Errors
/// If the file cannot be read now, or has a mistake.
pub(crate) fn directory(path: &Path) -> Result<Directory, Failure> {
    let first = read(path, Stamp::default()).map_err(Failure::usage)?;
    let (path, known) = (PathBuf::from(path), Mutex::new(first.unwrap_or_default()));
    Ok(Directory::new(move || {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read(&path, known.0)? {
            *known = read;
        }
        Ok(Arc::clone(&known.1))
    }))
}

/// Reads the file, unless it is as it was.
fn read(path: &Path, before: Stamp) -> Result<Option<(Stamp, Arc<PeerList>)>, String> {
    let named = |why: &dyn std::fmt::Display| format!("file of peers {}: {why}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    // Those of the open file, not of its path.
    let about = file.metadata().map_err(|error| named(&error))?;
    let stamp = Stamp {
        inode: about.ino(),
        bytes: about.size(),
        mode: about.mode(),
        seconds: about.mtime(),
        nanoseconds: about.mtime_nsec(),
    };
    if stamp == before {
        return Ok(None);
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| named(&error))?;
    let list = PeerList::parse(&text).map_err(|why| named(&why))?;
    let mode = stamp.mode & 0o777;
    if list.has_secrets() && mode & NOT_OWNER != 0 {
        let why = format!("it has secrets, and others may use it (mode {mode:o}); say chmod 600");
        return Err(named(&why));
    }
    Ok(Some((stamp, Arc::new(list))))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use csd_nvme::auth::{Hash, Secret};

    use super::*;

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_others_may_read_has_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers");
        assert!(directory(&path).unwrap_err().message.contains("file of peers"));
        let line = |name: &str| format!("peer nvme+tcp://127.0.0.1/nqn.2026-11.x:{name}");
        let write = |text: &str, mode: u32| {
            // As a command replaces it: under another name first.
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            set_permissions(&new, Permissions::from_mode(mode)).unwrap();
            std::fs::rename(&new, &path).unwrap();
        };
        write(&line("a"), 0o644);
        let directory = directory(&path).unwrap();
        let names = |name: &str| {
            directory.read().map(|list| list.get(&format!("nqn.2026-11.x:{name}")).is_some())
        };
        assert_eq!((names("a"), names("b")), (Ok(true), Ok(false)));
        let secret = Secret::new(Some(Hash::Sha256), &[1; 32]).unwrap();
        let with_secret = format!("{} {}", line("b"), *secret.to_text());
        write(&with_secret, 0o640);
        assert!(names("b").unwrap_err().contains("mode 640"));
        write(&with_secret, 0o600);
        assert_eq!((names("a"), names("b")), (Ok(false), Ok(true)));
        write("peer here", 0o600);
        assert!(names("b").unwrap_err().contains("line 1"));
    }
}
