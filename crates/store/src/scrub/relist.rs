//! New page lists in place of damaged ones.
//!
//! The host reads the pieces that no sound list names, compares them with the checksums of the
//! entry and sums their pages: damage is rare, and a list names at most 64 MiB of full chunks.
//! Invariant: a new list names only pieces that were those of the entry, and stays only if the
//! entry has not changed meanwhile.

use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::pages::{self, LISTS_MAX, List, list_key};
use csd_reactor::{Buffer, Class, compute_fn};

use super::page::{Lists, damaged, number_of};
use super::pieces::{Object, Piece};
use super::{Bad, Cause, Limits, current};
use crate::array::{Array, Drive};
use crate::catalogue::{Entry, ObjectId};
use crate::error::Error;
use crate::object::{LIST_BYTES, PAGE_BYTES, page_sums};
use crate::sweep::list_keys;

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
    let mut stored = Vec::new();
    for id in object.identifiers() {
        let wrong = damaged(drive, id).await?;
        if wrong.is_empty() {
            continue;
        }
        let lists = Lists::read(drive, &[id]).await?;
        let of_id = pieces.iter().filter(|piece| {
            let is_listed = lists.has(piece, object.entry.id);
            piece.listed_as(object.entry.id).0 == id && !piece.is_missing && !is_listed
        });
        let made = make(drive, id, of_id, lists.page_bytes().unwrap_or(PAGE_BYTES)).await?;
        let free = list_keys(drive, id).await?.last().map_or(0, |last| number_of(last) + 1);
        let more = (free..LISTS_MAX).map(|number| list_key(&id.0, number));
        let mut keys = wrong.into_iter();
        for (list, key) in made.into_iter().zip(keys.by_ref().chain(more)) {
            let value = vec![Buffer::from_slice(&list)];
            let done = drive.objects.store(&key, value, 0).await;
            done.map_err(|error| Error::command(drive, error))?;
            stored.push(key);
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

/// Returns new lists of those pieces that are the entry's.
async fn make(
    drive: &Drive,
    object: ObjectId,
    pieces: impl Iterator<Item = &Piece>,
    page_bytes: u32,
) -> Result<Vec<Vec<u8>>, Error> {
    let (mut made, mut open) = (Vec::new(), None::<List>);
    for piece in pieces.filter(|piece| piece.bytes > page_bytes) {
        let (Some(sum), Some(bytes)) = (piece.sum, piece.spot.read(drive, piece.bytes).await?)
        else {
            continue;
        };
        let work = move || (crc32c::crc32c(&bytes), page_sums(page_bytes, &bytes));
        let summed = compute_fn(Class::Foreground, 0, work).await;
        let (found, sums) = summed.map_err(|_| Error::Lane)?;
        if found != sum {
            continue;
        }
        let (kind, nsid, _, start) = piece.spot.listed(object);
        let has_room = |list: &List| {
            let (pieces, pages) = (list.pieces.len() + 1, list.sums.len() + sums.len());
            List::encoded_bytes(pieces, pages) <= LIST_BYTES
        };
        if !open.as_ref().is_some_and(has_room) {
            made.extend(open.take().map(|list| list.encode()));
        }
        let list = open.get_or_insert_with(|| {
            let (pieces, sums) = (Vec::new(), Vec::new());
            List { kind, nsid, page_bytes, object: object.0, pieces, sums }
        });
        list.pieces.push(pages::Piece { start, bytes: piece.bytes });
        list.sums.extend(sums);
    }
    made.extend(open.map(|list| list.encode()));
    Ok(made)
}
