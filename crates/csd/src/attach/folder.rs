//! [`Folder`]: a folder on which a volume's file is mounted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fuser::{BackgroundSession, MountOption};
use rustix::mount::{UnmountFlags, unmount};

use super::NAME;
use super::file::OneFile;
use crate::report::{self, Failure};

/// A mounted folder.
pub(super) struct Folder {
    path: PathBuf,
    session: BackgroundSession,
}

impl Folder {
    /// Mounts a file system of one file.
    pub(super) fn show(path: PathBuf, file: OneFile) -> Result<Self, Failure> {
        let session = mount(file, &path)?;
        Ok(Self { path, session })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.path.join(NAME)
    }

    /// Unmounts the folder. Files that are still open are cut off.
    pub(super) fn remove(self) {
        let Self { path, session } = self;
        let is_free = unmount(&path, UnmountFlags::empty());
        if is_free == Err(rustix::io::Errno::BUSY) {
            let why = "is in use: programs that have its file open get errors from now on";
            report::print_error(&format!("warning: {} {why}", path.display()));
            // Nothing is left to be done if this fails.
            let _ = unmount(&path, UnmountFlags::DETACH);
        }
        // For users who are not root this asks fusermount3; else it finds nothing to do.
        drop(session);
    }
}

/// Checks that this machine has FUSE, and returns the folder's whole path. A mount whose process
/// was killed is removed.
pub(super) fn mount_point(folder: &Path) -> Result<PathBuf, Failure> {
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        return Err(Failure::usage(format!(
            "csd attach needs FUSE, and /dev/fuse cannot be opened: {error}"
        )));
    }
    let whole = std::path::absolute(folder).map_err(|e| Failure::os(folder.display(), &e))?;
    if std::fs::metadata(&whole).is_err_and(|error| error.kind() == ErrorKind::NotConnected) {
        let gone = unmount(&whole, UnmountFlags::DETACH);
        gone.map_err(|error| Failure::os(whole.display(), &error.into()))?;
    }
    match std::fs::metadata(&whole) {
        Ok(metadata) if metadata.is_dir() => Ok(whole),
        Ok(_) => Err(Failure::usage(format!("{}: not a folder", whole.display()))),
        Err(error) => Err(Failure::os(whole.display(), &error)),
    }
}

fn mount(file: OneFile, folder: &Path) -> Result<BackgroundSession, Failure> {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::FSName("csd".to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    let mounted = fuser::spawn_mount(file, folder, &config);
    mounted.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::NotFound => Failure::usage(format!(
            "{}: mounting takes root, or the program fusermount3: {error}",
            folder.display()
        )),
        _ => Failure::os(format!("{}: cannot mount", folder.display()), &error),
    })
}
