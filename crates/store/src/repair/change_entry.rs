//! Changes of a protected object's entry: missing pieces, and units of blocks.
//!
//! An object is protected once: its identifiers and digests stay the same until it is removed. So
//! a change is tried again on the newest entry when another writer, such as a second repair, came
//! first. Invariant: an entry of another object, or of the same name put again, is not changed.

use csd_reactor::random_bytes;

use crate::array::{Array, DriveIndex};
use crate::catalogue::{self, Entry, State};
use crate::error::Error;
use crate::error::NameError;

/// Most attempts while other writers change the name.
const ATTEMPTS: usize = 16;

/// Outcome of a change.
pub(super) enum Changed {
    /// The entry as it is now.
    Done(Box<Entry>),
    /// Another repair has moved the object's blocks.
    Moved,
    /// The object was removed.
    Gone,
}

/// Applies a change to an object's entry, unless it makes no difference and a write quorum holds
/// the entry.
///
/// # Errors
/// Those of the catalogue.
pub(super) async fn change_entry(
    array: &Array,
    entry: &Entry,
    change: impl Fn(&mut Entry),
) -> Result<Changed, Error> {
    for _ in 0..ATTEMPTS {
        let ground = catalogue::settle(array, &entry.name).await?;
        let newest = ground.found.newest().filter(|newest| is_same(entry, newest));
        let Some(newest) = newest else { return Ok(Changed::Gone) };
        if newest.placement != entry.placement {
            return Ok(Changed::Moved);
        }
        let mut changed = newest.clone();
        change(&mut changed);
        let holds = |(_, held): &&(DriveIndex, Option<Entry>)| held.as_ref() == Some(newest);
        let holders = ground.found.answers.iter().filter(holds).count();
        if changed == *newest && holders >= catalogue::holders_needed(array, newest) {
            return Ok(Changed::Done(Box::new(changed)));
        }
        random_bytes(&mut changed.writer);
        match catalogue::write(array, &mut changed, &ground).await {
            Ok(_warnings) => return Ok(Changed::Done(Box::new(changed))),
            Err(Error::Name(NameError::Overtaken { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Name(NameError::Overtaken { name: entry.name.clone() }))
}

/// Returns true if two entries are of the same protected object.
pub(super) fn is_same(entry: &Entry, other: &Entry) -> bool {
    other.state == State::Sealed
        && other.protected().is_some()
        && (other.id, other.parity_id()) == (entry.id, entry.parity_id())
}
