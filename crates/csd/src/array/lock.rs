//! [`Lock`]: one command at a time starts, stops or adds drives of an array; [`Writers`]: none
//! adds drives while others write names.
//!
//! A lock ends with the process that holds it, however that ends. Does not reach other machines.
//! Invariants: no link is followed and nothing is written; every wait is bounded and announced.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use csd_reactor::{block_on, sleep, timeout};

use crate::report::{self, Failure};
use crate::runtime::runtime;

/// Longest wait for another command. One that starts drives waits 60 s for them.
const WITHIN: Duration = Duration::from_secs(90);
/// Pause between two tries.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// The array's lock file, next to the array file; deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    // The descriptor is the lock.
    _held: File,
}

impl Lock {
    /// Waits for other commands that start, stop or add drives of the array.
    ///
    /// # Errors
    /// When one takes longer than 90 s, or the folder takes no file.
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
        // Under its own lock: a command that waits finds the name gone and makes a new file.
        let _kept = fs::remove_file(&self.path);
    }
}

/// The lock file, if nobody else has it.
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
    // Its last holder may have deleted it, or somebody laid a link there: then try again.
    let (held, named) = (file.metadata()?, fs::symlink_metadata(path));
    let same = named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(file))
}

fn none_if_missing<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) }
}

/// The lock that commands share while they write names, and that adding drives takes alone. It is
/// on the folder of the array file, which is there also where no file can be made.
#[derive(Debug)]
pub(crate) struct Writers {
    _held: Option<File>,
}

impl Writers {
    /// For a command that writes names.
    ///
    /// # Errors
    /// When drives are being added for longer than 90 s.
    pub(crate) fn share(array: &Path) -> Result<Self, Failure> {
        let folder = folder(array);
        let held = wait(array, "adds drives", move || match File::open(&folder) {
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Ok(Some(Some(file))),
                Err(TryLockError::WouldBlock) => Ok(None),
                // Some network file systems have no locks: arrays there are added to by care.
                Err(TryLockError::Error(_)) => Ok(Some(None)),
            },
            // The array file will say what is wrong.
            Err(_) => Ok(Some(None)),
        })?;
        Ok(Self { _held: held })
    }

    /// For adding drives.
    ///
    /// # Errors
    /// When a command writes for longer than 90 s, or the file system has no locks.
    pub(crate) fn exclude(array: &Path) -> Result<Self, Failure> {
        let folder = folder(array);
        let held = wait(array, "writes objects", move || {
            let file = File::open(&folder)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        })?;
        Ok(Self { _held: Some(held) })
    }
}

fn folder(array: &Path) -> PathBuf {
    let folder = array.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// Tries until it has what it wants.
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
    report::complain(&format!("waiting for another command, which {what} of array {array}"));
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
