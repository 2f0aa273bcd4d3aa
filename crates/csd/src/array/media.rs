//! Media files of an array: their identification and deletion.
//!
//! Invariants: a medium is deleted only if it is in the folder of the array file, no process has it
//! open as a drive, and its superblock is the one that the array file recorded. Nothing is deleted
//! before this holds for every drive.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use csd_kvlog::format::{Identity, identify};
use csd_os::os_folder::remove_if_there;
use csd_reactor::{block_on, sleep, timeout};
use csd_store::array::{ArrayFolder, DriveRecord};

use super::{Local, process};
use crate::log_file;
use crate::report::Failure;
use crate::runtime::runtime;
use crate::units::hex;

/// Longest wait for a medium's lock: a killed drive's I/O in flight holds it for a while.
const LOCKED_MAX: Duration = Duration::from_secs(5);
/// Bytes that are compared with zero at once.
const ZEROS_BYTES: usize = 1 << 20;
/// Pause between two tries.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Contents of the file that has the name of a drive's medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The file does not exist.
    Missing,
    /// The file has not been formatted by a drive.
    Blank,
    /// The medium that the array file has recorded.
    Own,
    /// A drive's medium; the array file has not recorded which one it expects.
    Unknown,
    /// Another drive's medium, or no medium of a drive.
    Foreign,
}

/// Identifies a drive's medium, without taking its lock.
pub(super) fn look(drive: &DriveRecord, path: &Path) -> Result<Found, Failure> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(cannot_read(drive, path, &error)),
    };
    compare(drive, path, &file)
}

fn open(path: &Path) -> std::io::Result<File> {
    // Opening a FIFO would wait for its writer.
    if !path.symlink_metadata()?.is_file() {
        return Err(std::io::Error::other("it is no plain file"));
    }
    File::open(path)
}

fn compare(drive: &DriveRecord, path: &Path, file: &File) -> Result<Found, Failure> {
    let identity = identify(file).map_err(|error| cannot_read(drive, path, &error))?;
    Ok(match (identity, &drive.media_uuid) {
        (Identity::Blank, _) => Found::Blank,
        (Identity::Drive(_), None) => Found::Unknown,
        (Identity::Drive(uuid), Some(recorded)) if hex(&uuid) == *recorded => Found::Own,
        _ => Found::Foreign,
    })
}

/// Records the UUID of a drive's medium, if none is recorded. The drive must be serving it for this
/// array.
pub(super) fn record(drive: &mut DriveRecord, home: &ArrayFolder) -> Result<(), Failure> {
    let Some(path) = home.media(drive).map_err(Failure::run)? else { return Ok(()) };
    if drive.media_uuid.is_none()
        && let Ok(file) = open(&path)
    {
        let identity = identify(&file).map_err(|error| cannot_read(drive, &path, &error))?;
        if let Identity::Drive(uuid) = identity {
            drive.media_uuid = Some(hex(&uuid));
        }
    }
    Ok(())
}

/// Returns the media of drives on this machine that are not there, or empty.
pub(super) fn missing(local: &Local) -> Vec<PathBuf> {
    let media = local.file.drives.iter().filter_map(|drive| local.home.media(drive).ok()?);
    media.filter(|path| path.metadata().map_or(true, |meta| meta.len() == 0)).collect()
}

/// Makes a medium that holds nothing but zeros an empty file, which its drive takes for new.
pub(super) fn clear(drive: &DriveRecord, path: &Path) -> Result<(), Failure> {
    let length = path.metadata().map_or(0, |meta| meta.len());
    if length == 0 {
        return Ok(());
    }
    let failed = |error: std::io::Error| cannot_read(drive, path, &error);
    let mut file = open(path).map_err(failed)?;
    let mut part = vec![0; ZEROS_BYTES];
    loop {
        let count = file.read(&mut part).map_err(failed)?;
        if part[..count].iter().any(|byte| *byte != 0) {
            let (name, path) = (&drive.name, path.display());
            return Err(Failure::run(format!(
                "nothing was started: drive {name}: {path} has no superblock, and other bytes \
                 than zeros: move it away, or delete it"
            )));
        }
        if count == 0 {
            break;
        }
    }
    fs::OpenOptions::new().write(true).truncate(true).open(path).map(drop).map_err(failed)
}

fn cannot_read(drive: &DriveRecord, path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("drive {}: its media {}: {error}", drive.name, path.display()))
}

/// Checks that the media of these drives may be deleted, and returns the existing ones. If `lock`
/// is set, the returned files hold their locks.
pub(super) fn deletable(
    drives: &[DriveRecord],
    home: &ArrayFolder,
    lock: bool,
) -> Result<Vec<(PathBuf, File)>, Failure> {
    let mut media = Vec::new();
    for drive in drives {
        let Some(path) = home.media(drive).map_err(|why| refused(drive, &why))? else { continue };
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(cannot_read(drive, &path, &error)),
        };
        let file = if lock { take_lock(drive, &path, file)? } else { file };
        let path_text = path.display();
        match compare(drive, &path, &file)? {
            Found::Own | Found::Blank | Found::Missing => {}
            Found::Unknown => {
                return Err(refused(
                    drive,
                    &format!(
                        "the array file has not recorded which medium it has, so {path_text} may \
                         be another array's; `csd array up` records it"
                    ),
                ));
            }
            Found::Foreign => {
                return Err(refused(
                    drive,
                    &format!("{path_text} is not the medium that this array was made with"),
                ));
            }
        }
        media.push((path, file));
    }
    Ok(media)
}

fn refused(drive: &DriveRecord, why: &str) -> Failure {
    Failure::run(format!("nothing was deleted: drive {}: {why}", drive.name))
}

/// Takes the lock that a drive holds on its medium while it serves; waits up to [`LOCKED_MAX`].
fn take_lock(drive: &DriveRecord, path: &Path, file: File) -> Result<File, Failure> {
    let locked = block_on(&runtime(), move || async move {
        let taken = timeout(LOCKED_MAX, async {
            loop {
                match file.try_lock() {
                    Err(TryLockError::WouldBlock) => sleep(TRY_EVERY).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => return Ok(file),
                }
            }
        });
        taken.await.ok()
    });
    match locked.map_err(Failure::run)? {
        Some(taken) => taken.map_err(|error| cannot_read(drive, path, &error)),
        None => {
            let path = path.display();
            Err(refused(drive, &format!("a process that is not this array's uses {path}")))
        }
    }
}

/// Deletes media that [`deletable`] returned, and the drives' logs and ready files.
pub(super) fn delete(
    media: &[(PathBuf, File)],
    drives: &[DriveRecord],
    folder: &Path,
) -> Result<(), Failure> {
    let mut paths: Vec<PathBuf> = media.iter().map(|(path, _lock)| path.clone()).collect();
    for drive in drives.iter().filter(|drive| drive.media.is_some()) {
        let log = process::log_path(folder, drive);
        paths.extend((1..=log_file::FILES_MAX).map(|number| log_file::older(&log, number)));
        paths.extend([log, process::ready_path(folder, drive)]);
    }
    for path in paths {
        remove_if_there(&path)
            .map_err(|error| Failure::run(format!("cannot delete {}: {error}", path.display())))?;
    }
    // Fails if the folder has other files, which stay.
    let _kept = fs::remove_dir(folder);
    Ok(())
}
