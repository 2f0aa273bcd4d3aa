//! Changes of a name: a writer reads its state, wins the next epoch, and writes the entry.
//!
//! Invariants: those of [`super`].

use std::rc::Rc;
use std::time::Duration;

use csd_nvme::kv::{Key, STORE_IF_NEWER};
use csd_reactor::sleep;

use super::claim::{Claimed, Claims, Standing};
use super::on_all::on_all;
use super::put_back::put_back;
use super::{Entry, Found, State, claim, entry, holders, judge, look, read, store_entry};
use crate::array::{Array, DriveIndex, membership};
use crate::error::{Error, NameError};
use crate::steady::steadily;

/// Pause of a writer before it looks again at an epoch that another writer has claimed and not
/// written yet.
const PAUSE: Duration = Duration::from_millis(20);

/// State of a name that a writer builds on.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Answers of the drives.
    pub found: Found,
    pub(super) epoch: u64,
    contested: bool,
    /// Least epoch of which claims may be left.
    claimed: u64,
}

impl Ground {
    /// Returns the state in which the writer of `entry` has left its name, as far as it knows.
    fn after(entry: &Entry) -> Self {
        let answers = vec![(DriveIndex::new(0), Some(entry.clone()))];
        let (found, next) = (Found { answers, damaged: Vec::new() }, entry.epoch + 1);
        Self { found, epoch: next, contested: false, claimed: next }
    }

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
        let found = read_mended(array, &key, name).await?;
        let mut ground = Ground { found, epoch: 0, contested: false, claimed: 0 };
        // No writer claims epoch 0.
        ground.claimed = ground.base().max(1);
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
                membership::register(array, holders::needed(array, &entry)).await?;
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

/// Reads an entry for a writer, whose drives all must take the next one: mends damaged copies.
async fn read_mended(array: &Array, key: &Key, name: &str) -> Result<Found, Error> {
    array.require(1)?;
    let mut seen = look(array, key).await;
    if let Some(newest) = seen.0.newest().filter(|_| seen.0.is_enough(array)).cloned()
        && !seen.0.damaged.is_empty()
    {
        for copy in &seen.0.damaged {
            if let Ok(drive) = array.drive(copy.drive) {
                // What cannot be mended is still damaged below.
                let _refused = put_back(drive, key, &newest).await;
            }
        }
        seen = look(array, key).await;
    }
    judge(array, key, name, seen)
}

/// Makes `entry` the newest of its name, whose state is `ground`, and sets its epoch. Returns
/// warnings about drives that failed although a write quorum succeeded.
///
/// # Errors
/// [`NameError::Overtaken`] when another writer changed the name in the meantime,
/// [`NameError::Undecided`] when only drives that are down can tell, [`NameError::Writers`] when
/// fewer drives vote than the name needs, or the errors of [`read`].
///
/// # Panics
/// When a staged entry would follow a sealed one: callers check the ground.
pub async fn write(
    array: &Array,
    entry: &mut Entry,
    ground: &Ground,
) -> Result<Vec<String>, Error> {
    // What a drive acknowledges on one connection it confirms on the same.
    let array = &array.pinned();
    let is_sealed = ground.found.newest().is_some_and(|below| below.state == State::Sealed);
    assert!(entry.state != State::Staged || !is_sealed, "a staged entry hides no sealed one");
    let mut claimed = entry.clone();
    claimed.survives = holders::survives(array, entry, ground.found.newest());
    holders::require(array, &claimed)?;
    membership::register(array, holders::needed(array, &claimed)).await?;
    let overtaken = || Error::Name(NameError::Overtaken { name: entry.name.clone() });
    let (base, mut ground) = (ground.base(), ground.clone());
    let holders = loop {
        claimed.epoch = ground.epoch;
        if let Claimed::Won(holders) = claim::claim(array, &claimed, ground.contested).await? {
            break holders;
        }
        ground = settle(array, &entry.name).await?;
        if ground.base() != base {
            return Err(overtaken());
        }
    };
    // Claims are deleted after a later entry is written: in that case this epoch was won too late.
    let found = read(array, &entry::key(&entry.name), &entry.name).await?;
    let newest = found.newest().filter(|newest| newest.epoch >= claimed.epoch);
    if newest.is_some_and(|newest| *newest != claimed) {
        claim::release(array, &entry.name, claimed.epoch..=claimed.epoch).await;
        return Err(overtaken());
    }
    // The holders of the claim that are alive still hold it.
    if found.alive().filter(|index| holders.contains(index)).count() < array.quorum().majority() {
        return Err(Error::Name(NameError::Undecided { name: entry.name.clone() }));
    }
    *entry = claimed;
    let Down { acknowledged, mut failures } = put_down(array, entry).await?;
    let mut confirmed = 0;
    for (drive, released) in claim::release(array, &entry.name, ground.claimed..=entry.epoch).await
    {
        match released {
            Ok(()) => confirmed += usize::from(acknowledged.contains(&drive.index)),
            Err(error) => failures.push(error),
        }
    }
    holders::enough(array, entry, confirmed, &mut failures)?;
    Ok(failures.iter().map(ToString::to_string).collect())
}

/// Makes `entry` the newest of its name if `before` still is, which the same writer has written. As
/// a rule it is, and the claim of the next epoch shows it: no drive is asked before.
///
/// # Errors
/// [`NameError::Overtaken`] when another writer changed the name in the meantime; those of
/// [`settle`] and [`write()`].
pub async fn write_after(
    array: &Array,
    entry: &mut Entry,
    before: &Entry,
) -> Result<Vec<String>, Error> {
    let mut is_first = true;
    let write = steadily(array, async || {
        if std::mem::take(&mut is_first)
            && let Ok(warnings) = write(array, entry, &Ground::after(before)).await
        {
            return Ok(warnings);
        }
        let ground = settle(array, &before.name).await?;
        if !ground.is_of(before) {
            return Err(Error::Name(NameError::Overtaken { name: before.name.clone() }));
        }
        write(array, entry, &ground).await
    });
    write.await
}

/// Outcome of [`put_down`].
struct Down {
    /// Drives that hold the entry, by index: a write quorum.
    acknowledged: Vec<DriveIndex>,
    failures: Vec<Error>,
}

/// Stores an entry that has won its epoch on every drive that votes.
async fn put_down(array: &Array, entry: &Entry) -> Result<Down, Error> {
    let stores = on_all(array, {
        let (entry, fence) = (Rc::new(entry.clone()), array.guards().fence);
        move |drive| {
            let (entry, options) = (Rc::clone(&entry), if fence { STORE_IF_NEWER } else { 0 });
            async move { store_entry(&drive, &entry, options).await }
        }
    });
    let (mut acknowledged, mut failures) = (Vec::new(), Vec::new());
    for store in stores {
        match store.await {
            (drive, Ok(true)) => acknowledged.push(drive.index),
            (_, Ok(false)) => {
                failures.insert(0, Error::Name(NameError::Overtaken { name: entry.name.clone() }));
            }
            (_, Err(error)) => failures.push(error),
        }
    }
    holders::enough(array, entry, acknowledged.len(), &mut failures)?;
    Ok(Down { acknowledged, failures })
}
