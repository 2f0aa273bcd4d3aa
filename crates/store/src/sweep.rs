//! Deletes the values of an object on one drive.
//!
//! A drive compares blocks with the page lists that it finds, so the lists of an object go before
//! the claims of its blocks.

use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::chunk_key;
use csd_nvme::vendor::pages::list_key;
use csd_reactor::{Class, Semaphore, spawn};

use crate::array::Drive;
use crate::catalogue::{self, ObjectId};
use crate::error::Error;

/// Deletes in flight at once on one drive.
const DELETES: usize = 32;

/// Returns the keys of the page lists of an object.
///
/// # Errors
/// A failed command.
pub(crate) async fn list_keys(drive: &Drive, object: ObjectId) -> Result<Vec<Key>, Error> {
    let first = list_key(&object.0, 0);
    catalogue::keys_with_prefix(drive, &object.0, first.as_bytes()).await
}

/// Deletes the page lists of an object.
///
/// # Errors
/// A failed command.
pub(crate) async fn lists(drive: &Rc<Drive>, object: ObjectId) -> Result<(), Error> {
    all(drive, list_keys(drive, object).await?).await
}

/// Deletes the chunks or parity pieces of an object.
///
/// # Errors
/// A failed command.
pub(crate) async fn pieces(drive: &Rc<Drive>, object: ObjectId) -> Result<(), Error> {
    let first = chunk_key(&object.0, 0);
    all(drive, catalogue::keys_with_prefix(drive, &object.0, first.as_bytes()).await?).await
}

async fn all(drive: &Rc<Drive>, keys: Vec<Key>) -> Result<(), Error> {
    let window = Semaphore::new(DELETES);
    let mut deletes = Vec::with_capacity(keys.len());
    for key in keys {
        let permit = window.acquire(1).await;
        let drive = Rc::clone(drive);
        deletes.push(spawn(Class::Foreground, async move {
            let deleted = drive.objects.delete(&key).await;
            drop(permit);
            deleted.map(|_| ()).map_err(|error| Error::command(&drive, error))
        }));
    }
    for delete in deletes {
        delete.await?;
    }
    Ok(())
}
