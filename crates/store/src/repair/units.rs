//! Units of blocks whose claims a drive has forgotten.
//!
//! An emptied drive gives its units to the next object that asks. So before chunks are written to
//! blocks again, their units are claimed again; for a unit that another object has by now, a new
//! one is claimed. The entry then lists the new units, and the chunks in them as missing: they
//! count again once they are written. Runs in the drive look at the claims, and some have read the
//! entry before; for them the drive gets a mark before the first claim
//! ([`unwritten::mark`]).

use std::rc::Rc;

use super::change_entry::{Changed, change_entry};
use super::fleet::Fleet;
use super::known_pieces::{KnownPieces, member_units};
use super::subject::{PieceState, Subject};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, Placement};
use crate::error::DriveError;
use crate::error::Error;
use crate::extent::{self, Claimer};
use crate::extent_ranges;
use crate::unwritten;

/// Claims all units of an object whose drives take part. Returns `None` if all were its own. A
/// drive without room for them takes no further part.
///
/// # Errors
/// Those of the catalogue.
pub(super) async fn settle(
    array: &Array,
    fleet: &Fleet,
    subject: &Subject,
    known: &KnownPieces,
) -> Result<Option<Changed>, Error> {
    let entry = &subject.entry;
    let (mut units, mut is_settled) = (member_units(entry), true);
    for (member, units) in units.iter_mut().enumerate() {
        let foreign = known.foreign_units(member);
        let Some(drive) = fleet.drive(entry.members[member]) else { continue };
        if foreign.is_empty() {
            continue;
        }
        is_settled = false;
        let claimed = match unwritten::mark(drive, entry.id).await {
            Ok(()) => claim(array, drive, entry, units, &foreign).await,
            Err(error) => Err(error),
        };
        match claimed {
            Ok(claimed) => *units = claimed,
            // Nothing is written to units that are not the object's.
            Err(error) => fleet.lose(drive.index, &error),
        }
    }
    if is_settled {
        return Ok(None);
    }
    let change = |revised: &mut Entry| {
        if let Placement::Block(extents) = &mut revised.placement {
            *extents = units.iter().map(|units| extent_ranges::extents_of(units)).collect();
        }
        let count = subject.stripes().count();
        let Some(protection) = &mut revised.protection else { return };
        let (scheme, parity) = (protection.scheme, &mut protection.parity);
        for (stripe, number) in subject.all() {
            let spot = subject.spot(stripe, number);
            if spot.is_on_blocks() && subject.state(stripe, number) == PieceState::Bad {
                parity.iter_mut().for_each(|parity| {
                    parity.missing.add(count, scheme, stripe, number);
                });
            }
        }
    };
    change_entry(array, entry, change).await.map(Some)
}

/// Claims the units at these positions. Returns all units, other ones in place of those that
/// another object has.
async fn claim(
    array: &Array,
    drive: &Rc<Drive>,
    entry: &Entry,
    units: &[u32],
    foreign: &[usize],
) -> Result<Vec<u32>, Error> {
    let (key, mut units) = (catalogue::key(&entry.name), units.to_vec());
    let mut taken = Vec::new();
    for &position in foreign {
        match extent::claim_again(drive, units[position], entry.id, &key).await {
            Ok(true) => {}
            Ok(false) | Err(Error::Drive(DriveError::Corrupt { .. })) => taken.push(position),
            Err(error) => return Err(error),
        }
    }
    if taken.is_empty() {
        return Ok(units);
    }
    // Units that an interrupted repair has claimed and not listed.
    let mut spare = extent::units_owned(drive, entry.id).await?;
    spare.retain(|unit| !units.contains(unit));
    let mut claimer = Claimer::new(drive, entry.id, key).await?;
    for position in taken {
        units[position] = match spare.pop() {
            Some(unit) => unit,
            None => claimer.claim(array).await?,
        };
    }
    Ok(units)
}
