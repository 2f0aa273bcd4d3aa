//! Mending damaged claims of units of blocks.
//!
//! The claim is stored again for the one object whose entry lists the unit, and deleted if no entry
//! does. Both only while no command is under way that may have claimed the unit and not listed it
//! yet: its entry was in the catalogue before its first claim. Not guarded: a host that stalls
//! between its look and its store, until the object is removed and the unit is another's.

use csd_reactor::{Buffer, sleep};

use crate::array::Drive;
use crate::catalogue::{self, Entry, Placement};
use crate::error::{DriveError, Error};
use crate::extent::{self, GRACE, claim_value, unit_key};
use crate::object::Listed;

/// Mends the damaged claim of a unit; `listed` was read after the claim was found damaged. Returns
/// false if nobody can tell whose the unit is now.
///
/// # Errors
/// A failed command.
pub(crate) async fn mend_unit(drive: &Drive, unit: u32, listed: &Listed) -> Result<bool, Error> {
    let is_on_blocks = |entry: &&Entry| entry.placement != Placement::Kv;
    let is_changing = listed.sealed.iter().filter(is_on_blocks).any(|entry| entry.copy.is_some())
        || listed.staged.iter().any(|entry| is_on_blocks(&entry));
    if is_changing || listed.damaged > 0 {
        return Ok(false);
    }
    let mut owners = listed.sealed.iter().filter(|entry| lists(entry, drive, unit));
    let key = unit_key(unit);
    match (owners.next(), owners.next()) {
        (Some(owner), None) => {
            let value = claim_value(owner.id, &catalogue::key(&owner.name));
            let stored = drive.objects.store(&key, vec![Buffer::from_slice(&value)], 0).await;
            stored.map_err(|error| Error::command(drive, error))?;
        }
        (Some(_), Some(_)) => return Ok(false),
        (None, _) => {
            // A put that has just lost its name may still write.
            sleep(GRACE).await;
            if matches!(
                extent::owner(drive, unit).await,
                Err(Error::Drive(DriveError::Corrupt { .. }))
            ) {
                let deleted = drive.objects.delete(&key).await;
                deleted.map_err(|error| Error::command(drive, error))?;
            }
        }
    }
    Ok(true)
}

/// Returns true if an entry lists the unit of this drive.
fn lists(entry: &Entry, drive: &Drive, unit: u32) -> bool {
    let Placement::Block(extents) = &entry.placement else { return false };
    let member = entry.members.iter().position(|member| *member == drive.index);
    let runs = member.and_then(|member| extents.get(member)).into_iter().flatten();
    runs.into_iter().any(|(first, count)| (*first..first + count).contains(&unit))
}
