//! Remaining capacity for objects, as values and on blocks.
//!
//! Reserves nothing: two concurrent puts share the capacity. Invariant: objects in chunks of the
//! default size fit into the reported capacity, and the rest is enough for the catalogue's entries
//! and for the claims of every unit of blocks.

mod amount;
mod object;

use std::collections::BTreeMap;

use csd_initiator::{Kv, NamespaceKind};

use crate::array::{Array, Drive, DriveIndex};
use crate::catalogue::On;
use crate::error::DriveError;
use crate::error::Error;
use crate::extent::{UNIT_BYTES, claimed_units, units};
use crate::layout;

pub(crate) use amount::MEDIA;
pub use amount::Room;
pub use object::of_object;

/// Longest chunk, bytes.
const CHUNK_BYTES_MAX: u64 = 8 << 20;
/// Parts of a drive that can be full, next to [`MEDIA`].
const BLOCKS: &str =
    "block namespace, of which every object takes 8 MiB or more on each of its drives,";
const BELOW: &str = "namespace has room, but the file system of its medium, or its index of keys,";
/// The catalogue is left one byte of a drive's capacity in this many.
const CATALOGUE_SHARE: u64 = 64;
/// Size of a unit's claim in the kv log, bytes.
const CLAIM_BYTES: u64 = record_bytes(28);

/// Returns the bytes that a value takes of a kv namespace's capacity: the value and a header, in
/// units of 64.
#[must_use]
pub const fn record_bytes(value_bytes: u64) -> u64 {
    (64 + value_bytes).next_multiple_of(64)
}

/// Returns a drive's remaining capacity, in chunks of the array's default size.
///
/// # Errors
/// A failed command.
pub async fn of_drive(array: &Array, drive: &Drive) -> Result<Room, Error> {
    let longest = array.drives().map(|drive| drive.value_bytes_max).min().unwrap_or(0);
    let chunk = u64::from(layout::chunk_bytes(None, longest)?);
    let chunks = records_left(drive).await? / record_bytes(chunk);
    let taken = claimed_units(drive).await?.len() as u64;
    let free = u64::from(units(drive)).saturating_sub(taken);
    Ok(Room { kv_bytes: chunks * chunk, block_bytes: free * UNIT_BYTES })
}

/// Returns the capacity for one more object that is spread over the drives that are up. The fullest
/// drive bounds it.
///
/// # Errors
/// A failed command.
pub async fn of_array(array: &Array) -> Result<Room, Error> {
    let mut rooms = Vec::new();
    for drive in array.drives() {
        rooms.push(of_drive(array, drive).await?);
    }
    Ok(together(&rooms))
}

/// Returns the capacity for one object that is spread over drives with these capacities.
#[must_use]
pub fn together(rooms: &[Room]) -> Room {
    let drives = rooms.len() as u64;
    let least = |of: fn(&Room) -> u64| rooms.iter().map(of).min().unwrap_or(0) * drives;
    Room { kv_bytes: least(|room| room.kv_bytes), block_bytes: least(|room| room.block_bytes) }
}

/// Returns the bytes of records that chunks may still take on a drive. Its kv namespaces share
/// their capacity: each announces its own records and what is left for all.
pub(crate) async fn records_left(drive: &Drive) -> Result<u64, Error> {
    let (mut left, mut used) = (u64::MAX, 0);
    for namespace in drive.controller.namespaces() {
        if matches!(namespace.kind, NamespaceKind::Kv { .. }) {
            let usage = async { Kv::open(&drive.controller, namespace.nsid)?.usage().await };
            let usage = usage.await.map_err(|error| Error::command(drive, error))?;
            left = left.min(usage.0.saturating_sub(usage.1));
            used += usage.1;
        }
    }
    let capacity = if left == u64::MAX { 0 } else { left.saturating_add(used) };
    Ok(for_chunks(capacity, units(drive)).saturating_sub(used))
}

/// Room for records of drives, by their index, bytes.
pub(crate) type Left = BTreeMap<DriveIndex, u64>;

/// Checks that drives, by their index, have room for pieces: values of these lengths, bytes, or
/// pieces on blocks, which take no record. Returns the room that each of these drives has left
/// once they are stored.
///
/// # Errors
/// [`DriveError::Full`]; a failed command.
pub(crate) async fn check(
    array: &Array,
    pieces: impl Iterator<Item = (DriveIndex, Option<u32>)>,
) -> Result<Left, Error> {
    let (mut needed, mut left) = (BTreeMap::<DriveIndex, u64>::new(), Left::new());
    for (drive, bytes) in pieces {
        let bytes = bytes.map_or(0, |bytes| record_bytes(bytes.into()));
        *needed.entry(drive).or_default() += bytes;
    }
    for drive in array.drives() {
        let Some(needed) = needed.get(&drive.index) else { continue };
        let room = records_left(drive).await?.checked_sub(*needed).ok_or_else(|| {
            let (drive, what) = (drive.name.clone(), "key-value part");
            Error::Drive(DriveError::Full { drive, what, room: None })
        })?;
        left.insert(drive.index, room);
    }
    Ok(left)
}

/// Returns the bytes of records that chunks may take in all.
fn for_chunks(capacity: u64, units: u32) -> u64 {
    let spare = capacity / CATALOGUE_SHARE + u64::from(units) * CLAIM_BYTES;
    capacity.saturating_sub(spare)
}

/// Says what is full of a drive, and adds the array's remaining capacity to [`DriveError::Full`],
/// if the drives report it. A drive that refuses bytes although its namespaces have room lacks it
/// below them.
pub(crate) async fn explain(array: &Array, on: On, error: Error) -> Error {
    let Error::Drive(DriveError::Full { drive, what, .. }) = error else { return error };
    let of_namespace = match on {
        On::Kv => "key-value part",
        On::Block => BLOCKS,
    };
    let is_below = what == MEDIA && has_room(array, &drive, on).await;
    let (what, room) = match is_below {
        true => (BELOW, None),
        false => (of_namespace, of_array(array).await.ok()),
    };
    Error::Drive(DriveError::Full { drive, what, room })
}

/// Returns true if the namespace of a drive has room for a chunk of any length.
async fn has_room(array: &Array, name: &str, on: On) -> bool {
    let Some(drive) = array.drives().find(|drive| drive.name == name) else { return false };
    let Ok(room) = of_drive(array, drive).await else { return false };
    match on {
        On::Kv => room.kv_bytes > CHUNK_BYTES_MAX,
        // The unit of the chunk is claimed already.
        On::Block => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_drive_bounds_what_an_object_can_take() {
        let room = |kv_bytes, block_bytes| Room { kv_bytes, block_bytes };
        assert_eq!(together(&[]), room(0, 0));
        assert_eq!(together(&[room(5, 7)]), room(5, 7));
        assert_eq!(together(&[room(5, 7), room(9, 0), room(6, 9)]), room(15, 0));
    }

    #[test]
    fn chunks_leave_room_for_the_catalogue_and_every_claim() {
        assert_eq!((record_bytes(0), record_bytes(1), record_bytes(4096)), (64, 128, 4160));
        assert_eq!(for_chunks(6400, 0), 6300);
        assert_eq!(for_chunks(6400, 10), 6300 - 10 * 128);
        assert_eq!(for_chunks(640, u32::MAX), 0);
    }
}
