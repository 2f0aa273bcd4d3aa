//! Shrinking an array: copies the catalogue to all drives that stay, before the array file names
//! the smaller array.
//!
//! Every name's newest entry, including tombstones, is stored on each drive that stays, and read
//! back. Then every drive of the smaller array knows every name, and any quorum of it does. An
//! entry that the removed drive alone knew has never counted: that takes two drives or more. A
//! damaged copy in a value that is sound to its drive gives way to the entry under the next epoch.
//!
//! A name of which too few copies are sound stays so: fewer answers would suffice in the smaller
//! array, so on each drive that stays the copy is set aside, and such names are noted in the array.
//!
//! At last the roster is stored on each drive that stays, and takes the vote of the removed one.
//!
//! Claims are settled as by a writer, as far as the drives that answer can tell. A claim that is
//! left has no majority of the smaller array, whose next writer decides it, or skips its epoch.
//!
//! No host may write through the larger array in the meantime; the caller ensures that. Writes that
//! complete during the copy are noticed, and copied again. An interruption leaves the larger array,
//! with more copies of entries than it needs, and perhaps a drive without a vote.

use std::collections::BTreeMap;

use super::copy::set_aside;
use super::grow::{Error, Names, PASSES, all_up, names, settle_claims};
use super::mend::renew;
use super::put_back::{PutBack, put_back};
use crate::array::{Array, DriveIndex, membership};

/// Copies every name to all drives but the one with this index; returns the number of names.
///
/// # Errors
/// When a drive that stays is down or fails, or names keep changing.
pub async fn gather(array: &Array, index: DriveIndex) -> Result<usize, Error> {
    let rest = array.without(index);
    all_up(&rest)?;
    rest.require(rest.size())?;
    let mut copied = BTreeMap::new();
    for pass in 0..PASSES {
        settle_claims(array).await?;
        let Names { entries, damaged } = names(array).await?;
        if pass > 0 && entries == copied {
            for drive in rest.voters() {
                for key in &damaged {
                    set_aside(&drive, key).await?;
                }
            }
            membership::vacate(&rest, index).await?;
            return Ok(entries.len());
        }
        for drive in rest.voters() {
            for (key, entry) in &entries {
                if put_back(&drive, key, entry).await? == PutBack::Refused {
                    renew(array, &drive, key, entry).await?;
                }
                let held = super::read_one(&drive, key, &entry.name).await?;
                // The next pass copies a later entry to all drives.
                if held.is_none_or(|held| held != *entry && held.epoch <= entry.epoch) {
                    return Err(Error::Differs { drive: drive.name.clone() });
                }
            }
        }
        copied = entries;
    }
    Err(Error::Restless)
}
