//! The catalogue: one small entry per object on every drive.
//!
//! A writer writes an entry to every drive that is up, and has succeeded when a majority holds
//! it; a reader asks every drive that is up, needs answers of a majority, and believes the entry
//! with the highest epoch. Any two majorities share a drive, so a reader misses no completed
//! write.
//!
//! What is guarded, and what is not. The first entry of a name is stored only if there is none,
//! by the drive itself: of two writers at most one gets any given drive. Every later entry is
//! compared before it is written: a writer that finds a higher epoch, or another writer's entry
//! at its own, gives up with [`Error::Overtaken`]. Comparing and writing are two commands, so two
//! writers that both compare before either writes are not told apart by the drives; the later one
//! wins, and the other finds out at its next comparison, before it seals, unless the race is at
//! the sealing itself.
//!
//! Never: chunks. Invariant: a name's epoch only grows.

mod entry;
mod wire;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, spawn};
use std::rc::Rc;

use crate::array::{Array, Drive};
use crate::object::Error;

pub use entry::{
    DIMENSIONS_MAX, Entry, Extents, KEY_PREFIX, Malformed, NAME_BYTES_MAX, ObjectId, Placement,
    State, key,
};

/// Size first asked for when an entry is read, bytes; a longer one costs a second read.
const ENTRY_BYTES: u32 = 4096;

/// What the drives know of one name.
#[derive(Debug)]
pub struct Found {
    /// Answers by drive index; a drive that is down has none.
    pub answers: Vec<(usize, Option<Entry>)>,
}

impl Found {
    /// The entry with the highest epoch. Of two with the same epoch, the sealed one: the other
    /// is its own staged version, or an overtaken writer's.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        let entries = self.answers.iter().filter_map(|(_, entry)| entry.as_ref());
        entries.max_by_key(|entry| (entry.epoch, entry.state == State::Sealed))
    }
}

/// Asks every drive that is up for the entry under `key`.
///
/// # Errors
/// When fewer than a majority answer, or an entry is corrupt ([`Error::Corrupt`]).
pub async fn read(array: &Array, key: &Key, name: &str) -> Result<Found, Error> {
    array.require_majority()?;
    let answers: Vec<_> = array
        .drives()
        .map(|drive| {
            let (drive, key, name) = (Rc::clone(drive), *key, name.to_owned());
            spawn(Class::Foreground, async move {
                let entry = read_one(&drive, &key, &name).await;
                (drive, entry)
            })
        })
        .collect();
    let mut found = Found { answers: Vec::new() };
    let mut failed = None;
    for answer in answers {
        match answer.await {
            (drive, Ok(entry)) => found.answers.push((drive.index, entry)),
            (_, Err(corrupt @ Error::Corrupt { .. })) => return Err(corrupt),
            (_, Err(error)) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if found.answers.len() < array.majority() => Err(error),
        _ => Ok(found),
    }
}

/// The entry under `key` on one drive.
///
/// # Errors
/// [`Error::Corrupt`], or a failed command.
pub async fn read_one(drive: &Drive, key: &Key, name: &str) -> Result<Option<Entry>, Error> {
    let corrupt =
        |why: String| Error::Corrupt { drive: drive.name.clone(), object: name.to_owned(), why };
    let value = match drive.objects.retrieve(key, ENTRY_BYTES).await {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(None),
        Err(error) if error.status() == Some(Status::UNRECOVERED_ERROR) => {
            return Err(corrupt(format!("the drive says: {error}")));
        }
        Err(error) => return Err(Error::command(drive, error)),
    };
    let entry = Entry::parse(&value).map_err(|malformed| corrupt(malformed.to_string()))?;
    if entry::key(&entry.name) != *key {
        return Err(corrupt("it stands under another name's key".to_owned()));
    }
    Ok(Some(entry))
}

/// Writes `entry` to every drive that is up, after comparing with `found`, what those drives held.
/// Gives warnings about drives that failed although a majority did not.
///
/// # Errors
/// [`Error::Overtaken`] when a newer writer was found, else as [`read`].
pub async fn write(array: &Array, entry: &Entry, found: &Found) -> Result<Vec<String>, Error> {
    let overtaken = || Error::Overtaken { name: entry.name.clone() };
    let newer = |other: &Entry| {
        other.epoch > entry.epoch || other.epoch == entry.epoch && other.writer != entry.writer
    };
    if found.answers.iter().filter_map(|(_, other)| other.as_ref()).any(newer) {
        return Err(overtaken());
    }
    let (key, data) = (entry::key(&entry.name), entry.encode());
    let writes: Vec<_> = array
        .drives()
        .map(|drive| {
            let fresh = found.answers.iter().any(|(i, e)| *i == drive.index && e.is_none());
            let options = if fresh { STORE_IF_ABSENT } else { 0 };
            let (drive, value) = (Rc::clone(drive), vec![Buffer::from_slice(&data)]);
            spawn(Class::Foreground, async move {
                let stored = drive.objects.store(&key, value, options).await;
                stored.map_err(|error| (Rc::clone(&drive), error))
            })
        })
        .collect();
    let (mut acknowledged, mut failures) = (0, Vec::new());
    for write in writes {
        match write.await {
            Ok(()) => acknowledged += 1,
            Err((_, error)) if error.status() == Some(Status::KEY_EXISTS) => {
                return Err(overtaken());
            }
            Err((drive, error)) => failures.push(Error::command(&drive, error)),
        }
    }
    if acknowledged >= array.majority() {
        return Ok(failures.iter().map(ToString::to_string).collect());
    }
    match failures.into_iter().next() {
        Some(error) => Err(error),
        None => Err(array.require_majority().expect_err("fewer drives than a majority").into()),
    }
}

/// Checks that a majority of the drives holds this writer's entry, and none a newer one.
///
/// # Errors
/// [`Error::Overtaken`], else as [`read`].
pub async fn confirm(array: &Array, entry: &Entry) -> Result<Found, Error> {
    let found = read(array, &entry::key(&entry.name), &entry.name).await?;
    let mine = |other: &Entry| other.writer == entry.writer && other.epoch == entry.epoch;
    let entries = || found.answers.iter().filter_map(|(_, other)| other.as_ref());
    let held = entries().filter(|other| mine(other)).count();
    let newer = entries().any(|other| other.epoch > entry.epoch);
    if newer || held < array.majority() {
        return Err(Error::Overtaken { name: entry.name.clone() });
    }
    Ok(found)
}

/// Catalogue keys on `drive`, in order.
///
/// # Errors
/// A failed command.
pub async fn keys(drive: &Drive) -> Result<Vec<Key>, Error> {
    let mut first = [0; 16];
    first[0] = KEY_PREFIX;
    keys_with_prefix(drive, &[KEY_PREFIX], &first).await
}

/// Keys of the objects' namespace that are as long as `first`, not before it, and begin with
/// `prefix`. List orders keys by length, then by bytes, so they stand together.
///
/// # Errors
/// A failed command.
pub async fn keys_with_prefix(
    drive: &Drive,
    prefix: &[u8],
    first: &[u8],
) -> Result<Vec<Key>, Error> {
    let mut keys: Vec<Key> = Vec::new();
    let start = Key::new(first).expect("prefixes of this crate make keys of 9 or 16 bytes");
    loop {
        let from = keys.last().unwrap_or(&start);
        let listed = drive.objects.list(Some(from), LIST_BYTES).await;
        let listed = listed.map_err(|error| Error::command(drive, error))?;
        let after = keys.last().copied();
        let mut grown = false;
        for key in listed {
            if key < start || after.is_some_and(|after| key <= after) {
                continue;
            }
            let bytes = key.as_bytes();
            if bytes.len() != first.len() || !bytes.starts_with(prefix) {
                return Ok(keys);
            }
            keys.push(key);
            grown = true;
        }
        if !grown {
            return Ok(keys);
        }
    }
}

/// Buffer of one List command, bytes: about 3,000 keys.
const LIST_BYTES: u32 = 64 << 10;

#[cfg(test)]
mod tests {
    use csd_kernels::ElementType;

    use super::*;

    fn entry(epoch: u64, state: State) -> Entry {
        Entry {
            name: "x".to_owned(),
            id: ObjectId([0x80; 12]),
            writer: [0; 16],
            epoch,
            state,
            element: ElementType::I32,
            shape: vec![0],
            chunk_bytes: 4096,
            bytes: 0,
            offset: 0,
            parts: None,
            members: vec![0],
            placement: Placement::Kv,
            digest: [0; 32],
        }
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
            let found = Found { answers: answers.enumerate().collect() };
            let found = found.newest().map(|entry| (entry.epoch, entry.state));
            assert_eq!(found, newest);
        }
    }
}
