//! Remove: a tombstone at a higher epoch, then the chunks, then a tombstone that says so.
//!
//! The tombstone stays: a writer that was cut off before the remove, and comes back after it,
//! finds a higher epoch than its own.

use std::rc::Rc;
use std::time::Duration;

use csd_reactor::{Class, Semaphore, random_bytes, sleep, spawn};

use super::{Error, check_name};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, Found, ObjectId, Placement, State};
use crate::extent;

/// Deletes in flight at once on one drive.
const DELETES: usize = 32;
/// How often, and after what pause, an entry is written again to a drive that was full.
const ROOM_TRIES: u32 = 20;
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Removes the object `name`, or what a put of it that was cut off left. Gives warnings about
/// drives that are down or failed.
///
/// # Errors
/// [`Error::Missing`] when there is nothing to remove, else what kept a majority from agreeing.
pub async fn remove(array: &Array, name: &str) -> Result<Vec<String>, Error> {
    check_name(name)?;
    let found = catalogue::read(array, &catalogue::key(name), name).await?;
    let Some(before) = found.newest().cloned() else {
        return Err(Error::Missing { name: name.to_owned() });
    };
    if is_spent(&before) {
        return Err(Error::Missing { name: name.to_owned() });
    }
    let mut tombstone = before;
    tombstone.state = State::Deleted;
    tombstone.epoch += 1;
    if tombstone.shape.is_empty() {
        tombstone.shape.push(0); // a staged entry: not spent until its chunks are deleted
    }
    random_bytes(&mut tombstone.writer);
    let mut warnings = array.down();
    match catalogue::write(array, &tombstone, &found).await {
        Ok(more) => warnings.extend(more),
        Err(Error::Full { .. }) => {
            // No room even for a tombstone: then the chunks must go first. Cut off in between,
            // the object is still listed, its chunks are missed, and it can be removed again.
            sweep(array, tombstone.id).await?;
            warnings.extend(write_when_room(array, &tombstone, &found).await?);
        }
        Err(error) => return Err(error),
    }
    match sweep(array, tombstone.id).await {
        Ok(()) => warnings.extend(spend(array, tombstone).await?),
        Err(error) => warnings.push(format!("its chunks are not all deleted: {error}")),
    }
    warnings.dedup();
    Ok(warnings)
}

/// What a failed put does: a tombstone in place of its staged entry, and its chunks deleted.
pub(super) async fn abandon(array: &Array, staged: &Entry) -> Result<(), Error> {
    let mut tombstone = staged.clone();
    tombstone.state = State::Deleted;
    let found = catalogue::confirm(array, staged).await;
    // Chunks of this put are nobody else's, whoever owns the name now.
    sweep(array, staged.id).await?;
    let written = write_when_room(array, &spent(tombstone), &found?).await;
    written.map(|_warnings| ())
}

/// Writes an entry after a sweep: a full drive has room again once it has cleaned, which takes it
/// a moment.
async fn write_when_room(
    array: &Array,
    entry: &Entry,
    found: &Found,
) -> Result<Vec<String>, Error> {
    for _ in 1..ROOM_TRIES {
        match catalogue::write(array, entry, found).await {
            Err(Error::Full { .. }) => sleep(ROOM_PAUSE).await,
            done => return done,
        }
    }
    catalogue::write(array, entry, found).await
}

/// Deletes all chunks and claims of `object` on all drives that are up.
///
/// # Errors
/// The first failed command; every drive is tried.
pub(super) async fn sweep(array: &Array, object: ObjectId) -> Result<(), Error> {
    let sweeps: Vec<_> = array
        .drives()
        .map(|drive| {
            let drive = Rc::clone(drive);
            spawn(Class::Foreground, async move { sweep_drive(&drive, object).await })
        })
        .collect();
    let mut result = Ok(());
    for swept in sweeps {
        let swept = swept.await;
        result = result.and(swept);
    }
    result
}

async fn sweep_drive(drive: &Rc<Drive>, object: ObjectId) -> Result<(), Error> {
    let first = csd_nvme::execute::chunk_key(&object.0, 0);
    let keys = catalogue::keys_with_prefix(drive, &object.0, first.as_bytes()).await?;
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
    extent::release(drive, object).await
}

async fn spend(array: &Array, tombstone: Entry) -> Result<Vec<String>, Error> {
    let found = catalogue::confirm(array, &tombstone).await?;
    catalogue::write(array, &spent(tombstone), &found).await
}

/// A tombstone whose chunks are deleted: it has no size, and so nothing to delete.
fn spent(mut tombstone: Entry) -> Entry {
    tombstone.bytes = 0;
    tombstone.shape.clear();
    tombstone.parts = None;
    tombstone.placement = Placement::Kv;
    tombstone
}

/// Whether nothing of a removed object is left to delete.
pub(super) fn is_spent(entry: &Entry) -> bool {
    let nothing = entry.bytes == 0 && entry.shape.is_empty() && entry.placement == Placement::Kv;
    entry.state == State::Deleted && nothing
}
