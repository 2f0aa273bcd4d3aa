//! [`put_back`]: the newest entry of a name, stored again on one drive.

use csd_nvme::kv::{Key, STORE_IF_NEWER, STORE_MENDS};

use super::entry::Entry;
use crate::array::Drive;
use crate::error::{DriveError, Error};

/// Outcome of [`put_back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutBack {
    Stored,
    /// The drive holds the entry or a later one.
    Held,
    /// The drive holds a damaged entry in a value that is sound to it, of the same version.
    Refused,
}

/// Stores an entry unless the drive holds it or a later one.
pub(super) async fn put_back(drive: &Drive, key: &Key, newest: &Entry) -> Result<PutBack, Error> {
    let is_damaged = match super::read_one(drive, key, &newest.name).await {
        Ok(Some(held)) if held.epoch >= newest.epoch => return Ok(PutBack::Held),
        Ok(_) => false,
        Err(Error::Drive(DriveError::Corrupt { .. })) => true,
        Err(error) => return Err(error),
    };
    // A later entry that is damaged by the time at which this one comes is not replaced.
    let mends = if is_damaged { STORE_MENDS } else { 0 };
    match super::store_entry(drive, newest, STORE_IF_NEWER | mends).await? {
        true => Ok(PutBack::Stored),
        false if is_damaged => Ok(PutBack::Refused),
        false => Ok(PutBack::Held),
    }
}
