//! Repair: finds pieces of protected objects that are missing or wrong, rebuilds them from others
//! at the places where they belong, and counts one only after its drive has compared it with its
//! digest.
//!
//! A stripe loses redundancy with each piece that is lost, and its object once more are lost than
//! it has parity pieces. So what is lost is soon reconstructed from the rest, as in a RAID
//! (Patterson, Gibson, Katz, "A case for redundant arrays of inexpensive disks (RAID)", 1988).
//!
//! First all objects are surveyed by names alone, and what drives lack is rebuilt, the stripes with
//! the least redundancy first. Then the drives read every piece that was not read so far, and what
//! they find wrong is rebuilt, too. At last pieces without page lists get some, and the object's
//! entry is changed: pieces that it lists as missing and that are good are no longer listed.
//!
//! A repair keeps no record of its own: it can be interrupted at any point and run again, and
//! several can run at once, because a piece has one place and one content as long as its object
//! exists. Pieces of an object that is removed meanwhile are deleted again. Invariants: bytes are
//! written only to the place of a piece in a sealed entry, on a drive that votes; a repair that
//! reports no missing piece has seen each piece good.

mod by_drives;
mod change_entry;
mod check;
mod endangered;
mod fleet;
mod hand_over;
mod known_pieces;
mod mover;
mod page_lists;
mod piece;
mod rebuild_stripes;
mod report;
mod stripe;
mod subject;
mod units;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use csd_reactor::{Class, Instant, JoinHandle, now, spawn};

use crate::array::{Array, DriveIndex};
use crate::catalogue::{Entry, ObjectId, Placement};
use crate::error::Error;
use crate::error::NameError;
use crate::object::{self, Progress};
use crate::unwritten;
use by_drives::ByDrives;
use change_entry::{Changed, change_entry};
use check::Checks;
use fleet::Fleet;
use known_pieces::KnownPieces;
use mover::{ByHost, Mover};
use subject::{PieceState, Subject};

pub use endangered::endangered;
pub use hand_over::{HandedOver, hand_over};
pub use report::{Lost, Missing, Repaired};

/// Bytes of stripes that are rebuilt at once, unless one stripe is longer.
const AHEAD_BYTES: usize = 64 << 20;
/// Most stripes that are rebuilt at once.
const AHEAD: usize = 16;
/// Pieces that a drive checks before they are counted.
const CHECKED_AT_ONCE: usize = 256;
/// Attempts to load an object whose blocks other repairs move.
const LOADS: usize = 4;

/// The side that computes lost pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// The drives that need them, as far as they can.
    #[default]
    Drives,
    /// The host.
    Host,
}

/// Limits of a repair.
#[derive(Clone)]
pub struct Limits {
    /// The side that computes lost pieces.
    pub on: On,
    /// Bytes that each drive reads or writes in a second; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// True once the repair must end early.
    pub stop: Rc<Cell<bool>>,
    /// Callback for the bytes of all pieces, once they are known.
    pub total: Rc<dyn Fn(u64)>,
    /// Callback for the bytes of pieces that are good.
    pub progress: Progress,
}

/// Repairs these objects, of which those without protection are only looked for.
///
/// A drive that is down, fails or is full is no error: its pieces are missing. An object that
/// cannot be repaired keeps no other one from it ([`Repaired::failed`]).
pub async fn repair(array: &Array, entries: &[Entry], limits: &Limits) -> Repaired {
    match limits.on {
        On::Drives => repair_by(array, entries, limits, ByDrives::default()).await,
        On::Host => repair_by(array, entries, limits, ByHost).await,
    }
}

async fn repair_by<M: Mover + 'static>(
    array: &Array,
    entries: &[Entry],
    limits: &Limits,
    mover: M,
) -> Repaired {
    let fleet = Rc::new(Fleet::new(array, limits.bytes_per_s));
    let crossed_bytes = fleet.crossed_bytes();
    let (mover, kept, found) = (Rc::new(mover), BTreeMap::new(), Repaired::default());
    let begun = now();
    let mut repair = Repair { array, fleet, limits: limits.clone(), mover, kept, found, begun };
    let work = repair.survey(entries).await;
    for ((_, name), (id, stripes)) in work {
        if !limits.stop.get() {
            let done = repair.rebuild(&name, id, &stripes).await;
            repair.note(&name, done);
        }
    }
    for entry in entries {
        if !limits.stop.get() {
            let done = repair.finish(&entry.name).await;
            repair.note(&entry.name, done);
        }
    }
    repair.found.away = repair.fleet.away().await;
    repair.found.crossed_bytes = repair.fleet.crossed_bytes() - crossed_bytes;
    repair.found.is_interrupted = limits.stop.get();
    repair.found
}

/// Stripes to rebuild of an object, by their redundancy and its name.
type Work = BTreeMap<(i32, String), (ObjectId, Vec<u32>)>;

/// A running repair.
struct Repair<'a, M> {
    array: &'a Array,
    fleet: Rc<Fleet>,
    limits: Limits,
    mover: Rc<M>,
    /// States of pieces of objects that were worked on, and the placement to which they belong.
    kept: BTreeMap<ObjectId, (Placement, Vec<PieceState>)>,
    found: Repaired,
    begun: Instant,
}

impl<M: Mover + 'static> Repair<'_, M> {
    /// Looks for the names of all pieces.
    async fn survey(&mut self, entries: &[Entry]) -> Work {
        let (mut work, mut total) = (Work::new(), 0);
        for entry in entries {
            let known = KnownPieces::read(&self.fleet, entry).await;
            let Some(subject) = Subject::new(&self.fleet, entry, &known) else {
                let looked = self.look_at_unprotected(entry, &known).await;
                self.note(&entry.name, looked);
                continue;
            };
            total += subject.bytes_of_all();
            for (margin, stripe) in subject.bad_stripes(&self.fleet) {
                let of_object = work.entry((margin, entry.name.clone()));
                of_object.or_insert((entry.id, Vec::new())).1.push(stripe);
            }
        }
        (self.limits.total)(total);
        work
    }

    /// Notes why an object could not be repaired, once; the others can.
    fn note(&mut self, name: &str, done: Result<(), Error>) {
        if let Err(error) = done
            && self.found.failed.iter().all(|(other, _)| other != name)
        {
            self.found.failed.push((name.to_owned(), error.to_string()));
        }
    }

    /// Notes which chunks of an object without protection are not there.
    async fn look_at_unprotected(
        &mut self,
        entry: &Entry,
        known: &KnownPieces,
    ) -> Result<(), Error> {
        let mut found = Repaired::default();
        found.look_at_unprotected(&self.fleet, entry, known);
        // Chunks of an object that was removed since are gone.
        let is_there = match object::lookup(self.array, &entry.name).await {
            _ if found.missing.is_empty() => true,
            Ok(current) => current.id == entry.id,
            Err(Error::Name(NameError::Missing { .. })) => false,
            Err(error) => return Err(error),
        };
        if is_there {
            self.found.unprotected += 1;
            self.found.missing.extend(found.missing);
            self.found.lost.extend(found.lost);
        }
        Ok(())
    }

    /// Rebuilds the bad pieces of these stripes, if the name still is that of their object: another
    /// one has stripes of its own, which [`Self::finish`] looks at.
    async fn rebuild(&mut self, name: &str, id: ObjectId, stripes: &[u32]) -> Result<(), Error> {
        let Some(subject) = self.load(name).await?.filter(|subject| subject.entry.id == id) else {
            return Ok(());
        };
        self.rebuild_stripes(&subject, stripes).await?;
        self.close(&subject).await?;
        let states = (subject.entry.placement.clone(), subject.states());
        self.kept.insert(subject.entry.id, states);
        Ok(())
    }

    /// Lets the drives read all pieces that were not read yet, rebuilds the bad ones, and takes
    /// stock.
    async fn finish(&mut self, name: &str) -> Result<(), Error> {
        let Some(subject) = self.load(name).await? else { return Ok(()) };
        self.kept.remove(&subject.entry.id);
        self.check(&subject).await;
        let bad: Vec<u32> =
            subject.bad_stripes(&self.fleet).into_iter().map(|(_, stripe)| stripe).collect();
        self.rebuild_stripes(&subject, &bad).await?;
        self.list_pages(&subject).await?;
        self.close(&subject).await?;
        if !subject.is_gone.get() && !self.limits.stop.get() {
            self.found.take_stock(&self.fleet, &subject);
        }
        Ok(())
    }

    /// Returns a protected object as it is now, with the states of its pieces so far. Its blocks
    /// have all their units again.
    async fn load(&self, name: &str) -> Result<Option<Rc<Subject>>, Error> {
        for _ in 0..LOADS {
            let looked = now();
            let mut entry = match object::lookup(self.array, name).await {
                Err(Error::Name(NameError::Missing { .. })) => return Ok(None),
                entry => entry?,
            };
            let known = KnownPieces::read(&self.fleet, &entry).await;
            let Some(subject) = Subject::new(&self.fleet, &entry, &known) else {
                return Ok(None);
            };
            match units::settle(self.array, &self.fleet, &subject, &known).await? {
                None => {}
                Some(Changed::Done(revised)) => entry = *revised,
                Some(Changed::Moved) => continue,
                Some(Changed::Gone) => {
                    // With the units that it has just got.
                    object::sweep_ids(self.array, entry.own_ids()).await?;
                    return Ok(None);
                }
            }
            let subject = Subject::new(&self.fleet, &entry, &known);
            if let (Some(subject), Some((placement, states))) = (&subject, self.kept.get(&entry.id))
                && *placement == entry.placement
            {
                subject.remember(states);
            }
            if let Some(subject) = &subject {
                subject.looked.set(looked);
            }
            return Ok(subject.map(Rc::new));
        }
        Err(Error::Name(NameError::Overtaken { name: name.to_owned() }))
    }

    fn checks(&self, subject: &Subject) -> Checks {
        checks_of(self.array, subject)
    }

    /// Lets all drives check their pieces at once.
    async fn check(&self, subject: &Rc<Subject>) {
        check_all(&self.fleet, subject, self.checks(subject), &self.limits).await;
    }

    /// Revises the entry of an object that was worked on. If the object is gone, deletes what was
    /// stored for it since.
    async fn close(&mut self, subject: &Subject) -> Result<(), Error> {
        let change = |entry: &mut Entry| {
            let Some(protection) = &mut entry.protection else { return };
            let (scheme, parity) = (protection.scheme, &mut protection.parity);
            for (stripe, number) in subject.all() {
                if subject.state(stripe, number) == PieceState::Good {
                    parity.iter_mut().for_each(|parity| {
                        parity.missing.remove(scheme, stripe, number);
                    });
                }
            }
        };
        match change_entry(self.array, &subject.entry, change).await {
            Ok(Changed::Done(_)) => self.unmark(subject).await,
            // Pieces were checked at places that are no longer theirs.
            Ok(Changed::Moved) => subject.forget(),
            // Too few drives vote for this name. They are among those that the result names.
            Err(Error::Name(NameError::Writers { .. })) => {}
            Err(error) => return Err(error),
            Ok(Changed::Gone) => {
                subject.is_gone.set(true);
                object::sweep_ids(self.array, subject.entry.own_ids()).await?;
            }
        }
        Ok(())
    }

    /// Deletes the marks of drives to which all chunks were written again.
    async fn unmark(&self, subject: &Subject) {
        for index in subject.written_again() {
            let Some(drive) = self.fleet.drive(index) else { continue };
            if let Err(error) = unwritten::unmark(drive, subject.entry.id).await {
                self.fleet.lose(index, &error);
            }
        }
    }
}

/// Returns how the pieces of an object are checked.
fn checks_of(array: &Array, subject: &Subject) -> Checks {
    Checks { page_bytes: subject.entry.chunk_bytes, compares: array.guards().digests }
}

/// Lets all drives check their pieces of an object that were not read yet, at once.
async fn check_all(fleet: &Rc<Fleet>, subject: &Rc<Subject>, checks: Checks, limits: &Limits) {
    let mut by_drive: BTreeMap<DriveIndex, Vec<(u32, usize)>> = BTreeMap::new();
    for (stripe, number) in subject.all() {
        if subject.state(stripe, number) == PieceState::Unknown {
            by_drive.entry(subject.drive(stripe, number)).or_default().push((stripe, number));
        }
    }
    let begin = |(index, pieces): (DriveIndex, Vec<(u32, usize)>)| {
        let (fleet, subject, limits) = (Rc::clone(fleet), Rc::clone(subject), limits.clone());
        spawn(Class::Foreground, async move {
            check_drive(&fleet, &subject, checks, (index, &pieces), &limits).await;
        })
    };
    let checking: Vec<JoinHandle<()>> = by_drive.into_iter().map(begin).collect();
    for done in checking {
        done.await;
    }
}

/// Lets one drive check its pieces, and sets their states.
async fn check_drive(
    fleet: &Fleet,
    subject: &Subject,
    checks: Checks,
    (index, pieces): (DriveIndex, &[(u32, usize)]),
    limits: &Limits,
) {
    for some in pieces.chunks(CHECKED_AT_ONCE) {
        let Some(drive) = fleet.drive(index).filter(|_| !limits.stop.get()) else { return };
        let of = |(stripe, number): &(u32, usize)| subject.piece(drive, *stripe, *number);
        let checked = checks.run(fleet, &some.iter().map(of).collect::<Vec<_>>()).await;
        let right = match checked {
            Ok(right) => right,
            Err(error) => return fleet.lose(index, &error),
        };
        let mut bytes = 0;
        for (&(stripe, number), is_right) in some.iter().zip(right) {
            subject.set(stripe, number, if is_right { PieceState::Good } else { PieceState::Bad });
            bytes += if is_right { u64::from(subject.bytes(stripe, number)) } else { 0 };
        }
        limits.progress.add(bytes);
    }
}
