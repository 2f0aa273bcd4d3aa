//! The way out for a name of which too few copies are sound, or that no writer can change because a
//! damaged claim hides which writer has won: its highest copy that can be read, or a tombstone, is
//! written as the newest entry, because a user has said so.
//!
//! Every drive must be up and vote, so that all entries are known, and none can come back with a
//! later one. The new entry's epoch is far above all that can be read: what the damaged copies held
//! had a lower one. It is claimed as any other epoch, so of two hosts one wins.
//!
//! No host may write the name meanwhile, which the caller ensures: a writer that was cut off before
//! finds a later entry than its own. An interruption leaves copies of the new entry, which is the
//! highest when the command is run again.

use csd_nvme::kv::{Key, STORE_IF_NEWER, STORE_MENDS};
use csd_reactor::random_bytes;

use super::Found;
use super::claim::{self, Claimed, Claims};
use super::entry::{Entry, State};
use crate::array::{Array, DriveIndex, membership};
use crate::error::{Error, NameError};

/// Distance of the new epoch from the highest one that can be read: more than the number of changes
/// of a name that all copies on all drives could have lost.
const LEAP: u64 = 1 << 20;

/// Reads all copies of a name, before it is accepted or dropped. Returns also the epoch that
/// damaged claims keep from being decided, if there is one.
///
/// # Errors
/// If a drive is down, has no vote or fails; [`Error::Input`] if enough copies are sound, and no
/// damaged claim keeps the name from being changed.
async fn look(array: &Array, key: &Key, name: &str) -> Result<(Found, Option<u64>), Error> {
    array.require(array.size())?;
    let (found, failed) = super::look(array, key).await;
    if let Some(error) = failed {
        return Err(error);
    }
    if !found.is_enough(array) {
        return Ok((found, None));
    }
    let Some(epoch) = undecidable(array, key, name).await? else {
        let why = match found.damaged.is_empty() {
            true => "its copies are sound: there is nothing to accept or to drop",
            false => "enough of its copies are sound: `csd repair` mends the others",
        };
        return Err(Error::Input { name: name.to_owned(), why: why.to_owned() });
    };
    Ok((found, Some(epoch)))
}

/// Returns the epoch that keeps every writer from changing the name because claims are damaged.
async fn undecidable(array: &Array, key: &Key, name: &str) -> Result<Option<u64>, Error> {
    if super::key(name) != *key {
        return Ok(None);
    }
    let epoch = super::settle(array, name).await?.epoch;
    let claims = Claims::read(array, name, epoch).await?;
    Ok(claims.hidden_by_damage(array, name).map(|_| epoch))
}

/// Accepts the highest copy of a name that can be read; returns the entry.
///
/// # Errors
/// As [`write_over`]; [`Error::Input`] if enough copies are sound, or none can be read that may
/// stand for the name.
pub async fn accept(array: &Array, key: &Key, name: &str) -> Result<Entry, Error> {
    let (found, hidden) = look(array, key, name).await?;
    let best = found.readable().max_by_key(|entry| (entry.epoch, entry.state == State::Sealed));
    // A staged entry never follows a sealed one, which may be what was lost.
    let best = best.filter(|entry| entry.state != State::Staged).cloned();
    let Some(best) = best else {
        let why = "no copy of it can be accepted: `csd rm --damaged` drops the name".to_owned();
        return Err(Error::Input { name: name.to_owned(), why });
    };
    write(array, key, best, (&found, hidden)).await
}

/// Writes a tombstone over a name of which too few copies are sound. `tombstone` makes it from the
/// highest copy that can be read, if there is one. Returns all entries that could be read.
///
/// # Errors
/// [`Error::Array`] if a drive is down or has no vote; [`Error::Input`] if enough copies are sound;
/// [`NameError::Overtaken`] if another host writes the name; a failed command.
pub async fn write_over(
    array: &Array,
    key: &Key,
    name: &str,
    tombstone: impl FnOnce(Option<&Entry>) -> Entry,
) -> Result<Vec<Entry>, Error> {
    let (found, hidden) = look(array, key, name).await?;
    let best = found.readable().max_by_key(|entry| entry.epoch);
    let entry = tombstone(best);
    write(array, key, entry, (&found, hidden)).await?;
    Ok(found.readable().cloned().collect())
}

/// Writes `entry` on every drive, above everything that `found` tells, and deletes the claims up to
/// the `hidden` epoch, which no drive may be able to name.
async fn write(
    array: &Array,
    key: &Key,
    mut entry: Entry,
    (found, hidden): (&Found, Option<u64>),
) -> Result<Entry, Error> {
    let epochs = found.readable().map(|entry| entry.epoch);
    let versions = found.damaged.iter().map(|copy| copy.version);
    let highest = epochs.chain(versions).max().unwrap_or(0);
    entry.epoch = highest.saturating_add(LEAP);
    entry.survives = found.readable().map(|entry| entry.survives).fold(entry.survives, u8::max);
    random_bytes(&mut entry.writer);
    membership::register(array, array.size()).await?;
    let overtaken = || Error::Name(NameError::Overtaken { name: entry.name.clone() });
    let Claimed::Won(_) = claim::claim(array, &entry, false).await? else {
        return Err(overtaken());
    };
    let (now, failed) = super::look(array, key).await;
    if failed.is_some() || now.answers != found.answers {
        claim::release(array, &entry.name, entry.epoch..=entry.epoch).await;
        return Err(overtaken());
    }
    for drive in array.voters() {
        if !super::store_entry(&drive, &entry, STORE_IF_NEWER | STORE_MENDS).await? {
            return Err(overtaken());
        }
    }
    claim::release(array, &entry.name, entry.epoch..=entry.epoch).await;
    if let Some(hidden) = hidden {
        claim::release(array, &entry.name, highest + 1..=hidden).await;
    }
    Ok(entry)
}

/// Returns the highest entry that can be read of each name of which too few copies are sound, with
/// the drives that have such copies.
///
/// # Errors
/// When too few drives answer.
pub async fn damaged_entries(array: &Array) -> Result<Vec<(Entry, Vec<DriveIndex>)>, Error> {
    let mut entries = Vec::new();
    for key in super::keys_of_all(array).await? {
        let (found, _) = super::look(array, &key).await;
        let best = found.readable().max_by_key(|entry| entry.epoch);
        let Some(best) = best.filter(|_| !found.is_enough(array)) else { continue };
        let sound = found.answers.iter().filter(|(_, entry)| entry.is_some());
        let kept = found.damaged.iter().filter(|copy| copy.kept.is_some());
        let drives = sound.map(|(drive, _)| *drive).chain(kept.map(|copy| copy.drive)).collect();
        entries.push((best.clone(), drives));
    }
    Ok(entries)
}

/// Deletes all copies under a key of which none can be read: no drive tells the name.
///
/// # Errors
/// As [`write_over`]; [`Error::Input`] if a copy tells the name.
pub async fn forget(array: &Array, key: &Key) -> Result<(), Error> {
    let (found, _) = look(array, key, &super::key_in_words(key)).await?;
    if let Some(name) = found.name() {
        let why = "this is the name that stands under that key".to_owned();
        return Err(Error::Input { name: name.to_owned(), why });
    }
    for copy in &found.damaged {
        let drive = array.drive(copy.drive)?;
        let deleted = drive.objects.delete(key).await;
        deleted.map_err(|error| Error::command(drive, error))?;
    }
    Ok(())
}
