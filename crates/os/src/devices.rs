//! The devices of an operating system: `/dev` in memory, with nodes of its own.
//!
//! In a user namespace runc would take the nodes of this machine. Root inside owns them, so it
//! could change their modes, and with that the `/dev/null` of everyone.

use std::fs::{self, File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Dev, FileType, Mode, fstat, makedev, mknodat};
use rustix::mount::{MountFlags, mount};

use crate::Error;
use crate::os_folder::OsFolder;

/// Nodes: name, major and minor number.
const NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
/// Symbolic links: name and target.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Makes the devices.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn make(os_folder: &OsFolder) -> Result<(), Error> {
    let folder = os_folder.devices();
    let mounted = mount("tmpfs", &folder, "tmpfs", MountFlags::NOSUID, c"mode=755,size=64m");
    mounted.map_err(|error| Error::os(folder.display(), error))?;
    for (name, major, minor) in NODES {
        let path = folder.join(name);
        let made =
            mknodat(CWD, &path, FileType::CharacterDevice, Mode::RWXU, makedev(major, minor))
                .map_err(Into::into)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o666)));
        made.map_err(|error: std::io::Error| Error::os(path.display(), error))?;
    }
    for (name, target) in LINKS {
        let path = folder.join(name);
        symlink(target, &path).map_err(|error| Error::os(path.display(), error))?;
    }
    Ok(())
}

/// Opens the null device of an operating system.
///
/// # Errors
/// If there is none.
pub(crate) fn null(os_folder: &OsFolder) -> Result<File, Error> {
    let path = os_folder.devices().join("null");
    let opened = File::options().read(true).write(true).open(&path);
    opened.map_err(|error| Error::os(path.display(), error))
}

/// Gives a command the null device of the operating system wherever this process has the machine's.
pub(crate) fn replace_null(command: &mut Command, os_folder: &OsFolder) {
    // One that was started by a version before has no such device.
    let own = || null(os_folder).ok().map(Stdio::from);
    if is_null(std::io::stdin())
        && let Some(null) = own()
    {
        command.stdin(null);
    }
    if is_null(std::io::stdout())
        && let Some(null) = own()
    {
        command.stdout(null);
    }
    if is_null(std::io::stderr())
        && let Some(null) = own()
    {
        command.stderr(null);
    }
}

fn is_null(stream: impl AsFd) -> bool {
    let (_, major, minor) = NODES[0];
    let null: Dev = makedev(major, minor);
    fstat(stream).is_ok_and(|about| {
        FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice && about.st_rdev == null
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_device_is_told_from_files() {
        assert!(is_null(File::open("/dev/null").unwrap()));
        assert!(!is_null(File::open("/dev/zero").unwrap()));
        assert!(!is_null(tempfile::tempfile().unwrap()));
    }
}
