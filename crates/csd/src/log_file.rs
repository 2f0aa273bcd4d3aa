//! A drive's log in files of bounded size and number: `csd drive serve --log-file`.
//!
//! Writes lines without formatting them. Standard error is redirected to the newest file, so that
//! messages of a failing process are in it too. Invariants: the log never makes a file longer than
//! the limit; there are at most as many files as the option says; a file that replaces a full one
//! is created exclusively, so that no link is followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use csd_reactor::redirect_stderr;

use crate::output::print_error;

/// Default number of files of a log.
pub(crate) const FILES: u32 = 4;
/// Bytes whose room is tried; the rest of a file's last block may be free on a full disk.
const BLOCK_BYTES: usize = 4096;
/// Largest number of files of a log.
pub(crate) const FILES_MAX: u32 = 100;

/// The newest file of a log.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    bytes_max: u64,
    files: u32,
    /// Called with each new file; redirects standard error.
    follow: fn(&File) -> io::Result<()>,
}

impl LogFile {
    /// Opens a log and redirects standard error to it. Existing contents are kept and count towards
    /// the limit. Warns if there is no room for lines now: they are lost until there is.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a regular file.
    pub(crate) fn open(path: &Path, bytes_max: u64, files: u32) -> io::Result<Self> {
        let log = Self::open_and(path, bytes_max, files, |_| Ok(()))?;
        if let Err(error) = log.try_room() {
            let path = path.display();
            let why = format!("warning: log {path}: {error}; lines are lost until there is room");
            print_error(&why);
        }
        redirect_stderr(&log.file)?;
        Ok(Self { follow: redirect_stderr, ..log })
    }

    /// Writes a block, and takes it back.
    fn try_room(&self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let written = (&self.file).write_all(&[b'\n'; BLOCK_BYTES]);
        self.file.set_len(length)?;
        written
    }

    /// Opens a log, and calls `follow` with each of its files.
    pub(crate) fn open_and(
        path: &Path,
        bytes_max: u64,
        files: u32,
        follow: fn(&File) -> io::Result<()>,
    ) -> io::Result<Self> {
        // Checked before opening, because opening a FIFO waits for its reader.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        follow(&file)?;
        Ok(Self { path: path.to_owned(), file, bytes_max, files, follow })
    }

    fn rotate(&mut self) -> io::Result<()> {
        match fresh(&self.path, self.files) {
            Ok(file) => {
                self.file = file;
                (self.follow)(&self.file)
            }
            // The limit holds even so; older lines are lost.
            Err(_) => self.file.set_len(0),
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Read each time, since others write to standard error.
        let length = self.file.metadata()?.len();
        let room = usize::try_from(self.bytes_max.saturating_sub(length)).unwrap_or(usize::MAX);
        let part = match bytes.get(..room) {
            None => bytes,
            Some(fits) => match fits.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => &fits[..=end],
                None if length > 0 => {
                    self.rotate()?;
                    return self.write(bytes);
                }
                // A line longer than a file is cut.
                None => fits,
            },
        };
        self.file.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the path of an older file of the log; 1 is the newest of them.
pub(crate) fn older(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Rotates a log of `files` files and returns the new, empty file: each older file gets the next
/// number, and the oldest is deleted.
///
/// # Errors
/// If a file cannot be renamed or created.
pub(crate) fn fresh(path: &Path, files: u32) -> io::Result<File> {
    for number in (0..files).rev() {
        let from = if number == 0 { path.to_owned() } else { older(path, number) };
        let done = match number + 1 == files {
            true => fs::remove_file(&from),
            false => fs::rename(&from, older(path, number + 1)),
        };
        if let Err(error) = done
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    OpenOptions::new().append(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4096;

    fn open(path: &Path, files: u32) -> LogFile {
        LogFile::open_and(path, SIZE, files, |_| Ok(())).unwrap()
    }

    /// Returns the contents of the log's files, oldest first.
    fn read(path: &Path) -> Vec<String> {
        let older = (1..=FILES_MAX).rev().map(|number| older(path, number));
        older.chain([path.to_owned()]).filter_map(|path| fs::read_to_string(path).ok()).collect()
    }

    #[test]
    fn files_have_bounds_and_hold_the_last_lines_whole() {
        for files in [1, 3] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("d.log");
            // An existing file, longer than the limit.
            fs::write(&path, "old\n".repeat(2000)).unwrap();
            let mut log = open(&path, files);
            let lines: Vec<String> = (0..3000).map(|i| format!("line {i:05}\n")).collect();
            // In batches of every length, as the line writer writes them, also longer than a file.
            let mut rest = lines.as_slice();
            for batch in (1..).step_by(97) {
                let (now, later) = rest.split_at(batch.min(rest.len()));
                log.write_all(now.concat().as_bytes()).unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let left = read(&path);
            assert_eq!(left.len(), files as usize);
            assert!(left.iter().all(|text| text.len() as u64 <= SIZE), "a file is too long");
            assert!(left.iter().rev().skip(1).all(|text| text.len() as u64 > SIZE - 11));
            assert!(lines.concat().ends_with(&left.concat()), "lines are lost or cut");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), files as usize);
        }
    }

    #[test]
    fn a_line_longer_than_a_file_is_cut_and_what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.log");
        let mut log = open(&path, 2);
        log.write_all(&[b'x'; 10_000]).unwrap();
        assert!(read(&path).iter().all(|text| text.len() as u64 <= SIZE));
        assert!(LogFile::open_and(folder.path(), SIZE, 2, |_| Ok(())).is_err());
        assert!(LogFile::open_and(Path::new("/dev/null"), SIZE, 2, |_| Ok(())).is_err());
    }

    #[test]
    fn where_no_file_can_be_renamed_the_bound_holds_even_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.log");
        fs::create_dir(older(&path, 1)).unwrap();
        fs::write(older(&path, 1).join("kept"), "").unwrap();
        let mut log = open(&path, 2);
        for number in 0..3000 {
            log.write_all(format!("line {number:05}\n").as_bytes()).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() as u64 <= SIZE && text.ends_with("line 02999\n"), "{}", text.len());
    }
}
