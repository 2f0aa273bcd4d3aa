//! [`Change`]: a change of the pieces of a sealed object. It is announced before its first piece is
//! written, and counts with the entry that follows.
//!
//! The announcing entry keeps a reclaim from the new pieces, and leaves the object as readable as
//! before. If the change is interrupted, no later one uses its names; the next one and a removal
//! delete them, and a reclaim then deletes those on drives that were out of reach. Invariant:
//! pieces are deleted only once it is certain that no entry which names them counts, or will.

use csd_reactor::random_bytes;

use super::{Error, remove};
use crate::array::{Array, DriveIndex};
use crate::catalogue::{self, Entry, Ground, ObjectId, State};
use crate::error::NameError;

/// A change that was announced.
pub(super) struct Change {
    before: Entry,
    begun: Entry,
    /// Warnings about drives that are down or failed.
    pub(super) warnings: Vec<String>,
}

/// Returns the entry of a sealed object, and the state of its name.
///
/// # Errors
/// [`NameError::Missing`], or those of the catalogue.
pub(super) async fn look(array: &Array, name: &str) -> Result<(Entry, Ground), Error> {
    let ground = catalogue::settle(array, name).await?;
    let sealed = ground.found.newest().filter(|entry| entry.state == State::Sealed);
    let missing = || Error::Name(NameError::Missing { name: name.to_owned() });
    Ok((sealed.cloned().ok_or_else(missing)?, ground))
}

/// Writes an object's entry again if too few drives hold it, as after an interrupted command.
/// Returns it, and warnings.
///
/// # Errors
/// Those of the catalogue.
pub(super) async fn confirm(
    array: &Array,
    ground: &Ground,
    before: Entry,
) -> Result<(Entry, Vec<String>), Error> {
    let is_same = |(_, held): &&(DriveIndex, Option<Entry>)| held.as_ref() == Some(&before);
    let holders = ground.found.answers.iter().filter(is_same).count();
    let mut entry = before.clone();
    if holders >= catalogue::holders_needed(array, &before) {
        return Ok((entry, Vec::new()));
    }
    random_bytes(&mut entry.writer);
    let warnings = catalogue::write(array, &mut entry, ground).await?;
    Ok((entry, warnings))
}

impl Change {
    /// Announces a change by `entry`, which becomes the one that was written. Deletes what an
    /// interrupted change has left.
    ///
    /// # Errors
    /// Those of the catalogue.
    pub(super) async fn begin(
        array: &Array,
        (before, ground): (Entry, &Ground),
        entry: &mut Entry,
    ) -> Result<Self, Error> {
        random_bytes(&mut entry.writer);
        let warnings = catalogue::write(array, entry, ground).await?;
        remove::sweep_left(array, &before, entry).await;
        Ok(Self { before, begun: entry.clone(), warnings })
    }

    /// Returns the identifiers of the pieces that the change writes.
    fn made(&self) -> Vec<ObjectId> {
        let kept = self.kept().own_ids();
        self.begun.ids().into_iter().filter(|id| !kept.contains(id)).collect()
    }

    /// Returns the entry without what was announced.
    fn kept(&self) -> Entry {
        let mut kept = self.before.clone();
        kept.protection = kept.protection.filter(|protection| protection.parity.is_some());
        kept.copy = None;
        kept
    }

    /// Writes the entry with which the change counts, if no other writer has changed the name.
    ///
    /// # Errors
    /// [`NameError::Overtaken`], or those of the catalogue.
    pub(super) async fn seal(
        &self,
        array: &Array,
        entry: &mut Entry,
    ) -> Result<Vec<String>, Error> {
        let ground = catalogue::settle(array, &entry.name).await?;
        if !ground.is_of(&self.begun) {
            return Err(Error::Name(NameError::Overtaken { name: entry.name.clone() }));
        }
        catalogue::write(array, entry, &ground).await
    }

    /// Makes the entry of a change that has failed as it was, and deletes what was written.
    ///
    /// # Errors
    /// Those of the catalogue, or a failed command.
    pub(super) async fn withdraw(&self, array: &Array) -> Result<(), Error> {
        let (ground, made) = (catalogue::settle(array, &self.begun.name).await?, self.made());
        let names_made = |entry: &&Entry| entry.own_ids().iter().any(|id| made.contains(id));
        let later = ground.found.newest().filter(|newest| newest.epoch > self.begun.epoch);
        if later.filter(names_made).is_some() {
            return Ok(()); // it counts after all
        }
        if ground.is_of(&self.begun) {
            let mut kept = self.kept();
            random_bytes(&mut kept.writer);
            catalogue::write(array, &mut kept, &ground).await?;
        }
        remove::sweep_ids(array, made).await
    }
}
