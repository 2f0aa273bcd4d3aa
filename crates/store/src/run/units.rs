//! Blocks of inputs: a drive's work counts only if they are the inputs' own before and after it.
//!
//! An emptied drive reads blocks as zeros, and units of an object that was removed or moved may be
//! given to another one in the middle of a run. Values have names of their own, and are missing
//! then.

use super::Error;
use super::link::is_lost;
use super::work::{Common, Done};
use crate::array::Drive;
use crate::catalogue::{Entry, Placement};
use crate::extent::{self, UNIT_BYTES};

/// Lets a member's drive work over these inputs, if it still knows that its blocks are theirs. If
/// not, and the host can take over, records the drive as lost.
///
/// # Errors
/// Those of the work; [`Error::Corrupt`] if blocks are no longer the inputs'.
pub(super) async fn in_own_units(
    common: &Common,
    inputs: &[Entry],
    member: usize,
    work: impl AsyncFnOnce() -> Result<Done, Error>,
) -> Result<Done, Error> {
    let link = &common.links[member];
    match link.run(async |drive| check(inputs, member, drive).await).await {
        Err(error) if is_lost(&error) || (common.takes_over && error.is_of_piece()) => {
            common.lose(member, &error, None);
            return Ok(Done::default());
        }
        checked => checked?,
    }
    let done = work().await?;
    // Blocks that were given away meanwhile may have held other bytes by then.
    match link.run(async |drive| check(inputs, member, drive).await).await {
        Err(error) if !is_lost(&error) => Err(error),
        _ => Ok(done),
    }
}

/// Checks whose the blocks are. The first and the last unit of each input stand for all.
async fn check(inputs: &[Entry], member: usize, drive: &Drive) -> Result<(), Error> {
    for entry in inputs {
        let Placement::Block(extents) = &entry.placement else { continue };
        let bytes = u64::from(entry.layout().count(member)) * u64::from(entry.chunk_bytes);
        let units = extent::units_of(&extents[member], bytes.div_ceil(UNIT_BYTES));
        for unit in units.first().into_iter().chain(units.last()) {
            if extent::owner(drive, *unit).await? != Some(entry.id) {
                let why = "its blocks there are no longer its own: the drive was emptied, or the \
                           object removed or moved";
                let (drive, object, why) = (drive.name.clone(), entry.name.clone(), why.to_owned());
                return Err(Error::Corrupt { drive, object, why });
            }
        }
    }
    Ok(())
}
