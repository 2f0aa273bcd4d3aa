//! Claims: which of several writers gets the next epoch of a name.
//!
//! Who wants to write the entry of an epoch first stores that entry, if there is none, under the
//! epoch's claim key on the drives. It has the epoch once a majority holds its claim: two
//! majorities share a drive, and a drive keeps the first claim. A claim is deleted only after a
//! majority holds an entry of its epoch or a later one in the catalogue, so whoever has claimed an
//! epoch looks at the catalogue again before it writes.
//!
//! A claim is the entry itself: if its writer was cut off behind it, the next writer of the name
//! writes that entry for it. An epoch that nobody has, and nobody can get any more, is passed over.
//!
//! Does not write the catalogue. Invariant: at most one entry ever has an epoch of a name. Time
//! decides only how long a writer waits for another one, never who has an epoch.

use std::rc::Rc;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::entry::{self, Entry};
use super::{ENTRY_BYTES, read_value};
use crate::array::{Array, Drive};
use crate::error::Error;

/// First byte of a claim's key.
pub const CLAIM_PREFIX: u8 = 0x05;

/// The key under which drives keep the claim of an epoch of `name`.
#[must_use]
pub fn claim_key(name: &str, epoch: u64) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry::key(name).as_bytes()).update(&epoch.to_le_bytes());
    let mut key = [CLAIM_PREFIX; 16];
    key[1..].copy_from_slice(&hasher.finalize().as_bytes()[..15]);
    Key::new(&key).expect("sixteen bytes are a key")
}

/// Whose an epoch is, as far as the drives that answer can tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No drive holds a claim.
    Free,
    /// A majority holds this entry's claim.
    Won(Box<Entry>),
    /// Nobody has it, and nobody can get it.
    Dead,
    /// Somebody has claimed it, and may have it or get it yet.
    Open,
}

/// The claims of one epoch of a name.
#[derive(Debug)]
pub(super) struct Claims {
    // What each drive that answered holds.
    held: Vec<Option<Entry>>,
    drives: usize,
}

impl Claims {
    /// Asks every drive that is up.
    ///
    /// # Errors
    /// As [`super::read`].
    pub(super) async fn read(array: &Array, name: &str, epoch: u64) -> Result<Self, Error> {
        let key = claim_key(name, epoch);
        let (mut held, mut failed) = (Vec::new(), None);
        let answers = on_all(array, move |drive| async move { read_one(&drive, &key).await });
        for answer in answers {
            match answer.await {
                (_, Ok(claim)) => held.push(claim),
                (_, Err(corrupt @ Error::Corrupt { .. })) => return Err(corrupt),
                (_, Err(error)) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if held.len() < array.majority() => Err(error),
            _ => Ok(Self { held, drives: array.slots().len() }),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let claims: Vec<&Entry> = self.held.iter().flatten().collect();
        let votes = |of: &Entry| claims.iter().filter(|claim| **claim == of).count();
        let Some(most) = claims.iter().copied().max_by_key(|claim| votes(claim)) else {
            return Standing::Free;
        };
        let majority = self.drives / 2 + 1;
        // Drives without a claim may take one, and those that do not answer may hold any.
        let unknown = self.drives - claims.len();
        match votes(most) {
            own if own >= majority => Standing::Won(Box::new(most.clone())),
            own if own + unknown < majority => Standing::Dead,
            _ => Standing::Open,
        }
    }

    fn of_all_drives(&self) -> bool {
        self.held.len() == self.drives
    }

    /// Whether of the writers that have claimed it `entry`'s is the one that goes on: of two that
    /// share the drives evenly, one must.
    fn prefers(&self, entry: &Entry) -> bool {
        self.held.iter().flatten().all(|claim| claim.writer <= entry.writer)
    }
}

/// The keys of claims on one drive.
pub(super) async fn keys(drive: &Drive) -> Result<Vec<Key>, Error> {
    let mut first = [0; 16];
    first[0] = CLAIM_PREFIX;
    super::keys_with_prefix(drive, &[CLAIM_PREFIX], &first).await
}

/// The claim under `key` on one drive.
pub(super) async fn read_one(drive: &Drive, key: &Key) -> Result<Option<Entry>, Error> {
    let name = "of a claim";
    let Some(claim) = read_value(drive, key, name).await? else { return Ok(None) };
    if claim_key(&claim.name, claim.epoch) != *key {
        let why = "a claim stands under another's key".to_owned();
        return Err(Error::Corrupt { drive: drive.name.clone(), object: claim.name, why });
    }
    Ok(Some(claim))
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// The epoch is the entry's.
    Won,
    /// It is not: the catalogue tells whether another writer is beyond it, or it is nobody's.
    NotWon,
}

/// Claims `entry`'s epoch for it. In a `contested` epoch there are claims that were there before
/// and did not become a majority's: their writer was probably cut off.
///
/// # Errors
/// [`Error::Overtaken`] when another writer has it, or has the better right to try again;
/// [`Error::Undecided`] when only drives that are down can tell; what the drives answered.
pub(super) async fn claim(array: &Array, entry: &Entry, contested: bool) -> Result<Claimed, Error> {
    array.require_majority()?;
    let overtaken = || Error::Overtaken { name: entry.name.clone() };
    let (key, value) = (claim_key(&entry.name, entry.epoch), entry.encode());
    let (mut own, mut failures) = (0, Vec::new());
    let mut drives = array.drives().cloned();
    // One drive first: of two writers that begin at the same time, the one that comes second there
    // gives up before it has taken anything, and the other gets a majority.
    for drive in drives.by_ref() {
        match store_one(&drive, &key, &value).await {
            Ok(true) => {
                own = 1;
                break;
            }
            Ok(false) if !contested => return Err(overtaken()),
            Ok(false) => {}
            Err(error) => failures.push(error),
        }
    }
    let others: Vec<JoinHandle<_>> = drives
        .map(|drive| {
            let value = value.clone();
            spawn(Class::Foreground, async move { store_one(&drive, &key, &value).await })
        })
        .collect();
    for other in others {
        match other.await {
            Ok(stored) => own += usize::from(stored),
            Err(error) => failures.push(error),
        }
    }
    if own >= array.majority() {
        return Ok(Claimed::Won);
    }
    let claims = Claims::read(array, &entry.name, entry.epoch).await?;
    match claims.standing() {
        Standing::Won(winner) if *winner == *entry => Ok(Claimed::Won),
        Standing::Won(_) => Err(overtaken()),
        Standing::Dead if contested || claims.prefers(entry) => Ok(Claimed::NotWon),
        Standing::Dead => Err(overtaken()),
        // Every drive held a claim when this one was stored there or refused. Those that are gone
        // were deleted behind an entry of this epoch or a later one.
        Standing::Free | Standing::Open if failures.is_empty() && claims.of_all_drives() => {
            Ok(Claimed::NotWon)
        }
        // A drive that failed otherwise than for want of room may have stored the claim.
        Standing::Free | Standing::Open => {
            let at = failures.iter().position(|error| !matches!(error, Error::Full { .. }));
            match failures.is_empty() {
                true => Err(Error::Undecided { name: entry.name.clone() }),
                false => Err(failures.swap_remove(at.unwrap_or(0))),
            }
        }
    }
}

/// Stores a claim if there is none; whether the drive holds it now.
async fn store_one(drive: &Drive, key: &Key, value: &[u8]) -> Result<bool, Error> {
    let stored = drive.objects.store(key, vec![Buffer::from_slice(value)], STORE_IF_ABSENT).await;
    match stored {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::KEY_EXISTS) => {
            // It may be our own, of an earlier try.
            let held = drive.objects.retrieve(key, ENTRY_BYTES).await;
            let held = held.map_err(|error| Error::command(drive, error))?;
            Ok(held.is_some_and(|held| held[..] == *value))
        }
        Err(error) => Err(Error::command(drive, error)),
    }
}

/// Deletes the claims of these epochs, once a majority holds an entry of the last of them. What
/// cannot be deleted now is found by `object::reclaim`.
pub(super) async fn release(array: &Array, name: &str, epochs: std::ops::RangeInclusive<u64>) {
    let keys: Vec<Key> = epochs.map(|epoch| claim_key(name, epoch)).collect();
    let deletes = on_all(array, move |drive: Rc<Drive>| {
        let keys = keys.clone();
        async move {
            for key in &keys {
                let _kept = drive.objects.delete(key).await;
            }
        }
    });
    for delete in deletes {
        delete.await;
    }
}

/// Deletes claims of epochs that the catalogue is beyond, on the drives that are up; how many.
///
/// # Errors
/// As [`super::read`], or a corrupt claim.
pub async fn release_passed(array: &Array) -> Result<usize, Error> {
    let mut released = 0;
    for drive in array.drives() {
        for key in keys(drive).await? {
            let Some(claim) = read_one(drive, &key).await? else { continue };
            let found = super::read(array, &entry::key(&claim.name), &claim.name).await?;
            if found.newest().is_some_and(|newest| newest.epoch >= claim.epoch) {
                let deleted = drive.objects.delete(&key).await;
                deleted.map_err(|error| Error::command(drive, error))?;
                released += 1;
            }
        }
    }
    Ok(released)
}

/// Runs `ask` for every drive that is up, all at once.
pub(super) fn on_all<T: 'static, F: Future<Output = T> + 'static>(
    array: &Array,
    ask: impl Fn(Rc<Drive>) -> F,
) -> Vec<JoinHandle<(Rc<Drive>, T)>> {
    array
        .drives()
        .map(|drive| {
            let (drive, answer) = (Rc::clone(drive), ask(Rc::clone(drive)));
            spawn(Class::Foreground, async move { (drive, answer.await) })
        })
        .collect()
}
