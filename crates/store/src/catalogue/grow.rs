//! Growing an array: copies the catalogue to new drives before the array file names them.
//!
//! Every name's newest entry, including tombstones, is stored on each new drive and read back. Then
//! a majority of the grown array finds every old name: an entry is on a majority of the old drives
//! and on all new ones, and every majority of the grown array includes one of these.
//!
//! Claims are not copied. Before the entries are copied, each claim is settled as a writer would do
//! it: an epoch that a majority of the old drives has claimed gets its entry. The remaining claims
//! have not won, and the next writer of the grown array can claim these epochs.
//!
//! A name of which too few copies are sound stays so: each new drive gets a copy that is set aside,
//! as if it were damaged, and such names are noted in the array.
//!
//! No host may write through the old array in the meantime, because the grown array may miss such a
//! write. The caller ensures that. Writes that complete during the copy are noticed, and copied
//! again. Does not touch chunks. Invariant: the drives of the old array receive only entries that
//! have won their epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use csd_nvme::kv::{Key, STORE_IF_NEWER};
use csd_reactor::{Class, JoinHandle, spawn};

use super::claim;
use super::copy::set_aside;
use super::entry::{self, Entry};
use crate::array::membership::{self, Origin};
use crate::array::{self, Array, Drive};
use crate::error::{DriveError, NameError};
use crate::extent;
use crate::fault::Fault;
use crate::object::{self, objects_on};

/// Most passes over a catalogue that changes while it is copied.
pub(super) const PASSES: usize = 16;

/// Reason why an array cannot grow or shrink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A drive is down, failed, or holds corrupt data.
    #[error(transparent)]
    Object(#[from] object::Error),
    /// A new drive is in use.
    #[error(
        "drive {drive} holds {what} of another array: only a drive without objects can be added"
    )]
    Used {
        /// The drive.
        drive: String,
        /// Contents of the drive.
        what: &'static str,
    },
    /// A new drive returns another value than the one stored.
    #[error("drive {drive} does not hold what it was given")]
    Differs {
        /// The drive.
        drive: String,
    },
    /// Other writers keep changing names.
    #[error("other hosts change names all the time: stop them, and try again")]
    Restless,
}

impl Error {
    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Object(error) => error.fault(),
            Self::Used { .. } => Fault::Usage,
            Self::Differs { .. } | Self::Restless => Fault::Run,
        }
    }
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Self {
        Self::Object(error.into())
    }
}

/// Checks that every drive is up: only then is every entry visible.
///
/// # Errors
/// [`array::Error::Down`] of the first one that is down.
pub fn all_up(array: &Array) -> Result<(), Error> {
    for slot in array.occupied() {
        slot.up()?;
    }
    Ok(())
}

/// Copies every name of the drives at the first `before` places to the others; returns the number
/// of names.
///
/// # Errors
/// When a drive is down or fails, a new one is not empty, or names keep changing. The new drives
/// may then hold some names, and `spread` may be called again.
pub async fn spread(array: &Array, before: usize) -> Result<usize, Error> {
    all_up(array)?;
    let old = array.first(before);
    old.require(old.size())?;
    let is_new = |drive: &&Rc<Drive>| usize::from(drive.index) >= before;
    let new: Vec<Rc<Drive>> = array.drives().filter(is_new).cloned().collect();
    let mut copied = BTreeMap::new();
    for pass in 0..PASSES {
        settle_claims(&old).await?;
        let Names { entries, damaged } = names(&old).await?;
        if pass == 0 {
            for drive in &new {
                require_unused(&old, drive, &entries).await?;
            }
        } else if entries == copied {
            let all: BTreeSet<Key> = entries.keys().chain(&damaged).copied().collect();
            for drive in &new {
                for key in &damaged {
                    set_aside(drive, key).await?;
                }
                // The drive must hold exactly these keys.
                if !super::keys(drive).await?.iter().eq(&all) {
                    return Err(Error::Differs { drive: drive.name.clone() });
                }
                membership::readmit(&old, drive, old.quorum().write() - 1).await?;
            }
            return Ok(entries.len());
        }
        let changed = |(key, entry): &(&Key, &Entry)| copied.get(*key) != Some(*entry);
        let changed: Vec<(Key, Entry)> =
            entries.iter().filter(changed).map(|(key, entry)| (*key, entry.clone())).collect();
        let changed = Rc::new(changed);
        let copies: Vec<JoinHandle<_>> = new
            .iter()
            .map(|drive| {
                let (drive, changed) = (Rc::clone(drive), Rc::clone(&changed));
                spawn(Class::Foreground, async move { copy(&drive, &changed).await })
            })
            .collect();
        for done in copies {
            done.await?;
        }
        copied = entries;
    }
    Err(Error::Restless)
}

/// Writes the entries of writers that were interrupted after they had won their epoch.
pub(super) async fn settle_claims(old: &Array) -> Result<(), Error> {
    for drive in old.voters() {
        for key in claim::keys(&drive).await? {
            match claim::read_one(&drive, &key).await {
                Ok(Some(claimed)) => match super::settle(old, &claimed.name).await {
                    Ok(_) | Err(object::Error::Name(NameError::Damaged { .. })) => {}
                    Err(error) => return Err(error.into()),
                },
                Ok(None) | Err(object::Error::Drive(DriveError::Corrupt { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// All names of a catalogue.
pub(super) struct Names {
    /// Newest entries.
    pub(super) entries: BTreeMap<Key, Entry>,
    /// Names of which too few copies are sound.
    pub(super) damaged: BTreeSet<Key>,
}

/// Reads all names.
pub(super) async fn names(old: &Array) -> Result<Names, Error> {
    let mut names = Names { entries: BTreeMap::new(), damaged: BTreeSet::new() };
    for key in super::keys_of_all(old).await? {
        match super::read(old, &key, "in the catalogue").await {
            Ok(found) => {
                if let Some(newest) = found.newest() {
                    names.entries.insert(key, newest.clone());
                }
            }
            Err(error @ object::Error::Name(NameError::Damaged { .. })) => {
                old.note_damage(error.to_string());
                names.damaged.insert(key);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(names)
}

/// Checks that a new drive holds nothing, or only copies from an earlier call that was interrupted.
async fn require_unused(
    old: &Array,
    drive: &Drive,
    entries: &BTreeMap<Key, Entry>,
) -> Result<(), Error> {
    let used = |what| Err(Error::Used { drive: drive.name.clone(), what });
    if !objects_on(drive).await?.is_empty() || !extent::owners(drive).await?.is_empty() {
        return used("chunks of objects");
    }
    for key in super::keys(drive).await? {
        let held = match super::read_one(drive, &key, "in the catalogue").await {
            // It was set aside by the call before.
            Err(object::Error::Drive(DriveError::Corrupt { .. })) => continue,
            held => held?,
        };
        let known = entries.get(&key);
        let ours =
            |held: &Entry| known.is_some_and(|known| held.epoch < known.epoch || held == known);
        if held.is_some_and(|held| !ours(&held)) {
            return used("names");
        }
    }
    match membership::origin(old, drive).await? {
        Origin::Former | Origin::Foreign => used("a place in the catalogue"),
        Origin::Own | Origin::Unknown => Ok(()),
    }
}

/// Stores entries on a drive, and reads them back.
async fn copy(drive: &Drive, entries: &[(Key, Entry)]) -> Result<(), Error> {
    for (_, entry) in entries {
        if !super::store_entry(drive, entry, STORE_IF_NEWER).await? {
            return Err(Error::Differs { drive: drive.name.clone() });
        }
    }
    for (key, entry) in entries {
        debug_assert_eq!(entry::key(&entry.name), *key);
        if super::read_one(drive, key, &entry.name).await?.as_ref() != Some(entry) {
            return Err(Error::Differs { drive: drive.name.clone() });
        }
    }
    Ok(())
}
