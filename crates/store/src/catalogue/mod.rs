//! The catalogue: one small entry per object on every drive.
//!
//! A write sends an entry to every drive that is up, and succeeds when a majority holds it. A read
//! asks every drive that is up, needs answers of a majority, and returns the entry with the highest
//! epoch. Any two majorities share a drive, so a read misses no completed write.
//!
//! Every change of a name (begun, sealed, removed) is an entry of a higher epoch, and a writer
//! writes an entry only after it has won that epoch (`claim`). So of two writers at most one
//! changes the version that both have read; the other one gets [`Error::Overtaken`].
//!
//! Not guaranteed: drives store an entry by a command that they cannot refuse because of its epoch.
//! A writer that stalls for seconds between its last read of the catalogue (`write`) and that
//! command is taken for interrupted; if others then write later epochs before it continues, it
//! overwrites them with the older entry on the drives that it reaches. A refusal by drives would
//! belong into `put_down`.
//!
//! Does not handle chunks. Invariant: a name's epoch only grows.

mod claim;
mod entry;
pub mod grow;
mod wire;

use std::time::Duration;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, sleep};

use crate::array::{Array, Drive};
use crate::error::Error;
use claim::{Claimed, Claims, Standing, on_all};

pub use claim::{CLAIM_PREFIX, claim_key, release_passed};
pub use entry::{
    Entry, Extents, KEY_PREFIX, Malformed, NAME_BYTES_MAX, ObjectId, On, Placement, State, key,
};

/// Read size for an entry, bytes; a longer entry costs a second read.
const ENTRY_BYTES: u32 = 4096;

/// Pause of a writer before it looks again at an epoch that another writer has claimed and not
/// written yet.
const PAUSE: Duration = Duration::from_millis(20);

/// Answers of the drives about one name.
#[derive(Clone, Debug)]
pub struct Found {
    /// Answers by drive index; there is none of a drive that is down.
    pub answers: Vec<(usize, Option<Entry>)>,
}

impl Found {
    /// Returns the entry with the highest epoch. Of two with the same epoch, it returns the sealed
    /// one: the other is its own staged version, or that of an overtaken writer.
    #[must_use]
    pub fn newest(&self) -> Option<&Entry> {
        let entries = self.answers.iter().filter_map(|(_, entry)| entry.as_ref());
        entries.max_by_key(|entry| (entry.epoch, entry.state == State::Sealed))
    }
}

/// Reads the entry under `key` from every drive that is up.
///
/// # Errors
/// When fewer than a majority answer, or an entry is corrupt ([`Error::Corrupt`]).
pub async fn read(array: &Array, key: &Key, name: &str) -> Result<Found, Error> {
    array.require_majority()?;
    let (key, asked) = (*key, name.to_owned());
    let answers = on_all(array, move |drive| {
        let name = asked.clone();
        async move { read_one(&drive, &key, &name).await }
    });
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

/// Returns the entry under `key` on one drive.
///
/// # Errors
/// [`Error::Corrupt`], or a failed command.
pub async fn read_one(drive: &Drive, key: &Key, name: &str) -> Result<Option<Entry>, Error> {
    let entry = read_value(drive, key, name).await?;
    if entry.as_ref().is_some_and(|entry| entry::key(&entry.name) != *key) {
        let why = "it stands under another name's key".to_owned();
        return Err(Error::Corrupt { drive: drive.name.clone(), object: name.to_owned(), why });
    }
    Ok(entry)
}

/// Returns the entry stored as the value of `key`, which may be of any kind.
async fn read_value(drive: &Drive, key: &Key, name: &str) -> Result<Option<Entry>, Error> {
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
    Entry::parse(&value).map(Some).map_err(|malformed| corrupt(malformed.to_string()))
}

/// State of a name that a writer builds on.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Answers of the drives.
    pub found: Found,
    epoch: u64,
    contested: bool,
}

impl Ground {
    /// Returns the epoch of the newest entry; 0 when there is none.
    fn base(&self) -> u64 {
        self.found.newest().map_or(0, |entry| entry.epoch)
    }

    /// Returns true if the newest entry is by the writer of `entry`.
    #[must_use]
    pub fn is_of(&self, entry: &Entry) -> bool {
        self.found.newest().is_some_and(|newest| newest.writer == entry.writer)
    }
}

/// Reads the state of `name`, for a writer. Waits for another writer that has claimed the next
/// epoch; if that writer was interrupted after it had won, writes its entry.
///
/// # Errors
/// As [`read`].
pub async fn settle(array: &Array, name: &str) -> Result<Ground, Error> {
    let (key, mut waited, mut epoch) = (entry::key(name), Duration::ZERO, 0);
    loop {
        let found = read(array, &key, name).await?;
        let mut ground = Ground { found, epoch: 0, contested: false };
        epoch = epoch.max(ground.base() + 1);
        ground.epoch = epoch;
        match Claims::read(array, name, epoch).await?.standing() {
            Standing::Free => return Ok(ground),
            Standing::Dead => epoch += 1,
            Standing::Won(_) | Standing::Open if waited < array.patience() => {
                waited += PAUSE;
                sleep(PAUSE).await;
            }
            Standing::Won(entry) => {
                put_down(array, &entry).await?;
                waited = Duration::ZERO;
            }
            Standing::Open => {
                ground.contested = true;
                return Ok(ground);
            }
        }
    }
}

/// Makes `entry` the newest of its name, whose state is `ground`, and sets its epoch. Returns
/// warnings about drives that failed although a majority succeeded.
///
/// # Errors
/// [`Error::Overtaken`] when another writer changed the name in the meantime, [`Error::Undecided`]
/// when only drives that are down can tell, or the errors of [`read`].
pub async fn write(
    array: &Array,
    entry: &mut Entry,
    ground: &Ground,
) -> Result<Vec<String>, Error> {
    let overtaken = || Error::Overtaken { name: entry.name.clone() };
    let (base, mut ground) = (ground.base(), ground.clone());
    let mut claimed = entry.clone();
    loop {
        claimed.epoch = ground.epoch;
        if claim::claim(array, &claimed, ground.contested).await? == Claimed::Won {
            break;
        }
        ground = settle(array, &entry.name).await?;
        if ground.base() != base {
            return Err(overtaken());
        }
    }
    // Claims are deleted after a later entry is written: in that case this epoch was won too late.
    let found = read(array, &entry::key(&entry.name), &entry.name).await?;
    let newest = found.newest().filter(|newest| newest.epoch >= claimed.epoch);
    if newest.is_some_and(|newest| *newest != claimed) {
        claim::release(array, &entry.name, claimed.epoch..=claimed.epoch).await;
        return Err(overtaken());
    }
    *entry = claimed;
    let warnings = put_down(array, entry).await?;
    claim::release(array, &entry.name, base..=entry.epoch).await;
    Ok(warnings)
}

/// Stores an entry that has won its epoch on every drive that is up.
async fn put_down(array: &Array, entry: &Entry) -> Result<Vec<String>, Error> {
    let (key, data) = (entry::key(&entry.name), entry.encode());
    let stores = on_all(array, move |drive| {
        let value = vec![Buffer::from_slice(&data)];
        async move { drive.objects.store(&key, value, 0).await }
    });
    let (mut acknowledged, mut failures) = (0, Vec::new());
    for store in stores {
        match store.await {
            (_, Ok(())) => acknowledged += 1,
            (drive, Err(error)) => failures.push(Error::command(&drive, error)),
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

/// Returns the catalogue keys on `drive`, in order.
///
/// # Errors
/// A failed command.
pub async fn keys(drive: &Drive) -> Result<Vec<Key>, Error> {
    let mut first = [0; 16];
    first[0] = KEY_PREFIX;
    keys_with_prefix(drive, &[KEY_PREFIX], &first).await
}

/// Returns the keys of the objects' namespace that are as long as `first`, not less than it, and
/// begin with `prefix`. List orders keys by length, then by bytes, so they are contiguous.
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
