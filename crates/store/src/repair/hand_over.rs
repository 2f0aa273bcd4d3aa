//! [`hand_over`]: a drive gives what it holds to the one that takes its place.
//!
//! Every piece is read from the drive itself, compared with its digest, and stored at the same
//! location on the new drive, which compares it once more. So a replacement loses nothing that the
//! former drive can return, whatever the others hold: pieces that it lacks are computed from others
//! afterwards, by a repair. Objects without protection are copied as well.
//!
//! The array does not count the new drive yet, and nothing is written to the former one. It can be
//! interrupted at any point and run again, and called once more for what was stored meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use csd_reactor::{Class, JoinHandle, spawn};

use super::Limits;
use super::check::Checks;
use super::fleet::Fleet;
use super::known_pieces::{KnownPieces, member_units};
use super::piece::Piece;
use super::subject::Subject;
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, ObjectId, Placement};
use crate::error::{DriveError, Error};
use crate::piece::Spot;
use crate::{extent, object, sweep, unwritten};

/// Pieces that are copied at once.
const AHEAD: usize = 8;

/// Result of a hand-over; it goes on with it when it is called again.
#[derive(Clone, Debug, Default)]
pub struct HandedOver {
    /// Number and bytes of the pieces that the new drive has got.
    pub pieces: u64,
    /// Bytes of these pieces.
    pub bytes: u64,
    /// Number of pieces that the former drive lacks, by object.
    pub lacking: BTreeMap<String, u64>,
    /// True if it was asked to stop before it was done.
    pub is_interrupted: bool,
    /// Objects of which the new drive has all that the former one can return, by the identifiers
    /// of their pieces: where these lie.
    done: BTreeMap<Vec<ObjectId>, Placement>,
}

/// Copies the pieces of all objects that belong to a place from the drive `from` to the drive `to`,
/// but for those that an earlier call has copied, and deletes what that has copied of objects that
/// are gone.
///
/// # Errors
/// Those of the catalogue; a failed command of one of the two drives; [`DriveError::Corrupt`] if
/// the new drive does not return what was stored, or its blocks are another object's.
pub async fn hand_over(
    array: &Array,
    (from, to): (&Rc<Drive>, &Rc<Drive>),
    limits: &Limits,
    over: &mut HandedOver,
) -> Result<(), Error> {
    let fleet = Fleet::new(&array.with_drive(Rc::clone(to)), limits.bytes_per_s);
    let listed = object::list(array).await?;
    let known: BTreeSet<ObjectId> =
        listed.sealed.iter().chain(&listed.staged).flat_map(Entry::ids).collect();
    let begun = object::objects_on(to).await?;
    let mut work = Vec::new();
    for entry in &listed.sealed {
        let pieces = pieces(&fleet, entry, to);
        let is_done = over.done.get(&entry.own_ids()) == Some(&entry.placement);
        if !pieces.is_empty() && !is_done {
            work.push((entry, pieces));
        }
    }
    let bytes =
        |pieces: &Vec<Piece>| pieces.iter().map(|piece| u64::from(piece.bytes)).sum::<u64>();
    (limits.total)(work.iter().map(|(_, pieces)| bytes(pieces)).sum());
    for (entry, pieces) in work {
        let is_begun = entry.own_ids().iter().any(|id| begun.contains(id));
        let one = OneObject { fleet: &fleet, from, to, entry, limits, known: &known };
        let lacking = one.copy(pieces, is_begun, over).await?;
        if limits.stop.get() {
            over.is_interrupted = true;
            return Ok(());
        }
        match lacking {
            0 => drop(over.lacking.remove(&entry.name)),
            lacking => drop(over.lacking.insert(entry.name.clone(), lacking)),
        }
        over.done.insert(entry.own_ids(), entry.placement.clone());
    }
    let gone: Vec<Vec<ObjectId>> =
        over.done.keys().filter(|ids| ids.iter().any(|id| !known.contains(id))).cloned().collect();
    for ids in gone {
        for id in ids.iter().filter(|id| !known.contains(id)) {
            delete(to, *id).await?;
        }
        over.done.remove(&ids);
    }
    over.lacking.retain(|name, _| listed.sealed.iter().any(|entry| entry.name == *name));
    Ok(())
}

/// Returns the pieces of an object that belong to the place of this drive, on it.
fn pieces(fleet: &Fleet, entry: &Entry, to: &Rc<Drive>) -> Vec<Piece> {
    if let Some(subject) = Subject::new(fleet, entry, &KnownPieces::default()) {
        let here = subject.all().filter(|of| subject.drive(of.0, of.1) == to.index);
        return here.map(|(stripe, number)| subject.piece(to, stripe, number)).collect();
    }
    let layout = entry.layout();
    let here = |chunk: &u32| entry.members[layout.member(*chunk)] == to.index;
    let piece = |chunk: u32| Piece {
        number: 0,
        drive: Rc::clone(to),
        spot: Spot::of_chunk(entry, &layout, chunk),
        bytes: layout.chunk_len(chunk),
        sum: entry.sum(chunk).unwrap_or_default(),
    };
    (0..layout.chunks()).filter(here).map(piece).collect()
}

/// Deletes what a drive holds of an object.
async fn delete(drive: &Rc<Drive>, object: ObjectId) -> Result<(), Error> {
    sweep::lists(drive, object).await?;
    sweep::pieces(drive, object).await?;
    extent::release(drive, object).await
}

/// An object whose pieces are copied.
struct OneObject<'a> {
    fleet: &'a Fleet,
    from: &'a Rc<Drive>,
    to: &'a Rc<Drive>,
    entry: &'a Entry,
    limits: &'a Limits,
    /// Identifiers of all objects.
    known: &'a BTreeSet<ObjectId>,
}

impl OneObject<'_> {
    /// Copies pieces; if the copy `is_begun`, those that the new drive has are left as they are.
    /// Returns the number of those that the former drive lacks.
    async fn copy(
        &self,
        pieces: Vec<Piece>,
        is_begun: bool,
        over: &mut HandedOver,
    ) -> Result<u64, Error> {
        // Some objects that drives have written have no digests.
        let has_digests = self.entry.protected().is_some() || !self.entry.sums.is_empty();
        let checks = Checks { page_bytes: self.entry.chunk_bytes, compares: has_digests };
        let claims = pieces.iter().any(|piece| piece.spot.is_on_blocks());
        let is_unsure = claims && !has_digests && !self.owns_blocks().await?;
        if claims {
            unwritten::mark(self.to, self.entry.id).await?;
            self.claim().await?;
        }
        let held = match is_begun && has_digests {
            true => checks.run(self.fleet, &pieces).await?,
            false => vec![false; pieces.len()],
        };
        let (mut lacking, mut copied) = (0, Vec::new());
        let mut left =
            pieces.iter().zip(held).filter(|(_, is_held)| !is_held).map(|(piece, _)| piece);
        let mut pending: VecDeque<(&Piece, JoinHandle<Result<bool, Error>>)> = VecDeque::new();
        loop {
            while pending.len() < AHEAD && !self.limits.stop.get() && !is_unsure {
                let Some(piece) = left.next() else { break };
                self.fleet.pace(self.to.index, 2 * u64::from(piece.bytes)).await;
                pending.push_back((piece, self.begin(piece, has_digests)));
            }
            let Some((piece, copy)) = pending.pop_front() else { break };
            match copy.await? {
                true => copied.push(piece.clone()),
                false => lacking += 1,
            }
            self.limits.progress.add(piece.bytes.into());
        }
        if is_unsure {
            lacking = left.count() as u64;
        }
        let right = checks.run(self.fleet, &copied).await?;
        if right.contains(&false) {
            return Err(self.corrupt(self.entry, "it does not return the piece that was stored"));
        }
        over.pieces += copied.len() as u64;
        over.bytes += copied.iter().map(|piece| u64::from(piece.bytes)).sum::<u64>();
        if claims && lacking == 0 && !self.limits.stop.get() {
            unwritten::unmark(self.to, self.entry.id).await?;
        }
        Ok(lacking)
    }

    /// Begins to copy a piece; the result is false if the former drive lacks it.
    fn begin(&self, piece: &Piece, compares: bool) -> JoinHandle<Result<bool, Error>> {
        let (from, piece) = (Rc::clone(self.from), piece.clone());
        spawn(Class::Foreground, async move {
            match piece.spot.read(&from, piece.bytes).await? {
                Some(bytes) if !compares || crc32c::crc32c(&bytes) == piece.sum => {
                    piece.write(bytes).await?;
                    Ok(true)
                }
                _ => Ok(false),
            }
        })
    }

    /// Returns the units of blocks that the object has at this place.
    fn units(&self) -> Vec<u32> {
        let members = self.entry.members.iter().zip(member_units(self.entry));
        let here = members.filter(|(drive, _)| **drive == self.to.index);
        here.flat_map(|(_, units)| units).collect()
    }

    /// Returns true if the blocks on the former drive are the object's, and all written.
    async fn owns_blocks(&self) -> Result<bool, Error> {
        for unit in self.units() {
            match extent::owner(self.from, unit).await {
                Ok(Some(owner)) if owner == self.entry.id => {}
                Ok(_) | Err(Error::Drive(DriveError::Corrupt { .. })) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(!unwritten::is_marked(self.from, self.entry.id).await?)
    }

    /// Claims the object's units on the new drive. Claims that an object which is gone has left on
    /// a medium that was here before give way.
    async fn claim(&self) -> Result<(), Error> {
        debug_assert!(matches!(self.entry.placement, Placement::Block(_)));
        let key = catalogue::key(&self.entry.name);
        for unit in self.units() {
            if extent::claim_again(self.to, unit, self.entry.id, &key).await? {
                continue;
            }
            match extent::owner(self.to, unit).await? {
                Some(other) if self.known.contains(&other) => {
                    return Err(self.corrupt(self.entry, "its blocks are another object's"));
                }
                Some(gone) => delete(self.to, gone).await?,
                None => {}
            }
            if !extent::claim_again(self.to, unit, self.entry.id, &key).await? {
                return Err(self.corrupt(self.entry, "its blocks are another object's"));
            }
        }
        Ok(())
    }

    fn corrupt(&self, entry: &Entry, why: &str) -> Error {
        let (drive, object) = (self.to.name.clone(), entry.name.clone());
        Error::Drive(DriveError::Corrupt { drive, object, why: why.to_owned() })
    }
}
