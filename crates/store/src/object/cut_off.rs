//! Puts that were cut off: what is on the drives for them, and its removal.
//!
//! A staged entry tells nothing of its put but that it has begun. Whether it still runs is known to
//! its host alone.

use csd_nvme::vendor::execute::chunk_key;

use super::{Error, remove};
use crate::array::Array;
use crate::catalogue::{self, Entry, Placement, State};
use crate::extent::{self, UNIT_BYTES};

/// Returns the bytes that pieces of an object take on the drives that are up, in whole chunks and
/// units.
///
/// # Errors
/// A failed command.
pub async fn space_taken(array: &Array, entry: &Entry) -> Result<u64, Error> {
    let mut bytes = 0;
    for drive in array.drives() {
        for id in entry.ids() {
            let first = chunk_key(&id.0, 0);
            let keys = catalogue::keys_with_prefix(drive, &id.0, first.as_bytes()).await?;
            bytes += keys.len() as u64 * u64::from(entry.chunk_bytes);
            if entry.placement != Placement::Kv {
                bytes += extent::units_owned(drive, id).await?.len() as u64 * UNIT_BYTES;
            }
        }
    }
    Ok(bytes)
}

/// Removes what a put has left, unless it has ended since. Returns warnings about drives that are
/// down or failed.
///
/// # Errors
/// [`NameError::Overtaken`](crate::error::NameError::Overtaken) when it has ended, or another one
/// has the name; those of [`remove`](super::remove()).
pub async fn remove_staged(array: &Array, entry: &Entry) -> Result<Vec<String>, Error> {
    let is_it = |newest: &Entry| newest.id == entry.id && newest.state == State::Staged;
    remove::remove_if(array, &entry.name, is_it).await
}
