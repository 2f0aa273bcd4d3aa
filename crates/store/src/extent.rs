//! Extents: space for chunks on block namespaces, in units of 8 MiB.
//!
//! A unit belongs to the object whose claim is stored under the unit's key (02h, then its number,
//! big-endian) in the objects' kv namespace of the same drive. A claim is stored only if the key is
//! unused, so the drive decides which of two writers gets a unit. A claim whose object no longer
//! has a catalogue entry is stale; when a drive is full, one writer at a time (lock key 03h)
//! reclaims its stale claims.
//!
//! This module reads and writes no data. Invariant: units are claimed only while their object's
//! entry is staged, and a claim is deleted only after its object was removed, or by a reclaim that
//! found it stale. Not guarded: a reclaim that stalls until another writer breaks its lock
//! ([`LOCK_PATIENCE`]) may then delete a claim that was renewed in the meantime.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, sleep};

use crate::array::{Array, Drive};
use crate::catalogue::{self, Extents, ObjectId};
use crate::error::{DriveError, Error, NameError};
use crate::extent_ranges::push_unit;
use crate::sweep;

pub use crate::layout::UNIT_BYTES;
/// Time that a lock must stay unchanged before another writer takes it for abandoned.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a put that has lost its name writes no more blocks, so that others may write
/// them: by then it has checked its name several times, and its commands have completed.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

const CLAIM_PREFIX: u8 = 0x02;
const LOCK_PREFIX: u8 = 0x03;
const CLAIM_BYTES: usize = 28;

/// Claims units of one drive for one object, contiguous where possible.
pub(crate) struct Claimer {
    drive: Rc<Drive>,
    object: ObjectId,
    entry_key: Key,
    units: u32,
    taken: BTreeSet<u32>,
    next: u32,
    extents: Extents,
}

impl Claimer {
    /// Returns a claimer, after reading which units are taken.
    pub(crate) async fn new(
        drive: &Rc<Drive>,
        object: ObjectId,
        entry_key: Key,
    ) -> Result<Self, Error> {
        let units = units(drive);
        let taken: BTreeSet<u32> = claimed_units(drive).await?.into_iter().collect();
        let next = start_of_largest_gap(&taken, units);
        let drive = Rc::clone(drive);
        Ok(Self { drive, object, entry_key, units, taken, next, extents: Extents::new() })
    }

    /// Claims one more unit and returns its number.
    pub(crate) async fn claim(&mut self, array: &Array) -> Result<u32, Error> {
        let mut reclaimed = false;
        loop {
            let Some(unit) = next_free(&self.taken, self.next, self.units) else {
                if reclaimed || !self.reclaim(array).await? {
                    let drive = self.drive.name.clone();
                    return Err(Error::Drive(DriveError::Full {
                        drive,
                        what: "block namespace",
                        room: None,
                    }));
                }
                reclaimed = true;
                continue;
            };
            // A claim may be this one's whose acknowledgement was lost.
            match claim_again(&self.drive, unit, self.object, &self.entry_key).await {
                Ok(true) => {
                    self.taken.insert(unit);
                    push_unit(&mut self.extents, unit);
                    self.next = unit + 1;
                    return Ok(unit);
                }
                Ok(false) | Err(Error::Drive(DriveError::Corrupt { .. })) => {
                    self.taken.insert(unit);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on over another connection to the drive.
    pub(crate) fn go_on(&mut self, drive: &Rc<Drive>) {
        self.drive = Rc::clone(drive);
    }

    /// Returns the units claimed so far.
    pub(crate) fn into_extents(self) -> Extents {
        self.extents
    }

    /// Deletes stale claims; returns false when there was none.
    async fn reclaim(&mut self, array: &Array) -> Result<bool, Error> {
        lock(&self.drive, self.object).await?;
        let freed = delete_stale(&self.drive, array).await;
        unlock(&self.drive).await?;
        let freed = freed?;
        if freed.is_empty() {
            return Ok(false);
        }
        for unit in freed {
            self.taken.remove(&unit);
        }
        Ok(true)
    }
}

/// Returns the number of units of a drive.
#[must_use]
pub fn units(drive: &Drive) -> u32 {
    u32::try_from(drive.block.bytes() / UNIT_BYTES).unwrap_or(u32::MAX)
}

/// Returns the claimed units of `drive`, in order.
///
/// # Errors
/// A failed command.
pub async fn claimed_units(drive: &Drive) -> Result<Vec<u32>, Error> {
    let keys = catalogue::keys_with_prefix(drive, &[CLAIM_PREFIX], unit_key(0).as_bytes()).await?;
    Ok(keys.iter().filter_map(unit_of).collect())
}

/// Returns the objects that have claims on `drive`, as far as these are sound.
///
/// # Errors
/// A failed command.
pub(crate) async fn owners(drive: &Drive) -> Result<Vec<ObjectId>, Error> {
    let mut owners = Vec::new();
    for unit in claimed_units(drive).await? {
        owners.extend(sound_claim(drive, unit).await?.map(|(object, _)| object));
    }
    Ok(owners)
}

/// Returns the units of `drive` that `object` has claimed, as far as the claims are sound.
///
/// # Errors
/// A failed command.
pub(crate) async fn units_owned(drive: &Drive, object: ObjectId) -> Result<Vec<u32>, Error> {
    let mut owned = Vec::new();
    for unit in claimed_units(drive).await? {
        let claim = sound_claim(drive, unit).await?;
        owned.extend(claim.filter(|(owner, _)| *owner == object).map(|_| unit));
    }
    Ok(owned)
}

/// Deletes the claims of `object` on `drive`.
///
/// # Errors
/// A failed command.
pub(crate) async fn release(drive: &Drive, object: ObjectId) -> Result<(), Error> {
    for unit in units_owned(drive, object).await? {
        delete(drive, &unit_key(unit)).await?;
    }
    Ok(())
}

/// Returns the object that has claimed a unit.
///
/// # Errors
/// A failed command, or a corrupt claim.
pub async fn owner(drive: &Drive, unit: u32) -> Result<Option<ObjectId>, Error> {
    Ok(read_claim(drive, unit).await?.map(|(object, _)| object))
}

/// Claims a unit for the object that has it in its entry, if the drive has forgotten the claim.
/// Returns false if another object has the unit.
///
/// # Errors
/// A failed command, or a corrupt claim.
pub(crate) async fn claim_again(
    drive: &Drive,
    unit: u32,
    object: ObjectId,
    entry_key: &Key,
) -> Result<bool, Error> {
    let value = vec![Buffer::from_slice(&claim_value(object, entry_key))];
    match drive.objects.store(&unit_key(unit), value, STORE_IF_ABSENT).await {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::KEY_EXISTS) => {
            Ok(owner(drive, unit).await? == Some(object))
        }
        Err(error) => Err(Error::command(drive, error)),
    }
}

async fn delete_stale(drive: &Rc<Drive>, array: &Array) -> Result<Vec<u32>, Error> {
    let mut stale = Vec::new();
    for unit in claimed_units(drive).await? {
        let Some((object, key)) = sound_claim(drive, unit).await? else { continue };
        let found = match catalogue::read(array, &key, "of a claim").await {
            // The unit may belong to what the name stands for.
            Err(Error::Name(NameError::Damaged { .. })) => continue,
            found => found?,
        };
        if found.newest().is_none_or(|entry| !entry.ids().contains(&object)) {
            stale.push((unit, object, key));
        }
    }
    if !stale.is_empty() {
        // A put that has just lost its name may still write.
        sleep(GRACE).await;
    }
    let mut freed = Vec::new();
    for (unit, object, key) in stale {
        // Checked again: the object may have been removed and the unit claimed by another.
        if sound_claim(drive, unit).await? == Some((object, key)) {
            sweep::lists(drive, object).await?;
            delete(drive, &unit_key(unit)).await?;
            freed.push(unit);
        }
    }
    Ok(freed)
}

async fn lock(drive: &Drive, object: ObjectId) -> Result<(), Error> {
    let key = lock_key();
    loop {
        let value = vec![Buffer::from_slice(&object.0)];
        match drive.objects.store(&key, value, STORE_IF_ABSENT).await {
            Ok(()) => return Ok(()),
            Err(error) if error.status() == Some(Status::KEY_EXISTS) => {}
            Err(error) => return Err(Error::command(drive, error)),
        }
        let holder = lock_holder(drive).await?;
        sleep(LOCK_PATIENCE).await;
        if holder.is_some() && lock_holder(drive).await? == holder {
            delete(drive, &key).await?;
        }
    }
}

async fn unlock(drive: &Drive) -> Result<(), Error> {
    delete(drive, &lock_key()).await
}

async fn lock_holder(drive: &Drive) -> Result<Option<Vec<u8>>, Error> {
    let value = drive.objects.retrieve(&lock_key(), 64).await;
    let value = value.map_err(|error| Error::command(drive, error))?;
    Ok(value.map(|value| value.to_vec()))
}

async fn read_claim(drive: &Drive, unit: u32) -> Result<Option<(ObjectId, Key)>, Error> {
    let corrupt = |why: String| {
        let (drive, object) = (drive.name.clone(), format!("claim of unit {unit}"));
        Error::Drive(DriveError::Corrupt { drive, object, why })
    };
    let value = match drive.objects.retrieve(&unit_key(unit), 64).await {
        Err(error) if error.status() == Some(Status::UNRECOVERED_ERROR) => {
            return Err(corrupt(format!("the drive says: {error}")));
        }
        value => value.map_err(|error| Error::command(drive, error))?,
    };
    value.map(|value| parse_claim(&value)).transpose().map_err(|why| corrupt(why.to_owned()))
}

/// Returns a unit's claim; `None` also for a damaged one, which may be any object's.
async fn sound_claim(drive: &Drive, unit: u32) -> Result<Option<(ObjectId, Key)>, Error> {
    match read_claim(drive, unit).await {
        Err(Error::Drive(DriveError::Corrupt { .. })) => Ok(None),
        claim => claim,
    }
}

async fn delete(drive: &Drive, key: &Key) -> Result<(), Error> {
    let deleted = drive.objects.delete(key).await;
    deleted.map(|_| ()).map_err(|error| Error::command(drive, error))
}

pub(crate) fn unit_key(unit: u32) -> Key {
    let mut key = [0; 9];
    key[0] = CLAIM_PREFIX;
    key[1..].copy_from_slice(&u64::from(unit).to_be_bytes());
    Key::new(&key).expect("nine bytes are a key")
}

fn unit_of(key: &Key) -> Option<u32> {
    let (&prefix, number) = key.as_bytes().split_first()?;
    let number = u64::from_be_bytes(number.try_into().ok()?);
    if prefix == CLAIM_PREFIX { u32::try_from(number).ok() } else { None }
}

fn lock_key() -> Key {
    Key::new(&[LOCK_PREFIX]).expect("one byte is a key")
}

pub(crate) fn claim_value(object: ObjectId, entry_key: &Key) -> [u8; CLAIM_BYTES] {
    let mut value = [0; CLAIM_BYTES];
    value[..12].copy_from_slice(&object.0);
    value[12..].copy_from_slice(entry_key.padded());
    value
}

fn parse_claim(value: &[u8]) -> Result<(ObjectId, Key), &'static str> {
    let (object, key) = value.split_at_checked(12).ok_or("too short")?;
    let object = object.try_into().map_err(|_| "too short")?;
    if key.len() != CLAIM_BYTES - 12 {
        return Err("wrong length");
    }
    Ok((ObjectId(object), Key::new(key).map_err(|_| "wrong length")?))
}

/// Returns the first free unit from `from` on, or else from the beginning.
fn next_free(taken: &BTreeSet<u32>, from: u32, units: u32) -> Option<u32> {
    let free = |unit: &u32| !taken.contains(unit);
    (from..units).find(free).or_else(|| (0..from.min(units)).find(free))
}

fn start_of_largest_gap(taken: &BTreeSet<u32>, units: u32) -> u32 {
    let mut best = (0, 0);
    let mut start = 0;
    for &end in taken.iter().chain([&units]) {
        if end > start && end - start > best.0 {
            best = (end - start, start);
        }
        start = end.saturating_add(1);
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_claims_round_trip() {
        for unit in [0, 1, 255, u32::MAX] {
            assert_eq!(unit_of(&unit_key(unit)), Some(unit));
        }
        assert!(unit_key(1) < unit_key(256) && unit_key(256) < unit_key(u32::MAX));
        let key = catalogue::key("x");
        let value = claim_value(ObjectId([9; 12]), &key);
        assert_eq!(parse_claim(&value), Ok((ObjectId([9; 12]), key)));
        for length in 0..CLAIM_BYTES {
            assert!(parse_claim(&value[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn units_are_claimed_where_there_is_most_room_in_a_row() {
        let taken = BTreeSet::from([0, 3, 4, 9]);
        assert_eq!(start_of_largest_gap(&taken, 12), 5);
        assert_eq!(start_of_largest_gap(&taken, 20), 10);
        assert_eq!(start_of_largest_gap(&BTreeSet::new(), 20), 0);
        assert_eq!(start_of_largest_gap(&BTreeSet::from([0, 1]), 2), 0);
        assert_eq!(next_free(&taken, 9, 12), Some(10));
        assert_eq!(next_free(&BTreeSet::from([2, 3]), 2, 4), Some(0));
        assert_eq!(next_free(&BTreeSet::from([0, 1]), 0, 2), None);
        assert_eq!(next_free(&BTreeSet::new(), 0, 0), None);
    }
}
