//! Stops an operating system and removes what it made on this machine.

use std::fs;
use std::process::Stdio;

use crate::place::{Place, remove_file, remove_folder};
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
pub fn down(place: &Place, drive: &dyn Drive) -> Result<Stopped, Error> {
    tools::check()?;
    let _lock = match place.folder().is_dir() {
        true => Some(place.lock()?),
        false => None,
    };
    down_locked(place, drive)
}

/// Does the same, under the lock of the caller.
pub(crate) fn down_locked(place: &Place, drive: &dyn Drive) -> Result<Stopped, Error> {
    let record = Record::load(place)?;
    if let Some(record) = &record {
        sweep(place, record)?;
    }
    // Nothing is mounted any more.
    let cleared = record.as_ref().map_or(Ok(()), |record| clear(record, drive));
    let reserved = cleared.and_then(|()| drive.reserve(false)).err();
    if reserved.is_none() {
        Record::remove(place)?;
    }
    Ok(Stopped { was_there: record.is_some(), reserved })
}

/// Removes a file system that was not finished. The namespace was empty before it was begun, and
/// hosts could not write since then.
pub(crate) fn clear(record: &Record, drive: &dyn Drive) -> Result<(), String> {
    if record.formatting { drive.clear() } else { Ok(()) }
}

/// Removes container, control groups, processes, mounts and loop devices, in this order.
pub(crate) fn sweep(place: &Place, record: &Record) -> Result<(), Error> {
    let cgroup = record.cgroup();
    cgroups::kill(&cgroup)?;
    // A runc goes on if the command that started it was killed, and may make a container yet.
    process::wait_for_all("runc", &place.runc())?;
    if place.runc().is_dir() {
        let mut runc = status::runc(place);
        runc.args(["delete", "--force", &record.id]);
        runc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It fails if the container was not finished; its processes and groups are removed here.
        let _failed = runc.status();
    }
    cgroups::kill(&cgroup)?;
    cgroups::remove(&cgroup)?;
    let (doors, others): (Vec<_>, Vec<_>) =
        record.processes.iter().partition(|process| process.program == DOOR);
    others.iter().try_for_each(|process| process.end())?;
    mounts::unmount_all(&place.root())?;
    mounts::unmount_all(&place.memory())?;
    mounts::unmount_all(&place.volume())?;
    mounts::detach(&place.blocks())?;
    // It flushes the drive and unmounts its folder, if it has not been killed.
    doors.iter().try_for_each(|process| process.end())?;
    mounts::unmount_all(&place.door())?;
    if let Some(left) = mounts::below(place.folder())?.first() {
        return Err(Error::Failed(format!("{} is still mounted", left.point.display())));
    }
    if place.runc().is_dir() {
        fs::remove_dir_all(place.runc()).map_err(|e| Error::os(place.runc().display(), e))?;
    }
    place.passing_files().iter().try_for_each(|path| remove_file(path))?;
    place.mount_points().iter().try_for_each(|path| remove_folder(path))
}

/// Removes the folder of an operating system that is down, with its logs.
///
/// # Errors
/// If it is not down.
pub fn forget(place: &Place) -> Result<(), Error> {
    if place.record().exists() {
        return Err(Error::Failed(format!(
            "{}: the operating system is not down",
            place.folder().display()
        )));
    }
    for path in
        [place.log(), place.door_log(), place.tunnel_log(), place.host_log(), place.lock_file()]
    {
        remove_file(&path)?;
    }
    remove_folder(place.folder())
}
