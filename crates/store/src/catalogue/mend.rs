//! Mending damaged copies of entries: the newest entry is stored again.
//!
//! A copy that its drive cannot read gives way to any entry. One that is damaged inside a value
//! which is sound to its drive gives way to a later version only: its entry is written again under
//! the next epoch. Invariant: only an entry that enough sound copies have is stored.

use csd_nvme::kv::Key;
use csd_reactor::random_bytes;

use super::Found;
use super::entry::{Entry, State};
use super::put_back::{PutBack, put_back};
use crate::array::{Array, Drive, DriveIndex};
use crate::error::Error;

/// Most looks at a name that other writers change.
const LOOKS: usize = 4;

/// Mends the damaged copies of a name, of which `found` has enough sound ones. Returns the drives
/// whose copies are sound then.
///
/// # Errors
/// A failed command, or those of a writer.
pub async fn mend(array: &Array, key: &Key, found: &Found) -> Result<Vec<DriveIndex>, Error> {
    let (mut found, mut mended) = (found.clone(), Vec::new());
    let damaged: Vec<DriveIndex> = found.damaged.iter().map(|copy| copy.drive).collect();
    for _ in 0..LOOKS {
        let Some(newest) = found.newest().filter(|_| found.is_enough(array)).cloned() else {
            break;
        };
        mended.clear();
        for &index in &damaged {
            let drive = array.drive(index)?;
            let is_sound = match put_back(drive, key, &newest).await? {
                PutBack::Refused => renew(array, drive, key, &newest).await?,
                PutBack::Stored | PutBack::Held => true,
            };
            mended.extend(is_sound.then_some(index));
        }
        // A later entry may have come to the other drives meanwhile, and not to these.
        let (again, _) = super::look(array, key).await;
        if again.newest() == Some(&newest) {
            break;
        }
        found = again;
    }
    Ok(mended)
}

/// Writes an entry again under the next epoch, which the drive takes in place of a damaged one of
/// this epoch; returns true if it holds it then. A staged entry is left to the next change of its
/// name, which does the same.
pub(super) async fn renew(
    array: &Array,
    drive: &Drive,
    key: &Key,
    damaged: &Entry,
) -> Result<bool, Error> {
    if damaged.state == State::Staged {
        return Ok(false);
    }
    let ground = super::settle(array, &damaged.name).await?;
    let Some(newest) = ground.found.newest() else { return Ok(false) };
    let mut renewed = newest.clone();
    if *newest == *damaged {
        random_bytes(&mut renewed.writer);
        super::write(array, &mut renewed, &ground).await?;
    }
    Ok(put_back(drive, key, &renewed).await? != PutBack::Refused)
}
