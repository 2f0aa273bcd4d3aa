//! Blocks of inputs: a drive's work counts only if they are the inputs' own before and after it.
//!
//! An emptied drive reads blocks as zeros, and units of an object that was removed or moved may be
//! given to another one in the middle of a run. A repair claims an emptied drive's units before it
//! writes the chunks again. Values have names of their own, and are missing then.

use csd_store::array::Drive;
use csd_store::catalogue::{Entry, Placement};
use csd_store::layout::UNIT_BYTES;
use csd_store::unwritten;
use csd_store::{extent, extent_ranges};

use crate::Error;
use crate::work::{Common, Done};

/// Lets a member's drive work over these inputs, if it still knows that its blocks are theirs. If
/// not, and the host can take over, records the drive as lost.
///
/// # Errors
/// The errors of the work; [`DriveError::Corrupt`](csd_store::error::DriveError::Corrupt) if
/// blocks are no longer the inputs'.
pub(crate) async fn in_own_units(
    common: &Common,
    inputs: &[Entry],
    member: usize,
    work: impl AsyncFnOnce() -> Result<Done, Error>,
) -> Result<Done, Error> {
    let link = &common.links[member];
    match link.run(async |drive| check_blocks(inputs, member, drive).await).await {
        Err(error) if error.is_lost() || (common.takes_over && error.is_of_piece()) => {
            common.lose(member, &error, None);
            return Ok(Done::default());
        }
        checked => checked?,
    }
    let done = work().await?;
    // Blocks that were given away meanwhile may have held other bytes by then.
    match link.run(async |drive| check_blocks(inputs, member, drive).await).await {
        Err(error) if !error.is_lost() => Err(error),
        _ => Ok(done),
    }
}

/// Checks that a member's blocks on its drive hold the chunks of these inputs: the drive knows the
/// blocks as theirs, and no repair has yet to write some again. The first and the last unit of each
/// input stand for all.
///
/// # Errors
/// [`DriveError::Corrupt`](csd_store::error::DriveError::Corrupt) if they do not; a failed command.
pub async fn check_blocks(inputs: &[Entry], member: usize, drive: &Drive) -> Result<(), Error> {
    for entry in inputs {
        let Placement::Block(extents) = &entry.placement else { continue };
        let corrupt =
            |why: &str| Err(Error::corrupt(&drive.name, entry.name.clone(), why.to_owned()));
        let bytes = u64::from(entry.layout().count(member)) * u64::from(entry.chunk_bytes);
        let units = extent_ranges::units_of(&extents[member], bytes.div_ceil(UNIT_BYTES));
        for unit in units.first().into_iter().chain(units.last()) {
            if extent::owner(drive, *unit).await? != Some(entry.id) {
                return corrupt(
                    "its blocks there are no longer its own: the drive was emptied, or the object \
                     removed or moved",
                );
            }
        }
        // After the claims: the mark was there before them.
        if unwritten::is_marked(drive, entry.id).await? {
            return corrupt(
                "the drive was emptied, and a repair has yet to write its blocks again",
            );
        }
    }
    Ok(())
}
