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
use crate::pages::{Group, Held, Maker, PAGE_BYTES, Wanted, add, damaged, store};

/// Makes damaged page lists of an object again, and marks these as repaired.
///
/// # Errors
/// A failed command. A drive that is down or lost is no error.
pub async fn relist(
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

/// Makes the damaged lists of a drive again; returns false if the object has changed meanwhile.
async fn on_drive(array: &Array, object: &Object, drive: &Rc<Drive>) -> Result<bool, Error> {
    let index = u16::try_from(drive.index).expect("an array has at most 1024 drives");
    let pieces = object.pieces(index);
    let (mut stored, mut maker) = (Vec::new(), None);
    for id in object.identifiers() {
        let wrong = damaged(drive, id).await?;
        if wrong.is_empty() {
            continue;
        }
        let held = Held::read(drive, &[id]).await?;
        let wanted = pieces.iter().filter_map(|piece| {
            let listed_as = piece.listed_as(object.entry.id);
            let is_wanted = listed_as.0 == id && !piece.is_missing;
            piece.sum.filter(|_| is_wanted && held.place(listed_as).is_none()).map(|sum| {
                let (spot, bytes) = (piece.spot, piece.bytes);
                Wanted { spot, bytes, sum }
            })
        });
        let page_bytes = held.page_bytes().unwrap_or(PAGE_BYTES);
        let maker = match &mut maker {
            Some(maker) => maker,
            none => none.insert(Maker::new(drive).await?),
        };
        let mut keys = wrong.into_iter();
        for group in Group::all(wanted, object.entry.id, page_bytes) {
            let Some(list) = group.list(maker).await? else { continue };
            stored.push(match keys.next() {
                Some(key) => store(drive, &key, &list).await.map(|()| key),
                None => add(drive, &list).await,
            }?);
        }
        // Fewer lists may do: those before may have named pieces that are bad by now.
        delete(drive, keys).await?;
    }
    let same = |now: &Entry| now.epoch == object.entry.epoch;
    if current(array, &object.entry).await?.as_ref().is_some_and(same) {
        return Ok(true);
    }
    // Its blocks may be another object's by now.
    delete(drive, stored).await?;
    Ok(false)
}

async fn delete(drive: &Drive, keys: impl IntoIterator<Item = Key>) -> Result<(), Error> {
    for key in keys {
        let deleted = drive.objects.delete(&key).await;
        deleted.map_err(|error| Error::command(drive, error))?;
    }
    Ok(())
}
