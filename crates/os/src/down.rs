//! Stops an operating system and removes what it made on this machine.

use std::fs;
use std::process::Stdio;

use crate::os_folder::{OsFolder, remove_file, remove_folder};
use crate::record::{DOOR, Record};
use crate::{Drive, Error, cgroups, mounts, process, status, tools};

/// Outcome of [`down`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// False if there was none.
    pub was_there: bool,
    /// Reason why hosts still cannot write the drive's blocks; then `down` must be repeated.
    pub reserved: Option<String>,
}

/// Stops an operating system, whatever of it still runs. Its file system stays on the drive.
///
/// # Errors
/// If something cannot be removed; then it is still recorded.
pub fn down(os_folder: &OsFolder, drive: &dyn Drive) -> Result<Stopped, Error> {
    tools::check()?;
    let _lock = match os_folder.folder().is_dir() {
        true => Some(os_folder.lock()?),
        false => None,
    };
    down_locked(os_folder, drive)
}

/// Does the same, under the lock of the caller.
pub(crate) fn down_locked(os_folder: &OsFolder, drive: &dyn Drive) -> Result<Stopped, Error> {
    let record = Record::load(os_folder)?;
    if let Some(record) = &record {
        sweep(os_folder, record)?;
    }
    // Nothing is mounted any more.
    let cleared = record.as_ref().map_or(Ok(()), |record| clear(record, drive));
    let reserved = cleared.and_then(|()| drive.reserve(false)).err();
    if reserved.is_none() {
        Record::remove(os_folder)?;
    }
    Ok(Stopped { was_there: record.is_some(), reserved })
}

/// Removes a file system that was not finished. The namespace was empty before it was begun, and
/// hosts could not write since then.
pub(crate) fn clear(record: &Record, drive: &dyn Drive) -> Result<(), String> {
    if record.formatting { drive.clear() } else { Ok(()) }
}

/// Removes container, control groups, processes, mounts and loop devices, in this order.
pub(crate) fn sweep(os_folder: &OsFolder, record: &Record) -> Result<(), Error> {
    let cgroup = record.cgroup();
    let (doors, others): (Vec<_>, Vec<_>) =
        record.processes.iter().partition(|process| process.program == DOOR);
    if cgroups::kill(&cgroup).is_err() {
        // A program that waits for a dead drive cannot be killed. Its I/O fails once the blocks are
        // no longer attached.
        doors.iter().try_for_each(|process| process.end())?;
        cgroups::kill(&cgroup)?;
    }
    // A runc goes on if the command that started it was killed, and may make a container yet.
    process::wait_for_all("runc", &os_folder.runc())?;
    if os_folder.runc().is_dir() {
        let mut runc = status::runc(os_folder);
        runc.args(["delete", "--force", &record.id]);
        runc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It fails if the container was not finished; its processes and groups are removed here.
        let _failed = runc.status();
    }
    cgroups::kill(&cgroup)?;
    cgroups::remove(&cgroup)?;
    others.iter().try_for_each(|process| process.end())?;
    mounts::unmount_all(&os_folder.root())?;
    mounts::unmount_all(&os_folder.devices())?;
    mounts::unmount_all(&os_folder.memory())?;
    mounts::unmount_all(&os_folder.volume())?;
    mounts::detach(&os_folder.blocks())?;
    // It flushes the drive and unmounts its folder, if it has not been killed.
    doors.iter().try_for_each(|process| process.end())?;
    mounts::unmount_all(&os_folder.door())?;
    if let Some(left) = mounts::below(os_folder.folder())?.first() {
        return Err(Error::Failed(format!("{} is still mounted", left.point.display())));
    }
    if os_folder.runc().is_dir() {
        fs::remove_dir_all(os_folder.runc())
            .map_err(|e| Error::os(os_folder.runc().display(), e))?;
    }
    os_folder.passing_files().iter().try_for_each(|path| remove_file(path))?;
    os_folder.mount_points().iter().try_for_each(|path| remove_folder(path))
}

/// Removes the folder of an operating system that is down, with its logs.
///
/// # Errors
/// If it is not down.
pub fn forget(os_folder: &OsFolder) -> Result<(), Error> {
    if os_folder.record().exists() {
        return Err(Error::Failed(format!(
            "{}: the operating system is not down",
            os_folder.folder().display()
        )));
    }
    for path in [
        os_folder.log(),
        os_folder.older_log(),
        os_folder.keeper_log(),
        os_folder.door_log(),
        os_folder.tunnel_log(),
        os_folder.host_log(),
        os_folder.lock_file(),
    ] {
        remove_file(&path)?;
    }
    remove_folder(os_folder.folder())
}
