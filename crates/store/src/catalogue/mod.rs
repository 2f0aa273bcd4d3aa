//! The catalogue: one small entry per object on every drive.
//!
//! Quorum reads and writes with versions, as in weighted voting (Gifford 1979) with weights 0 and
//! 1, over drives that only store (Attiya, Bar-Noy, Dolev 1995), but no read writes back. A write
//! sends an entry to every drive that votes, and succeeds when a write quorum holds it. A read asks
//! every drive that votes, needs sound answers of a read quorum, and returns the entry with the
//! highest epoch. The two quorums share a drive ([`Quorum`](crate::array::Quorum)), so a
//! read misses no completed write. A damaged copy is no answer, and fails no command as long as
//! enough others are sound.
//!
//! Every change of a name (begun, sealed, removed) is an entry of a higher epoch, and a writer
//! writes an entry only after it has won that epoch (`claim`). So of two writers at most one
//! changes the version that both have read; the other one gets
//! [`NameError::Overtaken`](crate::error::NameError::Overtaken).
//!
//! The drives themselves refuse an entry whose epoch is not higher than that of their own (Store
//! Newer), however late it comes. An acknowledgement counts only if its drive answered another
//! command after the last one had come, on the same connection: then all of them were in force at
//! one moment, and a drive that forgets later finds the entry with the others (`rebuild`).
//!
//! A name whose object survives the loss of more drives than a majority's entry does is held by
//! more drives, from then on ([`Entry::losses`]). So its newest entry among few answers tells how
//! many answers suffice: a later entry would be on one of these drives.
//!
//! Does not handle chunks. Invariants: a name's epoch only grows, on every drive; a staged entry
//! never follows a sealed one, so it hides none; the losses that a name survives never fall.

mod accept;
mod change;
mod claim;
mod copy;
mod entry;
mod folders;
pub mod grow;
mod holders;
mod keys;
mod mend;
mod mend_claim;
mod on_all;
mod put_back;
pub mod rebuild;
pub mod shrink;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::array::{Array, Drive, DriveIndex};
use crate::error::{DriveError, Error};
use copy::EntryCopy;
use on_all::on_all;

pub use entry::are_protected;
pub(crate) use holders::needed as holders_needed;

pub use accept::{accept, damaged_entries, forget, write_over};
pub use change::{Ground, settle, write, write_after};
pub use claim::{CLAIM_PREFIX, claim_key, release_passed};
pub(crate) use claim::{keys as claim_keys, read_one as read_claim};
pub use copy::{DamagedCopy, in_words, key_in_words, key_of_words, look};
pub use entry::{
    Entry, Extents, KEY_PREFIX, Malformed, Missing, NAME_BYTES_MAX, ObjectId, On, PIECES_MAX,
    Parity, Placement, Protection, State, key,
};
pub use folders::{Below, below, read_each};
pub use keys::{keys, keys_of_all, keys_with_prefix};
pub use mend::mend;
pub use mend_claim::mend_claim;

/// Read size for an entry, bytes; a longer entry costs a second read.
const ENTRY_BYTES: u32 = 4096;

/// Answers of the drives about one name.
#[derive(Clone, Debug)]
pub struct Found {
    /// Answers by drive index; there is none of a drive that is down, does not vote, or holds a
    /// damaged copy.
    pub answers: Vec<(DriveIndex, Option<Entry>)>,
    /// Damaged copies, and those that were set aside.
    pub damaged: Vec<DamagedCopy>,
}

impl Found {
    /// Returns the entry with the highest epoch. Of two with the same epoch, it returns the sealed
    /// one: the other is its own staged version, or that of an overtaken writer.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        let entries = self.answers.iter().filter_map(|(_, entry)| entry.as_ref());
        entries.max_by_key(|entry| (entry.epoch, entry.state == State::Sealed))
    }

    /// Returns the drives that are alive, by index: they answered, if only by a damaged copy.
    fn alive(&self) -> impl Iterator<Item = DriveIndex> {
        self.answers
            .iter()
            .map(|(index, _)| *index)
            .chain(self.damaged.iter().map(|copy| copy.drive))
    }
}

/// Reads the entry under `key` from every drive that votes. Damaged copies are noted in the array
/// ([`Array::damage_met`]).
///
/// # Errors
/// When fewer than a read quorum give a sound answer:
/// [`NameError::Damaged`](crate::error::NameError::Damaged) if damaged copies are the reason, else
/// the error of one of the others.
pub async fn read(array: &Array, key: &Key, name: &str) -> Result<Found, Error> {
    array.require(1)?;
    judge(array, key, name, look(array, key).await)
}

/// Returns answers that suffice for a reader, and notes the damaged copies among them.
fn judge(
    array: &Array,
    key: &Key,
    name: &str,
    (found, failed): (Found, Option<Error>),
) -> Result<Found, Error> {
    let needed = found.needed(array);
    if found.answers.len() < needed {
        return Err(match failed {
            _ if found.alive().count() >= needed => found.too_few(array, key, name),
            Some(error) => error,
            None if !found.damaged.is_empty() => found.too_few(array, key, name),
            None => array.too_few(needed).into(),
        });
    }
    for copy in &found.damaged {
        array.note_damaged_copy(copy.drive, found.name().unwrap_or(name));
    }
    Ok(found)
}

/// Returns the entry under `key` on one drive.
///
/// # Errors
/// [`DriveError::Corrupt`], or a failed command.
pub async fn read_one(drive: &Drive, key: &Key, name: &str) -> Result<Option<Entry>, Error> {
    match copy::read(drive, key).await? {
        EntryCopy::None => Ok(None),
        EntryCopy::Sound(entry) => Ok(Some(*entry)),
        EntryCopy::Damaged(copy::Damaged { why, .. }) => {
            let (drive, object) = (drive.name.clone(), name.to_owned());
            Err(Error::Drive(DriveError::Corrupt { drive, object, why }))
        }
    }
}

/// Returns the entry stored as the value of `key`, which may be of any kind.
async fn read_value(drive: &Drive, key: &Key, name: &str) -> Result<Option<Entry>, Error> {
    let corrupt = |why: String| {
        Error::Drive(DriveError::Corrupt {
            drive: drive.name.clone(),
            object: name.to_owned(),
            why,
        })
    };
    let value = match drive.objects.retrieve(key, ENTRY_BYTES).await {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(None),
        Err(error) if error.status() == Some(Status::UNRECOVERED_ERROR) => {
            return Err(corrupt(format!("the drive says: {error}")));
        }
        Err(error) => return Err(Error::command(drive, error)),
    };
    Entry::parse(&value).map(Some).map_err(|malformed| corrupt(malformed.to_string()))
}

/// Stores an entry on one drive. Returns false if the drive holds a later one, or another one of
/// the same epoch.
///
/// # Errors
/// A failed command.
pub(crate) async fn store_entry(drive: &Drive, entry: &Entry, options: u8) -> Result<bool, Error> {
    let value = vec![Buffer::from_slice(&entry.encode())];
    match drive.objects.store(&entry::key(&entry.name), value, options).await {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::NOT_NEWER) => Ok(false),
        Err(error) => Err(Error::command(drive, error)),
    }
}

#[cfg(test)]
mod tests {
    use csd_kernels::ElementType;

    use super::*;

    pub(super) fn entry(epoch: u64, state: State) -> Entry {
        let empty = Entry::empty("x", ObjectId([0x80; 12]), state);
        Entry { epoch, element: ElementType::I32, shape: vec![0], ..empty }
    }

    #[test]
    fn the_highest_epoch_wins_and_sealed_beats_staged_of_the_same() {
        use State::{Deleted, Sealed, Staged};
        for (states, newest) in [
            (vec![Some((1, Staged)), Some((1, Sealed)), None], Some((1, Sealed))),
            (vec![Some((1, Sealed)), Some((1, Staged))], Some((1, Sealed))),
            (vec![Some((2, Deleted)), Some((1, Sealed)), Some((1, Sealed))], Some((2, Deleted))),
            (vec![Some((3, Staged)), Some((2, Deleted))], Some((3, Staged))),
            (vec![None, None], None),
        ] {
            let answers = states.into_iter().map(|s| s.map(|(epoch, state)| entry(epoch, state)));
            let found = Found { answers: DriveIndex::each(answers).collect(), damaged: Vec::new() };
            let found = found.newest().map(|entry| (entry.epoch, entry.state));
            assert_eq!(found, newest);
        }
    }
}
