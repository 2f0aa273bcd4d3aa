//! [`AtomicFile`]: a file that appears under its name only when it is complete.
//!
//! Until then its bytes are in a temporary file next to it, with an unpredictable name, opened with
//! `O_EXCL`, which follows no link. So in a folder that others can write to, a planted link has no
//! effect, and two writers of one name do not share a file. Does not sync. Invariant: dropping an
//! unfinished file removes it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An unfinished file.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    finished: bool,
}

impl AtomicFile {
    /// Creates an empty temporary file for `path`. Runs a reactor of its own for a moment, so it
    /// cannot be called on a core.
    ///
    /// # Errors
    /// The operating system's error if the folder refuses the file.
    pub fn create(path: &Path) -> io::Result<(Self, File)> {
        Self::create_as(path, 0o666)
    }

    /// Creates a file that its owner alone can read, likewise.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_private(path: &Path) -> io::Result<(Self, File)> {
        Self::create_as(path, 0o600)
    }

    fn create_as(path: &Path, mode: u32) -> io::Result<(Self, File)> {
        let number = csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            csd_reactor::random_u64()
        });
        let number = number.map_err(io::Error::other)?;
        Self::create_with(path, number, mode)
    }

    /// Creates a file, likewise, for a caller on a core or on a compute thread; `number` is a
    /// random one.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_numbered(path: &Path, number: u64) -> io::Result<(Self, File)> {
        Self::create_with(path, number, 0o666)
    }

    fn create_with(path: &Path, number: u64, mode: u32) -> io::Result<(Self, File)> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{number:016x}.part"));
        let temporary = PathBuf::from(temporary);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        Ok((Self { path: path.to_owned(), temporary, finished: false }, file))
    }

    /// Renames the file to its name; replaces an existing file.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn finish(mut self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.path)?;
        self.finished = true;
        Ok(())
    }

    /// Renames the file to its name, which must be unused.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], or another error of the operating system.
    pub fn finish_new(self) -> io::Result<()> {
        match std::fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => Ok(()), // the temporary name goes with `self`
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // File systems without hard links cannot exclude a concurrent writer.
            Err(_) if self.path.symlink_metadata().is_ok() => {
                Err(io::ErrorKind::AlreadyExists.into())
            }
            Err(_) => self.finish(),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.finished {
            let _gone = std::fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_its_owner_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (late, _file) = AtomicFile::create(&path).unwrap();
        let (first, mut file) = AtomicFile::create(&path).unwrap();
        file.write_all(b"first").unwrap();
        first.finish_new().unwrap();
        assert_eq!(late.finish_new().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_private_file_is_its_owner_s_from_the_start() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (whole, file) = AtomicFile::create_private(&path).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        whole.finish().unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn it_appears_when_it_is_whole_and_two_of_one_name_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (one, mut first) = AtomicFile::create(&path).unwrap();
        let (two, mut second) = AtomicFile::create(&path).unwrap();
        first.write_all(b"one").unwrap();
        second.write_all(b"two").unwrap();
        assert!(!path.exists());
        one.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        drop(two);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
