//! [`Lock`]: only one command at a time starts, stops or adds drives of an array. [`Writers`]: no
//! command adds drives while others write names.
//!
//! The kernel releases a lock when its process ends. Locks do not reach other machines. Invariants:
//! no link is followed and nothing is written to the locked file; every wait is bounded and
//! announced.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use csd_reactor::{block_on, sleep, timeout};

use crate::report::{self, Failure};
use crate::runtime::runtime;

/// Longest wait for another command. Starting drives takes up to 60 s.
const WITHIN: Duration = Duration::from_secs(90);
/// Pause between two tries.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// The array's lock file, next to the array file. Dropping it deletes the file.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    // The lock belongs to this descriptor.
    _held: File,
}

impl Lock {
    /// Waits for other commands that start, stop or add drives of the array.
    ///
    /// # Errors
    /// If another command takes longer than 90 s, or the lock file cannot be created.
    pub(crate) fn take(array: &Path) -> Result<Self, Failure> {
        let mut path = array.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let wanted = path.clone();
        let held = wait(array, "starts, stops or adds drives", move || try_take(&wanted))?;
        Ok(Self { path, _held: held })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Deleted while locked: a waiting command finds the name gone and creates a new file.
        let _kept = fs::remove_file(&self.path);
    }
}

/// Returns the locked file, or `None` if another process holds the lock.
fn try_take(path: &Path) -> io::Result<Option<File>> {
    let file = match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(path) {
                Ok(named) if named.is_file() => {}
                Ok(_) => return Err(io::Error::other("it is no plain file: delete it")),
                Err(error) => return none_if_missing(error),
            }
            match File::open(path) {
                Ok(file) => file,
                Err(error) => return none_if_missing(error),
            }
        }
        made => made?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The last holder may have deleted the file, or the name may be a link now: then try again.
    let (held, named) = (file.metadata()?, fs::symlink_metadata(path));
    let same = named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(file))
}

fn none_if_missing<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) }
}

/// The lock that commands share while they write names, and that adding drives takes exclusively.
#[derive(Debug)]
pub(crate) struct Writers {
    _held: csd_store::array::Writers,
}

impl Writers {
    /// Takes the shared lock, for a command that writes names.
    ///
    /// # Errors
    /// If drives are being added for longer than 90 s.
    pub(crate) fn share(array: &Path) -> Result<Self, Failure> {
        let path = array.to_owned();
        let share = move || csd_store::array::Writers::try_share(&path);
        Ok(Self { _held: wait(array, "adds drives", share)? })
    }

    /// Takes the exclusive lock, for adding drives.
    ///
    /// # Errors
    /// If a command writes for longer than 90 s, or the file system has no locks.
    pub(crate) fn exclude(array: &Path) -> Result<Self, Failure> {
        let path = array.to_owned();
        let exclude = move || csd_store::array::Writers::try_exclude(&path);
        Ok(Self { _held: wait(array, "writes objects", exclude)? })
    }
}

/// Calls `take` until it returns a lock, for at most [`WITHIN`].
fn wait<T: Send + 'static>(
    array: &Path,
    what: &str,
    take: impl Fn() -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, Failure> {
    let array = array.display().to_string();
    let failed = |error: io::Error| Failure::run(format!("the lock of array {array}: {error}"));
    if let Some(taken) = take().map_err(failed)? {
        return Ok(taken);
    }
    report::print_error(&format!("waiting for another command, which {what} of array {array}"));
    let waited = block_on(&runtime(), move || async move {
        let taken = timeout(WITHIN, async {
            loop {
                match take() {
                    Ok(None) => sleep(TRY_EVERY).await,
                    Ok(Some(taken)) => return Ok(taken),
                    Err(error) => return Err(error),
                }
            }
        });
        taken.await.ok()
    });
    match waited.map_err(Failure::run)? {
        Some(taken) => taken.map_err(failed),
        None => Err(Failure::run(format!(
            "array {array}: another command {what} of it for more than {} s; try again later",
            WITHIN.as_secs()
        ))),
    }
}
