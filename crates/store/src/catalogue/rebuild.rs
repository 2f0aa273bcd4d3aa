//! Rebuilding the catalogue of a drive that has forgotten a part of it, so that it votes again; and
//! mending damaged copies (`mend`).
//!
//! The other drives are the witnesses: one more than could outvote them without this drive. Every
//! name's newest entry among them is stored on the drive, tombstones too, unless it holds a later
//! one. So is every claim that the drive may have given: of several claims of one epoch, the one
//! that most witnesses hold. Then its present life is registered, and it votes. Whatever others
//! write in the meantime does not count this drive, so one pass is enough.
//!
//! A name of which too few copies are sound stays so: what the drive holds of it is set aside
//! before it votes, because it would count as an answer.
//!
//! After most drives were emptied there are too few witnesses. A user may say that the drives which
//! vote shall do ([`rebuild_from_few`]): what the others knew is lost then.
//!
//! A rebuild that is interrupted leaves a drive that does not vote. It can be repeated, and several
//! hosts may rebuild one drive at once. Does not touch chunks.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::ObjectId;
use super::claim;
use super::copy::set_aside;
use super::entry::{self, Entry};
use super::mend::renew;
use super::put_back::{PutBack, put_back};
use crate::array::membership::{self, Origin};
use crate::array::{self, Array, Drive, DriveIndex};
use crate::error::DriveError;
use crate::error::Error;
use crate::object;

/// Result of a rebuild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Names of the catalogue.
    pub names: usize,
    /// Entries and claims that the drive lacked, or whose copy was older or damaged.
    pub stored: usize,
}

/// Rebuilds the catalogue of the drive with this index, and gives it its vote if it has none.
/// Names of which too few copies are sound are noted in the array ([`Array::damage_met`]).
///
/// # Errors
/// [`DriveError::Foreign`] if the drive belongs to another array or holds data of no place
/// of this one; [`Error::Array`] if too few other drives vote; a failed command.
pub async fn rebuild(array: &Array, index: DriveIndex) -> Result<Rebuilt, Error> {
    let witnesses = array.quorum().witnesses();
    require_others(array, index, witnesses)?;
    rebuild_from(array, index, witnesses).await
}

/// Checks that so many drives other than the one to rebuild are up and vote.
fn require_others(array: &Array, index: DriveIndex, needed: usize) -> Result<(), array::Error> {
    let up = array.without_vote(index).voters().len();
    if up >= needed {
        return Ok(());
    }
    if array.slots()[index].vote().is_err() {
        return Err(array.too_few(needed));
    }
    // It is up and votes, and is no witness of itself.
    let drive = array.slots()[index].name.clone();
    let (others, down) = (array.size() - 1, array.down());
    Err(array::Error::TooFewOthers { drive, up, others, needed, down })
}

/// Rebuilds like [`rebuild`] a drive that has no vote, from the drives that vote, however few.
/// Names and changes that only others knew are lost.
///
/// # Errors
/// As [`rebuild`]; [`Error::Array`] if a drive is down, which may know more.
pub async fn rebuild_from_few(array: &Array, index: DriveIndex) -> Result<Rebuilt, Error> {
    for slot in array.occupied() {
        slot.up()?;
    }
    array.require(1)?;
    let witnesses = array.without_vote(index).voters().len();
    rebuild_from(array, index, witnesses.min(array.quorum().witnesses())).await
}

async fn rebuild_from(
    array: &Array,
    index: DriveIndex,
    witnesses: usize,
) -> Result<Rebuilt, Error> {
    let drive = Rc::clone(array.drive(index)?);
    let has_vote = array.slots()[index].vote().is_ok();
    let others = array.without_vote(index);
    let origin = match has_vote {
        true => Origin::Own,
        false => membership::origin(&others, &drive).await?,
    };
    let (mut names, mut claims) = (BTreeSet::<Key>::new(), BTreeSet::<Key>::new());
    for witness in others.voters() {
        names.extend(super::keys(&witness).await?);
        claims.extend(claim::keys(&witness).await?);
    }
    // An unknown drive may hold what an interrupted rebuild has left, and nothing else.
    let is_foreign = match origin {
        Origin::Own | Origin::Former => false,
        Origin::Unknown => super::keys(&drive).await?.iter().any(|key| !names.contains(key)),
        Origin::Foreign => true,
    };
    if is_foreign {
        return Err(Error::Drive(DriveError::Foreign { drive: drive.name.clone() }));
    }
    let mut rebuilt = Rebuilt { names: names.len(), stored: 0 };
    let mut epochs = BTreeMap::new();
    for key in &names {
        let (found, failed) = super::look(&others, key).await;
        if found.answers.len() < witnesses {
            if let Some(error) = failed {
                return Err(error);
            }
            array.note_damage(found.too_few(array, key, "").to_string());
            if !has_vote {
                set_aside(&drive, key).await?;
            }
            continue;
        }
        let Some(newest) = found.newest() else { continue };
        epochs.insert(*key, newest.epoch);
        let stored = match put_back(&drive, key, newest).await? {
            PutBack::Refused => {
                let writers = if has_vote { array } else { &others };
                renew(writers, &drive, key, newest).await?
            }
            put_back => put_back == PutBack::Stored,
        };
        rebuilt.stored += usize::from(stored);
    }
    for key in &claims {
        let Some(claimed) = most_held(&others, key).await? else { continue };
        let passed = epochs.get(&entry::key(&claimed.name));
        if passed.is_none_or(|epoch| *epoch < claimed.epoch) {
            rebuilt.stored += usize::from(give_claim(&drive, key, &claimed).await?);
        }
    }
    if !has_vote {
        let needed = (array.quorum().write() - 1).min(others.voters().len());
        membership::readmit(&others, &drive, needed).await?;
    }
    Ok(rebuilt)
}

/// Checks that the drive with this index may take that place: it stood there before, or it holds
/// nothing, or what an interrupted repair has stored there. Returns true if it has a medium from
/// before another drive took the place.
///
/// # Errors
/// [`DriveError::Foreign`] if it holds anything else; [`Error::Array`] if it is down or
/// too few other drives vote; a failed command.
pub async fn check_vacant(array: &Array, index: DriveIndex) -> Result<bool, Error> {
    let drive = Rc::clone(array.drive(index)?);
    let others = array.without_vote(index);
    others.require(array.quorum().witnesses())?;
    let origin = membership::origin(&others, &drive).await?;
    let is_vacant = match origin {
        Origin::Own | Origin::Former => true,
        Origin::Foreign => false,
        Origin::Unknown => {
            let mut names = BTreeSet::new();
            for witness in others.voters() {
                names.extend(super::keys(&witness).await?);
            }
            let listed = object::list(&others).await?;
            let entries = listed.sealed.iter().chain(&listed.staged);
            let known: BTreeSet<ObjectId> = entries.flat_map(Entry::ids).collect();
            let has_names = super::keys(&drive).await?.iter().any(|key| !names.contains(key));
            !has_names && object::objects_on(&drive).await?.is_subset(&known)
        }
    };
    if is_vacant {
        Ok(origin == Origin::Former)
    } else {
        Err(Error::Drive(DriveError::Foreign { drive: drive.name.clone() }))
    }
}

/// Returns the claim under `key` that most of the witnesses hold.
async fn most_held(others: &Array, key: &Key) -> Result<Option<Entry>, Error> {
    let mut held: Vec<(Entry, usize)> = Vec::new();
    for witness in others.voters() {
        let claimed = match claim::read_one(&witness, key).await {
            Ok(Some(claimed)) => claimed,
            Ok(None) | Err(Error::Drive(DriveError::Corrupt { .. })) => continue,
            Err(error) => return Err(error),
        };
        match held.iter_mut().find(|(other, _)| *other == claimed) {
            Some((_, votes)) => *votes += 1,
            None => held.push((claimed, 1)),
        }
    }
    Ok(held.into_iter().max_by_key(|(_, votes)| *votes).map(|(claimed, _)| claimed))
}

/// Stores a claim if the drive has none under its key; returns true if it stored it.
async fn give_claim(drive: &Drive, key: &Key, claimed: &Entry) -> Result<bool, Error> {
    let value = vec![Buffer::from_slice(&claimed.encode())];
    match drive.objects.store(key, value, STORE_IF_ABSENT).await {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::KEY_EXISTS) => Ok(false),
        Err(error) => Err(Error::command(drive, error)),
    }
}
