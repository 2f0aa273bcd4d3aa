//! Marks of blocks that are claimed for an object but not all written yet.
//!
//! A drive that was emptied has forgotten claims and data. Before its units are claimed again, a
//! mark is stored there: a value under the key of the object's chunk FFFFFFFFh. It is deleted once
//! all chunks on the drive are good, so claimed blocks without it hold the object's chunks.

use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::chunk_key;

use crate::array::Drive;
use crate::catalogue::ObjectId;
use crate::error::Error;

/// Marks an object's blocks on a drive as not all written.
///
/// # Errors
/// A failed command.
pub(crate) async fn mark(drive: &Drive, object: ObjectId) -> Result<(), Error> {
    let stored = drive.objects.store(&key(object), vec![], 0).await;
    stored.map_err(|error| Error::command(drive, error))
}

/// Deletes the mark of [`mark`].
///
/// # Errors
/// A failed command.
pub(crate) async fn unmark(drive: &Drive, object: ObjectId) -> Result<(), Error> {
    let deleted = drive.objects.delete(&key(object)).await;
    deleted.map(|_| ()).map_err(|error| Error::command(drive, error))
}

/// Returns true if the drive has the mark of this object.
///
/// # Errors
/// A failed command.
pub async fn is_marked(drive: &Drive, object: ObjectId) -> Result<bool, Error> {
    let exists = drive.objects.exist(&key(object)).await;
    exists.map_err(|error| Error::command(drive, error))
}

fn key(object: ObjectId) -> Key {
    chunk_key(&object.0, u32::MAX)
}
