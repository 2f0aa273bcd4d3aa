//! [`Target`]: the destination of a command's output: standard output, a file, a device or a FIFO.
//!
//! A new file appears once it is complete. An existing file is replaced only with `--force`, by a
//! rename. A symbolic link is followed with `--force`, and stays. Character devices, FIFOs and open
//! files of this process (`/dev/stdout`, `/dev/fd/5`) are written directly; block devices too, but
//! only with `--force`, because they keep data. Invariant: only regular files are replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use csd_store::atomic_file::AtomicFile;
use csd_store::object::Sink;

use crate::long_file::LongFile;
use crate::report::Failure;

/// Bytes of room that a file of results has to find, more than profiles have.
const ROOM_BYTES: usize = 64 << 10;

/// An open destination, and the action once all bytes are written.
pub(crate) struct Target {
    file: String,
    end: End,
}

enum End {
    /// Standard output.
    Stdout,
    /// Written directly: nothing to do.
    Through,
    /// A file that did not exist.
    New(AtomicFile),
    /// A file to replace.
    Replace(AtomicFile),
}

impl Target {
    /// Opens `file`; `-` is standard output.
    ///
    /// # Errors
    /// Run: it exists and `force` is not given, or it cannot be written. Usage: it is a folder, or
    /// a path that leads nowhere.
    pub(crate) fn open(file: &str, force: bool) -> Result<(Self, Sink), Failure> {
        match file {
            "-" => Ok((Self { file: file.to_owned(), end: End::Stdout }, Box::new(io::stdout()))),
            file => Self::at(Path::new(file), force, None),
        }
    }

    /// Opens a file, for a caller on the reactor's threads; `number` is a random one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_numbered(
        path: &Path,
        force: bool,
        number: u64,
    ) -> Result<(Self, Sink), Failure> {
        Self::at(path, force, Some(number))
    }

    fn at(path: &Path, force: bool, number: Option<u64>) -> Result<(Self, Sink), Failure> {
        let file = path.display().to_string();
        let (end, sink): (End, Sink) = if let Some(open) = open_file(path) {
            through_descriptor(&file, &open)?
        } else {
            match fs::symlink_metadata(path) {
                Ok(metadata) => existing((&file, path), metadata.is_symlink(), force, number)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let (whole, sink) = create(&file, path, number)?;
                    (End::New(whole), Box::new(LongFile::new(sink)))
                }
                Err(error) => return Err(cannot_write(&file, &error)),
            }
        };
        Ok((Self { file, end }, sink))
    }

    /// Returns true if bytes go to standard output; a report must not go there then.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.end, End::Stdout)
    }

    /// Returns true if the bytes of such a target become a file of their own, which is left out
    /// when they end early.
    pub(crate) fn will_be_new(file: &str) -> bool {
        let path = Path::new(file);
        let may_be = file != "-" && open_file(path).is_none();
        may_be && fs::metadata(path).map_or(true, |metadata| metadata.is_file())
    }

    /// Gives the file its name. A target that is dropped without this leaves no file.
    ///
    /// # Errors
    /// Run: the file cannot get its name, for example because one appeared in the meantime.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { file, end } = self;
        let done = match end {
            End::Through => return Ok(()),
            End::Stdout => match io::stdout().flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                flushed => flushed,
            },
            End::New(whole) => whole.finish_new(),
            End::Replace(whole) => whole.finish(),
        };
        done.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&file),
            _ => cannot_write(&file, &error),
        })
    }
}

/// Writes a file of a command's results in one step. A file of before stays until then.
///
/// # Errors
/// Run: it cannot be written. Usage: it is a folder.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let (target, mut sink) = Target::at(path, true, None)?;
    let written = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
    written.map_err(|error| cannot_write(&target.file, &error))?;
    drop(sink);
    target.finish()
}

/// Checks the place of a file of results, and that there is room, before a measurement of minutes.
///
/// # Errors
/// Usage: there is no such folder, or it is one. Run: nothing can be written.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("there is no folder {}", folder.display())));
    }
    // Devices and FIFOs keep what is written, and may wait for a reader.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let (target, mut sink) = Target::at(path, true, None)?;
    // So do open files of this process.
    if let End::New(_) | End::Replace(_) = target.end {
        let written = sink.write_all(&[b' '; ROOM_BYTES]).and_then(|()| sink.flush());
        written.map_err(|error| cannot_write(&target.file, &error))?;
    }
    Ok(())
}

/// Returns the failure of a file that takes no bytes.
pub(crate) fn cannot_write(file: &str, error: &io::Error) -> Failure {
    Failure::os(format!("cannot write {file}"), error)
}

fn exists(file: &str) -> Failure {
    Failure::run(format!("{file} exists: name another file, or use --force to overwrite it"))
}

/// Opens an existing destination.
fn existing(
    (file, path): (&str, &Path),
    is_link: bool,
    force: bool,
    number: Option<u64>,
) -> Result<(End, Sink), Failure> {
    let failed = |error: io::Error| cannot_write(file, &error);
    let metadata = match fs::metadata(path) {
        Err(error) if is_link && error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::run(format!("{file} is a link to nothing: remove it first")));
        }
        metadata => metadata.map_err(failed)?,
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Failure::usage(format!("{file} is a folder")));
    }
    if kind.is_socket() {
        return Err(Failure::run(format!("{file} is a socket: it cannot be written as a file")));
    }
    if !force && (kind.is_file() || kind.is_block_device()) {
        return Err(exists(file));
    }
    if kind.is_file() {
        let real = fs::canonicalize(path).map_err(failed)?;
        let (whole, sink) = create(file, &real, number)?;
        sink.set_permissions(metadata.permissions()).map_err(failed)?;
        return Ok((End::Replace(whole), Box::new(LongFile::new(sink))));
    }
    let device = OpenOptions::new().write(true).open(path).map_err(failed)?;
    Ok((End::Through, Box::new(device)))
}

fn create(file: &str, path: &Path, number: Option<u64>) -> Result<(AtomicFile, File), Failure> {
    let created = match number {
        Some(number) => AtomicFile::create_numbered(path, number),
        None => AtomicFile::create(path),
    };
    created.map_err(|error| cannot_write(file, &error))
}

/// Returns the open file of this process that `path` names, directly or by one link.
fn open_file(path: &Path) -> Option<PathBuf> {
    let names = [Some(path.to_owned()), fs::read_link(path).ok()];
    let is_open = |name: &PathBuf| {
        matches!(name.parent().and_then(Path::to_str), Some("/proc/self/fd" | "/dev/fd"))
    };
    names.into_iter().flatten().find(is_open)
}

fn through_descriptor(file: &str, open: &Path) -> Result<(End, Sink), Failure> {
    if open.file_name().is_some_and(|number| number == "1") {
        return Ok((End::Stdout, Box::new(io::stdout())));
    }
    // This opens a regular file again, with a new position, so output is appended.
    let opened = OpenOptions::new().append(true).open(open);
    match opened {
        Ok(opened) => Ok((End::Through, Box::new(opened))),
        Err(error) => Err(cannot_write(file, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        for finished in [false, true] {
            let (target, mut sink) = Target::open(file.to_str().unwrap(), false).unwrap();
            sink.write_all(b"bytes").unwrap();
            drop(sink);
            assert!(!file.exists() && !target.is_stdout());
            if finished {
                target.finish().unwrap();
            } else {
                drop(target);
            }
            assert_eq!(file.exists(), finished);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(finished));
        }
    }

    #[test]
    fn results_replace_a_file_whole_and_go_through_links_and_to_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("x"), folder.path().join("link"));
        replace(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        check(&link).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"one");
        replace(&link, "two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(link.is_symlink());
        let failed = replace(Path::new("/dev/full"), "x").unwrap_err().message;
        assert!(failed.starts_with("cannot write /dev/full: No space left"), "{failed}");
        assert!(check(folder.path()).is_err() && check(&folder.path().join("none/x")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Target::open(file.to_str().unwrap(), false).is_err());
        let (target, mut sink) = Target::open(file.to_str().unwrap(), true).unwrap();
        sink.write_all(b"new").unwrap();
        target.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn open_files_of_this_process_are_known_by_name() {
        for (name, number) in [("/dev/stdout", Some("1")), ("/dev/fd/7", Some("7")), ("x", None)] {
            let open = open_file(Path::new(name));
            let found = open.as_deref().and_then(Path::file_name).map(|name| name.to_owned());
            assert_eq!(found.as_deref(), number.map(std::ffi::OsStr::new), "{name}");
        }
    }
}
