//! Claims: the decision which of several writers gets the next epoch of a name.
//!
//! Each epoch is a consensus on one entry, by majorities of drives that cannot compute, as a ballot
//! of Paxos is (Lamport, "The part-time parliament", 1998). It is simpler: a drive votes once in an
//! epoch, for the first claim that it gets, and an epoch whose votes are split is given up.
//!
//! Before a writer writes the entry of an epoch, it stores that entry under the epoch's claim key
//! on the drives, if the key is unused. It has won the epoch once a majority holds its claim: two
//! majorities share a drive, and a drive keeps the first claim. A claim is deleted only after a
//! majority holds an entry of its epoch or a later one in the catalogue, so a writer that has won
//! an epoch reads the catalogue again before it writes.
//!
//! A claim contains the entry itself: if its writer was interrupted after winning, the next writer
//! of the name writes that entry. An epoch that no writer has won, or can win any more, is skipped.
//!
//! Does not write the catalogue. Invariant: at most one entry ever has an epoch of a name. Time
//! affects only how long a writer waits for another one, not which writer wins an epoch.

use std::collections::BTreeSet;
use std::rc::Rc;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, JoinHandle, spawn};
use futures_util::future::join_all;

use super::entry::{self, Entry};
use super::on_all::on_all;
use super::{holders, read_value};
use crate::array::{Array, Drive, DriveIndex};
use crate::error::Error;
use crate::error::{DriveError, NameError};

/// First byte of a claim's key.
pub const CLAIM_PREFIX: u8 = 0x05;

/// Returns the key under which drives keep the claim of an epoch of `name`.
#[must_use]
pub fn claim_key(name: &str, epoch: u64) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry::key(name).as_bytes()).update(&epoch.to_le_bytes());
    let mut key = [CLAIM_PREFIX; 16];
    key[1..].copy_from_slice(&hasher.finalize().as_bytes()[..15]);
    Key::new(&key).expect("sixteen bytes are a key")
}

/// Status of an epoch, as far as the drives that answer can tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No drive holds a claim.
    Free,
    /// A majority holds this entry's claim.
    Won(Box<Entry>),
    /// No writer has won it, and none can win it.
    Dead,
    /// A writer has claimed it, and may have won it or win it yet.
    Open,
}

/// The claims of one epoch of a name.
#[derive(Debug)]
pub(super) struct Claims {
    // Claim of each drive that answered, by index.
    held: Vec<(DriveIndex, Option<Entry>)>,
    // Drives whose claim is damaged: it may be any writer's.
    damaged: Vec<DriveIndex>,
    drives: usize,
}

impl Claims {
    /// Reads the claims of every drive that is up. A drive whose claim is damaged has answered.
    ///
    /// # Errors
    /// As [`super::read`], if no majority answers.
    pub(super) async fn read(array: &Array, name: &str, epoch: u64) -> Result<Self, Error> {
        let key = claim_key(name, epoch);
        let (mut held, mut damaged, mut failed) = (Vec::new(), Vec::new(), None);
        let answers = on_all(array, move |drive| async move { read_one(&drive, &key).await });
        for answer in answers {
            match answer.await {
                (drive, Ok(claim)) => held.push((drive.index, claim)),
                (drive, Err(Error::Drive(DriveError::Corrupt { .. }))) => damaged.push(drive.index),
                (_, Err(error)) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if held.len() + damaged.len() < array.quorum().majority() => Err(error),
            _ => Ok(Self { held, damaged, drives: array.size() }),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let claims: Vec<&Entry> = self.claims().collect();
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

    fn claims(&self) -> impl Iterator<Item = &Entry> {
        self.held.iter().filter_map(|(_, claim)| claim.as_ref())
    }

    /// Returns the drives that hold the claim of `entry`, by index.
    fn holders(&self, entry: &Entry) -> Vec<DriveIndex> {
        let own = self.held.iter().filter(|(_, claim)| claim.as_ref() == Some(entry));
        own.map(|(index, _)| *index).collect()
    }

    /// Returns the error of a name that no writer can change: all drives have answered, and only
    /// damaged claims could tell who has won the epoch, or so many are damaged that no writer can
    /// win it any more. `None` if there is no such claim.
    pub(super) fn hidden_by_damage(&self, array: &Array, name: &str) -> Option<Error> {
        let answered = self.held.len() + self.damaged.len();
        let is_stuck = match self.standing() {
            Standing::Open => true,
            Standing::Free => self.drives - self.damaged.len() <= self.drives / 2,
            Standing::Won(_) | Standing::Dead => false,
        };
        let is_hidden = !self.damaged.is_empty() && answered == self.drives && is_stuck;
        let of = |drive: &DriveIndex| array.slots()[*drive].name.clone();
        let drives = || self.damaged.iter().map(of).collect();
        is_hidden.then(|| {
            Error::Name(NameError::DamagedClaims { name: name.to_owned(), drives: drives() })
        })
    }

    fn of_all_drives(&self) -> bool {
        self.held.len() == self.drives
    }

    /// Returns true if no claim's writer has a higher identifier than that of `entry`. Of two
    /// writers that share the drives evenly, this one continues.
    fn prefers(&self, entry: &Entry) -> bool {
        self.claims().all(|claim| claim.writer <= entry.writer)
    }
}

/// Returns the keys of claims on one drive.
pub(crate) async fn keys(drive: &Drive) -> Result<Vec<Key>, Error> {
    let mut first = [0; 16];
    first[0] = CLAIM_PREFIX;
    super::keys::keys_with_prefix(drive, &[CLAIM_PREFIX], &first).await
}

/// Returns the claim under `key` on one drive.
pub(crate) async fn read_one(drive: &Drive, key: &Key) -> Result<Option<Entry>, Error> {
    let name = "of a claim";
    let Some(claim) = read_value(drive, key, name).await? else { return Ok(None) };
    if claim_key(&claim.name, claim.epoch) != *key {
        let why = "a claim stands under another's key".to_owned();
        return Err(Error::Drive(DriveError::Corrupt {
            drive: drive.name.clone(),
            object: claim.name,
            why,
        }));
    }
    Ok(Some(claim))
}

/// Result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// The entry has won the epoch: these drives, by index, hold its claim.
    Won(Vec<DriveIndex>),
    /// The entry has not won. The catalogue shows if another writer is further, or no writer can
    /// win the epoch.
    NotWon,
}

/// Claims an epoch for `entry`. A `contested` epoch already has claims without a majority, probably
/// of a writer that was interrupted.
///
/// # Errors
/// [`NameError::Overtaken`] when another writer has won, or has precedence to try again;
/// [`NameError::Undecided`] when only drives that are down can tell, [`NameError::DamagedClaims`]
/// when only damaged claims could; a drive's error.
pub(super) async fn claim(array: &Array, entry: &Entry, contested: bool) -> Result<Claimed, Error> {
    array.require_majority()?;
    let overtaken = || Error::Name(NameError::Overtaken { name: entry.name.clone() });
    let (key, value) = (claim_key(&entry.name, entry.epoch), entry.encode());
    let (mut own, mut failures) = (Vec::new(), Vec::new());
    let mut drives = array.voters().into_iter();
    // One drive first: of two writers that begin at the same time, the second one there gives up
    // before it has claimed anything, and the other gets a majority.
    for drive in drives.by_ref() {
        match store_one(&drive, &key, &value).await {
            Ok(true) => {
                own.push(drive.index);
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
            spawn(
                Class::Foreground,
                async move { (drive.index, store_one(&drive, &key, &value).await) },
            )
        })
        .collect();
    for other in others {
        match other.await {
            (index, Ok(true)) => own.push(index),
            (_, Ok(false)) => {}
            (_, Err(error)) => failures.push(error),
        }
    }
    if own.len() >= array.quorum().majority() {
        return Ok(Claimed::Won(own));
    }
    let claims = Claims::read(array, &entry.name, entry.epoch).await?;
    match claims.standing() {
        Standing::Won(winner) if *winner == *entry => Ok(Claimed::Won(claims.holders(entry))),
        Standing::Won(_) => Err(overtaken()),
        Standing::Dead if contested || claims.prefers(entry) => Ok(Claimed::NotWon),
        Standing::Dead => Err(overtaken()),
        // Every drive held a claim when this one was stored or refused. The missing ones were
        // deleted after an entry of this epoch or a later one was written.
        Standing::Free | Standing::Open if failures.is_empty() && claims.of_all_drives() => {
            Ok(Claimed::NotWon)
        }
        // A drive that failed, unless for lack of space, may have stored the claim.
        Standing::Free | Standing::Open => {
            if let Some(error) = claims.hidden_by_damage(array, &entry.name) {
                return Err(error);
            }
            let at = failures
                .iter()
                .position(|error| !matches!(error, Error::Drive(DriveError::Full { .. })));
            match failures.is_empty() {
                true => Err(Error::Name(NameError::Undecided { name: entry.name.clone() })),
                false => Err(failures.swap_remove(at.unwrap_or(0))),
            }
        }
    }
}

/// Stores a claim if the key is unused; returns true if the drive holds this claim now.
async fn store_one(drive: &Drive, key: &Key, value: &[u8]) -> Result<bool, Error> {
    let stored = drive.objects.store(key, vec![Buffer::from_slice(value)], STORE_IF_ABSENT).await;
    match stored {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::KEY_EXISTS) => {
            // It may be our own claim, from an earlier attempt.
            let held = read_one(drive, key).await?;
            Ok(held.is_some_and(|held| held.encode() == value))
        }
        Err(error) => Err(Error::command(drive, error)),
    }
}

/// Deletes the claims of these epochs, once a write quorum holds an entry of the last of them.
/// Returns the outcome of each drive. `object::reclaim` finds claims that cannot be deleted now.
pub(super) async fn release(
    array: &Array,
    name: &str,
    epochs: std::ops::RangeInclusive<u64>,
) -> Vec<(Rc<Drive>, Result<(), Error>)> {
    let keys: Vec<Key> = epochs.map(|epoch| claim_key(name, epoch)).collect();
    let deletes = on_all(array, move |drive: Rc<Drive>| {
        let keys = keys.clone();
        async move {
            let deletes = keys.iter().map(|key| drive.objects.delete(key));
            for deleted in join_all(deletes).await {
                deleted.map_err(|error| Error::command(&drive, error))?;
            }
            Ok(())
        }
    });
    let mut outcomes = Vec::with_capacity(deletes.len());
    for delete in deletes {
        outcomes.push(delete.await);
    }
    outcomes
}

/// Deletes claims of epochs that have passed, on the drives that are up; returns their number.
///
/// # Errors
/// As [`super::read`], or a corrupt claim.
pub async fn release_passed(array: &Array) -> Result<usize, Error> {
    let mut released = 0;
    for drive in array.drives() {
        for key in keys(drive).await? {
            let claim = match read_one(drive, &key).await {
                // A damaged claim is not known to have passed.
                Ok(None) | Err(Error::Drive(DriveError::Corrupt { .. })) => continue,
                Ok(Some(claim)) => claim,
                Err(error) => return Err(error),
            };
            if has_passed(array, &claim.name, claim.epoch).await? {
                let deleted = drive.objects.delete(&key).await;
                deleted.map_err(|error| Error::command(drive, error))?;
                released += 1;
            }
        }
    }
    Ok(released)
}

/// Returns true if a write quorum holds an entry of a claim's epoch or a later one. If fewer
/// drives hold one, the next writer may not see it, and would win the epoch again without claims.
pub(super) async fn has_passed(array: &Array, name: &str, epoch: u64) -> Result<bool, Error> {
    let mut before: Option<BTreeSet<DriveIndex>> = None;
    // A drive may forget before another one stores the entry. Those that answer twice, in one life,
    // held it at one moment.
    for _ in 0..2 {
        let found = match super::read(array, &entry::key(name), name).await {
            Err(Error::Name(NameError::Damaged { .. })) => return Ok(false),
            found => found?,
        };
        let Some(newest) = found.newest() else { return Ok(false) };
        let is_later = |held: &Entry| held.epoch >= epoch;
        let later = found.answers.iter().filter(|(_, held)| held.as_ref().is_some_and(is_later));
        let mut later: BTreeSet<DriveIndex> = later.map(|(index, _)| *index).collect();
        later.retain(|index| before.as_ref().is_none_or(|before| before.contains(index)));
        if later.len() < holders::needed(array, newest) {
            return Ok(false);
        }
        before = Some(later);
    }
    Ok(true)
}
