//! [`Writers`]: the lock that writers of names share, and that adding drives takes exclusively.
//!
//! It is on the folder of the array file, which exists even where no file can be created. The
//! kernel releases it when its process ends; it does not reach other machines. Invariant: nothing
//! is written to the folder.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct Writers {
    _held: Option<File>,
}

impl Writers {
    /// Takes the shared lock, for a writer of names; `None` while drives are being added.
    ///
    /// # Errors
    /// None at present: a folder that cannot be opened, or has no locks, is not locked. Loading
    /// the array file reports the first, and adding drives is refused on the second.
    pub fn try_share(array: &Path) -> io::Result<Option<Self>> {
        let Ok(file) = File::open(folder(array)) else { return Ok(Some(Self { _held: None })) };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self { _held: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(_)) => Ok(Some(Self { _held: None })),
        }
    }

    /// Takes the exclusive lock, for adding drives; `None` while names are being written.
    ///
    /// # Errors
    /// If the file system has no locks, or the folder cannot be opened.
    pub fn try_exclude(array: &Path) -> io::Result<Option<Self>> {
        let file = File::open(folder(array))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _held: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn folder(array: &Path) -> PathBuf {
    let folder = array.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_share_the_lock_and_adding_drives_excludes_them() {
        let folder = tempfile::tempdir().unwrap();
        let array = folder.path().join("array.toml");
        let first = Writers::try_share(&array).unwrap().expect("free");
        let second = Writers::try_share(&array).unwrap().expect("shared");
        assert!(Writers::try_exclude(&array).unwrap().is_none());
        drop((first, second));
        let only = Writers::try_exclude(&array).unwrap().expect("free again");
        assert!(Writers::try_share(&array).unwrap().is_none());
        drop(only);
        assert!(Writers::try_share(&array).unwrap().is_some());
    }
}
