//! New page lists in place of damaged ones.
//!
//! A drive sums the pages of the pieces that no sound list names ([`crate::pages`]). Invariant: a
//! new list stays only if the entry has not changed meanwhile.

use std::rc::Rc;

use csd_nvme::kv::Key;

use super::pieces::Object;
use super::{Bad, Cause, Limits, current};
use crate::array::{Array, Drive};
use crate::catalogue::Entry;
use crate::error::Error;
use crate::pages::{Group, ListedPieces, Maker, PAGE_BYTES, Wanted, add, damaged, store};

/// Makes damaged page lists of an object again, and marks these as repaired.
///
/// # Errors
/// A failed command. A drive that is down or lost is no error.
pub async fn replace_page_lists(
    array: &Array,
    entry: &Entry,
    bad: &mut [Bad],
    limits: &Limits,
) -> Result<(), Error> {
    for bad in bad.iter_mut().filter(|bad| bad.cause == Cause::PageList) {
        let Some(entry) = current(array, entry).await? else { return Ok(()) };
        let mut slots = array.slots().iter();
        let slot = slots.find(|slot| bad.drive.as_ref() == Some(&slot.name));
        let Some(Ok(drive)) = slot.map(|slot| slot.drive()) else { continue };
        if limits.stop.get() {
            return Ok(());
        }
        bad.repaired = match on_drive(array, &Object::new(&entry), drive).await {
            Err(error) if error.is_lost() => false,
            done => done?,
        };
    }
    Ok(())
}

/// Makes the damaged lists of a drive again; returns false if the object has changed meanwhile, or
/// the drive has no room.
async fn on_drive(array: &Array, object: &Object, drive: &Rc<Drive>) -> Result<bool, Error> {
    let mut stored = Vec::new();
    let made = make(array, object, drive, &mut stored).await;
    if is_same(array, object).await? {
        return made;
    }
    // Its blocks may be another object's by now.
    delete(drive, stored).await?;
    made.map(|_| false)
}

/// Makes the lists; `stored` has the keys of those that were stored, also after an error.
async fn make(
    array: &Array,
    object: &Object,
    drive: &Rc<Drive>,
    stored: &mut Vec<Key>,
) -> Result<bool, Error> {
    let pieces = object.pieces(drive.index);
    let (mut maker, mut is_full) = (None, false);
    for id in object.identifiers() {
        let wrong = damaged(drive, id).await?;
        if wrong.is_empty() {
            continue;
        }
        let listed = ListedPieces::read(drive, &[id]).await?;
        let wanted = pieces.iter().filter_map(|piece| {
            let listed_as = piece.listed_as(object.entry.id);
            let is_wanted = listed_as.0 == id && !piece.is_missing;
            piece.sum.filter(|_| is_wanted && listed.find(listed_as).is_none()).map(|sum| {
                let (spot, bytes) = (piece.spot, piece.bytes);
                Wanted { spot, bytes, sum }
            })
        });
        let page_bytes = listed.page_bytes().unwrap_or(PAGE_BYTES);
        let maker = match &mut maker {
            Some(maker) => maker,
            none => none.insert(Maker::new(drive).await?),
        };
        let mut keys = wrong.into_iter();
        for group in Group::all(wanted, object.entry.id, page_bytes) {
            if !maker.takes_room(&group) {
                is_full = true;
                continue;
            }
            let Some(list) = group.list(maker).await? else { continue };
            if !is_same(array, object).await? {
                return Ok(false);
            }
            match keys.next() {
                Some(key) => {
                    stored.push(key);
                    store(drive, &key, &list).await?;
                }
                None => stored.extend(add(drive, &list).await?),
            }
        }
        if is_full {
            return Ok(false);
        }
        // Fewer lists may do: those before may have named pieces that are bad by now.
        delete(drive, keys).await?;
    }
    Ok(true)
}

async fn is_same(array: &Array, object: &Object) -> Result<bool, Error> {
    let now = current(array, &object.entry).await?;
    Ok(now.is_some_and(|now| now.epoch == object.entry.epoch))
}

async fn delete(drive: &Drive, keys: impl IntoIterator<Item = Key>) -> Result<(), Error> {
    for key in keys {
        let deleted = drive.objects.delete(&key).await;
        deleted.map_err(|error| Error::command(drive, error))?;
    }
    Ok(())
}
