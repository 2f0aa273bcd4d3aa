//! Remove: writes a tombstone at a higher epoch, deletes the chunks, then writes a tombstone that
//! says so.
//!
//! The tombstone stays: a writer that was interrupted before the remove, and continues after it,
//! finds a higher epoch than its own.

use std::rc::Rc;
use std::time::Duration;

use csd_reactor::{Class, random_bytes, sleep, spawn};

use super::{Error, check_name};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, Ground, ObjectId, Placement, State};
use crate::error::{DriveError, NameError};
use crate::extent;
use crate::extent::GRACE;
use crate::sweep;

/// Attempts, and the pause between them, to write an entry again to a drive that was full.
const ROOM_TRIES: u32 = 20;
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Removes the object `name`, or the remains of an interrupted put of it. Returns warnings about
/// drives that are down or failed.
///
/// # Errors
/// [`NameError::Missing`] when there is nothing to remove, else the error that prevented a majority
/// from agreeing.
pub async fn remove(array: &Array, name: &str) -> Result<Vec<String>, Error> {
    remove_if(array, name, |_| true).await
}

/// Removes the object of this entry, unless another one has its name by now.
///
/// # Errors
/// [`NameError::Overtaken`] when another one has; those of [`remove`].
pub async fn remove_this(array: &Array, entry: &Entry) -> Result<Vec<String>, Error> {
    remove_if(array, &entry.name, |newest| newest.id == entry.id).await
}

/// Removes the newest entry of `name` if `is_it`.
///
/// # Errors
/// [`NameError::Overtaken`] if not; those of [`remove`].
pub(super) async fn remove_if(
    array: &Array,
    name: &str,
    is_it: impl FnOnce(&Entry) -> bool,
) -> Result<Vec<String>, Error> {
    check_name(name)?;
    let ground = catalogue::settle(array, name).await?;
    let Some(before) = ground.found.newest().cloned() else {
        return Err(Error::Name(NameError::Missing { name: name.to_owned() }));
    };
    if is_spent(&before) {
        return Err(Error::Name(NameError::Missing { name: name.to_owned() }));
    }
    if !is_it(&before) {
        return Err(Error::Name(NameError::Overtaken { name: name.to_owned() }));
    }
    let mut tombstone = before.clone();
    tombstone.state = State::Deleted;
    tombstone.sums = Vec::new();
    if let Some(protection) = &mut tombstone.protection {
        // The pieces that are to be deleted keep their names.
        protection.epoch = if protection.epoch == 0 { before.epoch } else { protection.epoch };
        protection.parity = None;
    }
    if tombstone.shape.is_empty() {
        tombstone.shape.push(0); // a staged entry: not spent until its chunks are deleted
    }
    random_bytes(&mut tombstone.writer);
    let mut warnings = array.down();
    match catalogue::write(array, &mut tombstone, &ground).await {
        Ok(more) => warnings.extend(more),
        Err(Error::Drive(DriveError::Full { .. })) => {
            // No space even for a tombstone, so the chunks must go first. If this is interrupted,
            // the object is still listed although chunks are missing, and it can be removed again.
            sweep_ids(array, before.ids()).await?;
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

/// Drops a name of which too few copies are sound, because a user has said so: writes a tombstone,
/// and deletes the data of every copy that can be read. Others' data is left to a reclaim. No host
/// may write the name meanwhile. Returns warnings.
///
/// # Errors
/// [`Error::Input`] if enough copies are sound; those of [`catalogue::write_over`].
pub async fn drop_damaged(array: &Array, name: &str) -> Result<Vec<String>, Error> {
    let key = match catalogue::key_of_words(name) {
        Some(key) => {
            let (found, _) = catalogue::look(array, &key).await;
            let Some(told) = found.name() else {
                return catalogue::forget(array, &key).await.map(|()| Vec::new());
            };
            return Box::pin(drop_damaged(array, told)).await;
        }
        None => catalogue::key(name),
    };
    check_name(name)?;
    let tombstone = |best: Option<&Entry>| spent(best.map_or_else(|| unknown(name), Entry::clone));
    let before = catalogue::write_over(array, &key, name, tombstone).await?;
    let mut warnings = Vec::new();
    for entry in before {
        if let Err(error) = sweep_after(array, &entry).await {
            let what = "its chunks are not all deleted, `csd array reclaim` does the rest";
            warnings.push(format!("{what}: {error}"));
        }
    }
    Ok(warnings)
}

/// Returns an entry of a name of which nothing else is known.
fn unknown(name: &str) -> Entry {
    let mut id = [0; 12];
    random_bytes(&mut id);
    Entry::empty(name, ObjectId::from_random(id), State::Deleted)
}

/// Cleans up after a failed put: deletes its chunks, and replaces its staged entry by a tombstone.
pub(super) async fn abandon(array: &Array, staged: &Entry) -> Result<(), Error> {
    // These chunks belong to this put only, whichever writer owns the name now.
    sweep_ids(array, staged.ids()).await?;
    let ground = catalogue::settle(array, &staged.name).await?;
    if !ground.is_of(staged) {
        return Ok(());
    }
    write_when_room(array, &mut spent(staged.clone()), &ground).await.map(|_warnings| ())
}

/// Writes an entry after a sweep: a full drive takes a moment to clean before it has space again.
async fn write_when_room(
    array: &Array,
    entry: &mut Entry,
    ground: &Ground,
) -> Result<Vec<String>, Error> {
    for _ in 1..ROOM_TRIES {
        match catalogue::write(array, entry, ground).await {
            Err(Error::Drive(DriveError::Full { .. })) => sleep(ROOM_PAUSE).await,
            done => return done,
        }
    }
    catalogue::write(array, entry, ground).await
}

/// Deletes the data of another writer's entry that is no longer the newest.
///
/// # Errors
/// As [`sweep`].
pub(super) async fn sweep_after(array: &Array, before: &Entry) -> Result<(), Error> {
    // Its put or a repair may still be running, and its blocks must not be reused before it stops.
    let has_writer =
        before.state == State::Staged || before.protection.is_some() || before.copy.is_some();
    if has_writer && before.placement != Placement::Kv {
        sleep(GRACE).await;
    }
    sweep_ids(array, before.ids()).await
}

/// Deletes the pieces that an interrupted command has left, and that the entry which was written
/// since does not name. Those on drives that are down are left to a reclaim.
pub(super) async fn sweep_left(array: &Array, before: &Entry, written: &Entry) {
    let named = written.ids();
    let left: Vec<ObjectId> = before.ids().into_iter().filter(|id| !named.contains(id)).collect();
    if left.is_empty() {
        return;
    }
    // That command may still be running, and finds out when it looks at its name.
    if before.copy.is_some() && before.placement != Placement::Kv {
        sleep(GRACE).await;
    }
    let _left = sweep_ids(array, left).await;
}

/// Deletes everything that is stored under these identifiers on the drives that are up.
///
/// # Errors
/// As [`sweep`].
pub(crate) async fn sweep_ids(array: &Array, ids: Vec<ObjectId>) -> Result<(), Error> {
    for id in ids {
        sweep(array, id).await?;
    }
    Ok(())
}

/// Deletes all values under `object` and its claims on all drives that are up.
///
/// # Errors
/// The first failed command, after every drive was tried.
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
    sweep::lists(drive, object).await?;
    sweep::pieces(drive, object).await?;
    extent::release(drive, object).await
}

/// Records that a removed object has no data left, unless another writer owns the name by now.
async fn spend(array: &Array, tombstone: Entry) -> Result<Vec<String>, Error> {
    let mut spent = spent(tombstone.clone());
    match catalogue::write_after(array, &mut spent, &tombstone).await {
        Err(Error::Name(NameError::Overtaken { .. })) => Ok(Vec::new()),
        written => written,
    }
}

/// Returns a tombstone whose chunks are deleted: its size is 0, so there is nothing to delete.
fn spent(mut tombstone: Entry) -> Entry {
    tombstone.state = State::Deleted;
    tombstone.bytes = 0;
    tombstone.shape.clear();
    tombstone.parts = None;
    tombstone.sums = Vec::new();
    tombstone.protection = None;
    tombstone.copy = None;
    tombstone.placement = Placement::Kv;
    tombstone
}

/// Returns true if a removed object has nothing left to delete.
pub(super) fn is_spent(entry: &Entry) -> bool {
    let nothing = entry.bytes == 0 && entry.shape.is_empty() && entry.placement == Placement::Kv;
    entry.state == State::Deleted && nothing
}
