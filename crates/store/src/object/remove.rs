//! Remove: a tombstone at a higher epoch, then the chunks, then a tombstone that says so.
//!
//! The tombstone stays: a writer that was cut off before the remove, and comes back after it,
//! finds a higher epoch than its own.

use std::rc::Rc;
use std::time::Duration;

use csd_reactor::{Class, Semaphore, random_bytes, sleep, spawn};

use super::{Error, check_name};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, Ground, ObjectId, Placement, State};
use crate::extent;
use crate::extent::GRACE;

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
    let ground = catalogue::settle(array, name).await?;
    let Some(before) = ground.found.newest().cloned() else {
        return Err(Error::Missing { name: name.to_owned() });
    };
    if is_spent(&before) {
        return Err(Error::Missing { name: name.to_owned() });
    }
    let mut tombstone = before.clone();
    tombstone.state = State::Deleted;
    if tombstone.shape.is_empty() {
        tombstone.shape.push(0); // a staged entry: not spent until its chunks are deleted
    }
    random_bytes(&mut tombstone.writer);
    let mut warnings = array.down();
    match catalogue::write(array, &mut tombstone, &ground).await {
        Ok(more) => warnings.extend(more),
        Err(Error::Full { .. }) => {
            // No room even for a tombstone: then the chunks must go first. Cut off in between,
            // the object is still listed, its chunks are missed, and it can be removed again.
            sweep(array, tombstone.id).await?;
            warnings.extend(write_when_room(array, &mut tombstone, &ground).await?);
        }
        Err(error) => return Err(error),
    }
    match sweep_after(array, &before).await {
        Ok(()) => warnings.extend(spend(array, tombstone).await?),
        Err(error) => warnings.push(format!("its chunks are not all deleted: {error}")),
    }
    warnings.dedup();
    Ok(warnings)
}

/// What a failed put does: its chunks deleted, and a tombstone in place of its staged entry.
pub(super) async fn abandon(array: &Array, staged: &Entry) -> Result<(), Error> {
    // Chunks of this put are nobody else's, whoever owns the name now.
    sweep(array, staged.id).await?;
    let ground = catalogue::settle(array, &staged.name).await?;
    if !ground.is_of(staged) {
        return Ok(());
    }
    write_when_room(array, &mut spent(staged.clone()), &ground).await.map(|_warnings| ())
}

/// Writes an entry after a sweep: a full drive has room again once it has cleaned, which takes it
/// a moment.
async fn write_when_room(
    array: &Array,
    entry: &mut Entry,
    ground: &Ground,
) -> Result<Vec<String>, Error> {
    for _ in 1..ROOM_TRIES {
        match catalogue::write(array, entry, ground).await {
            Err(Error::Full { .. }) => sleep(ROOM_PAUSE).await,
            done => return done,
        }
    }
    catalogue::write(array, entry, ground).await
}

/// Deletes what another writer's entry, which is not the newest any more, speaks of.
///
/// # Errors
/// As [`sweep`].
pub(super) async fn sweep_after(array: &Array, before: &Entry) -> Result<(), Error> {
    // Its put may still be under way, and blocks that it writes must not be another object's.
    if before.state == State::Staged && before.placement != Placement::Kv {
        sleep(GRACE).await;
    }
    sweep(array, before.id).await
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

/// Notes that nothing of a removed object is left, unless the name is another writer's by now.
async fn spend(array: &Array, tombstone: Entry) -> Result<Vec<String>, Error> {
    let ground = catalogue::settle(array, &tombstone.name).await?;
    if !ground.is_of(&tombstone) {
        return Ok(Vec::new());
    }
    match catalogue::write(array, &mut spent(tombstone), &ground).await {
        Err(Error::Overtaken { .. }) => Ok(Vec::new()),
        written => written,
    }
}

/// A tombstone whose chunks are deleted: it has no size, and so nothing to delete.
fn spent(mut tombstone: Entry) -> Entry {
    tombstone.state = State::Deleted;
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
