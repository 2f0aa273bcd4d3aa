//! Growing an array: what new drives must hold before the array may name them.
//!
//! Every name's newest entry, tombstones too, is stored on each new drive and read back. Then a
//! majority of the grown array finds every old name: an entry is on a majority of the old drives
//! and on all new ones, and more than half of the grown array's drives cannot miss all of these.
//!
//! A claim is not copied. Before the entries are, each is settled as a writer would: an epoch that
//! a majority of the old drives has claimed gets its entry. What is left claimed is nobody's, and
//! stays open to the next writer of the grown array.
//!
//! Nobody may write meanwhile through the old array: a writer that does may be missed by the grown
//! one. The caller sees to that; writers that end while names are copied are noticed, and copied
//! again. Does not touch chunks. Invariant: nothing is written to the drives of the old array but
//! entries that have won their epoch.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::claim;
use super::entry::{self, Entry};
use crate::array::{self, Array, Drive};
use crate::extent;
use crate::fault::Fault;
use crate::object::{self, objects_on};

/// Looks at a catalogue that changes while it is copied.
const PASSES: usize = 16;

/// Why an array cannot grow.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A drive is down, failed, or holds what is corrupt.
    Object(object::Error),
    /// A new drive is in use.
    Used {
        /// The drive.
        drive: String,
        /// What it holds.
        what: &'static str,
    },
    /// What a new drive was given is not what it holds.
    Differs {
        /// The drive.
        drive: String,
    },
    /// Others write names all the time.
    Restless,
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Object(error) => error.fault(),
            Self::Used { .. } => Fault::Usage,
            Self::Differs { .. } | Self::Restless => Fault::Run,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(error) => error.fmt(f),
            Self::Used { drive, what } => write!(
                f,
                "drive {drive} holds {what} of another array: only a drive without objects can be \
                 added"
            ),
            Self::Differs { drive } => write!(f, "drive {drive} does not hold what it was given"),
            Self::Restless => {
                f.write_str("other hosts change names all the time: stop them, and add drives then")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<object::Error> for Error {
    fn from(error: object::Error) -> Self {
        Self::Object(error)
    }
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Self {
        Self::Object(error.into())
    }
}

/// Checks that every drive is up: only then all that was ever written can be seen.
///
/// # Errors
/// [`array::Error::Down`] of the first one that is down.
pub fn all_up(array: &Array) -> Result<(), Error> {
    for index in 0..array.slots().len() {
        array.drive(index)?;
    }
    Ok(())
}

/// Copies every name of the first `before` drives to the others; how many names.
///
/// # Errors
/// When any drive is down or fails, a new one is not empty, or names keep changing. Then the new
/// drives may hold some names, and `spread` may be called again.
pub async fn spread(array: &Array, before: usize) -> Result<usize, Error> {
    all_up(array)?;
    let old = array.first(before);
    let new: Vec<Rc<Drive>> = array.drives().skip(before).cloned().collect();
    let mut copied = BTreeMap::new();
    for pass in 0..PASSES {
        settle_claims(&old).await?;
        let entries = entries(&old).await?;
        if pass == 0 {
            for drive in &new {
                require_unused(drive, &entries).await?;
            }
        } else if entries == copied {
            for drive in &new {
                // Only these, and all of these.
                if !super::keys(drive).await?.iter().eq(entries.keys()) {
                    return Err(Error::Differs { drive: drive.name.clone() });
                }
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

/// Writes the entries of writers that were cut off after they had won their epoch.
async fn settle_claims(old: &Array) -> Result<(), Error> {
    for drive in old.drives() {
        for key in claim::keys(drive).await? {
            if let Some(claimed) = claim::read_one(drive, &key).await? {
                super::settle(old, &claimed.name).await?;
            }
        }
    }
    Ok(())
}

/// Every name's newest entry.
async fn entries(old: &Array) -> Result<BTreeMap<Key, Entry>, Error> {
    let mut entries = BTreeMap::new();
    for drive in old.drives() {
        for key in super::keys(drive).await? {
            if entries.contains_key(&key) {
                continue;
            }
            let found = super::read(old, &key, "in the catalogue").await?;
            if let Some(newest) = found.newest() {
                entries.insert(key, newest.clone());
            }
        }
    }
    Ok(entries)
}

/// A new drive may hold what an earlier call, which was cut off, has copied to it, and no more.
async fn require_unused(drive: &Drive, entries: &BTreeMap<Key, Entry>) -> Result<(), Error> {
    let used = |what| Err(Error::Used { drive: drive.name.clone(), what });
    if !objects_on(drive).await?.is_empty() || !extent::owners(drive).await?.is_empty() {
        return used("chunks of objects");
    }
    for key in super::keys(drive).await? {
        let held = super::read_one(drive, &key, "in the catalogue").await?;
        let known = entries.get(&key);
        let ours =
            |held: &Entry| known.is_some_and(|known| held.epoch < known.epoch || held == known);
        if held.is_some_and(|held| !ours(&held)) {
            return used("names");
        }
    }
    Ok(())
}

/// Stores entries on a drive, and reads them back.
async fn copy(drive: &Drive, entries: &[(Key, Entry)]) -> Result<(), Error> {
    for (key, entry) in entries {
        let value = vec![Buffer::from_slice(&entry.encode())];
        let stored = drive.objects.store(key, value, 0).await;
        stored.map_err(|error| object::Error::command(drive, error))?;
    }
    for (key, entry) in entries {
        debug_assert_eq!(entry::key(&entry.name), *key);
        if super::read_one(drive, key, &entry.name).await?.as_ref() != Some(entry) {
            return Err(Error::Differs { drive: drive.name.clone() });
        }
    }
    Ok(())
}
