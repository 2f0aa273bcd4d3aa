//! Readers of an object that is moved to other drives meanwhile go on with the copy.

use super::{Error, lookup};
use crate::array::Array;
use crate::catalogue::{Entry, State};

/// Returns the entry of an object that was moved since `entry` was read, in the same chunks; `None`
/// if it was not.
pub async fn moved(array: &Array, entry: &Entry) -> Option<Entry> {
    let now = lookup(array, &entry.name).await.ok()?;
    (now.id != entry.id && now.state == State::Sealed && now.is_copy_of(entry)).then_some(now)
}

/// Returns what [`moved`] does, if `error` can be due to that.
pub(super) async fn after(array: &Array, entry: &Entry, error: &Error) -> Option<Entry> {
    let can_be = error.is_of_piece() || matches!(error, Error::Digest { .. } | Error::Lost { .. });
    if can_be { moved(array, entry).await } else { None }
}
