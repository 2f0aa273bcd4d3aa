//! Objects that are moved to other drives, or removed, while they are read: a reader continues with
//! the copy, or reports that the object was moved or removed.

use super::{Error, lookup};
use crate::array::Array;
use crate::catalogue::Entry;
use crate::error::{DriveError, NameError, ProtectionError};

/// Returns the entry of an object that was moved since `entry` was read, in the same chunks; `None`
/// if it was not.
pub async fn moved(array: &Array, entry: &Entry) -> Option<Entry> {
    let now = lookup(array, &entry.name).await.ok()?;
    is_moved(entry, &now).then_some(now)
}

/// Returns what [`moved`] does, if `error` can be due to that.
pub(super) async fn after(array: &Array, entry: &Entry, error: &Error) -> Option<Entry> {
    let can_be = error.is_of_piece()
        || matches!(error, Error::Digest { .. } | Error::Protection(ProtectionError::Lost { .. }));
    if can_be { moved(array, entry).await } else { None }
}

/// Returns [`NameError::Removed`] if the object was removed, [`NameError::Moved`] if it is on other
/// drives now, and `error` otherwise: its chunks may be missing or overwritten because of that.
pub(crate) async fn removed_or_moved(array: &Array, entry: &Entry, error: Error) -> Error {
    if !matches!(
        error,
        Error::Drive(DriveError::Corrupt { .. })
            | Error::Digest { .. }
            | Error::Protection(ProtectionError::Lost { .. })
    ) {
        return error;
    }
    match lookup(array, &entry.name).await {
        Ok(now) if now.id == entry.id => error,
        Ok(now) if is_moved(entry, &now) => {
            Error::Name(NameError::Moved { name: entry.name.clone() })
        }
        Ok(_) | Err(Error::Name(NameError::Missing { .. })) => {
            Error::Name(NameError::Removed { name: entry.name.clone() })
        }
        Err(_) => error,
    }
}

/// Says whether the object that has the name `now` is the one of `entry` on other drives.
fn is_moved(entry: &Entry, now: &Entry) -> bool {
    now.id != entry.id && now.is_copy_of(entry)
}
