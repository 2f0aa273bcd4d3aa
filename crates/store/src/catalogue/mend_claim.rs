//! Mending damaged claims of epochs.
//!
//! A claim is a drive's vote, which no other drive knows, so a damaged one is never stored again.
//! It is deleted once its epoch has passed. Until then its name's entry is written again under the
//! next epoch, by the rules of any writer, for which the damaged claim counts as unknown.

use csd_nvme::kv::Key;
use csd_reactor::random_bytes;

use super::claim::{self, claim_key, has_passed};
use super::entry::State;
use crate::array::{Array, Drive};
use crate::error::{DriveError, Error};

/// Epochs before and after that of a name's entry to which a claim of the name may belong.
const NEAR: u64 = 64;
/// Changes after which the epoch has passed, unless other writers are at work.
const CHANGES: usize = 4;

/// Mends a damaged claim on one drive; `names` are all names with the epochs of their entries.
/// Returns false if no drive tells the name, whose next writer does it.
///
/// # Errors
/// Those of a writer, or a failed command.
pub async fn mend_claim(
    array: &Array,
    drive: &Drive,
    key: &Key,
    names: &[(String, u64)],
) -> Result<bool, Error> {
    let Some((name, epoch)) = epoch_of(array, key, names).await? else { return Ok(false) };
    for _ in 0..CHANGES {
        if has_passed(array, &name, epoch).await? {
            let deleted = drive.objects.delete(key).await;
            deleted.map_err(|error| Error::command(drive, error))?;
            return Ok(true);
        }
        let ground = super::settle(array, &name).await?;
        // A put that is under way, or was cut off, is changed by the next writer of its name.
        let newest = ground.found.newest().filter(|newest| newest.state != State::Staged);
        let Some(mut renewed) = newest.cloned() else { return Ok(false) };
        random_bytes(&mut renewed.writer);
        super::write(array, &mut renewed, &ground).await?;
    }
    Ok(false)
}

/// Returns the name and the epoch of a claim, from others' claims of the epoch or from the names.
async fn epoch_of(
    array: &Array,
    key: &Key,
    names: &[(String, u64)],
) -> Result<Option<(String, u64)>, Error> {
    for drive in array.voters() {
        match claim::read_one(&drive, key).await {
            Ok(Some(claim)) => return Ok(Some((claim.name, claim.epoch))),
            Ok(None) | Err(Error::Drive(DriveError::Corrupt { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    let of_name = |(name, epoch): &(String, u64)| {
        let mut near = epoch.saturating_sub(NEAR)..=epoch.saturating_add(NEAR);
        let epoch = near.find(|epoch| claim_key(name, *epoch) == *key)?;
        Some((name.clone(), epoch))
    };
    Ok(names.iter().find_map(of_name))
}
