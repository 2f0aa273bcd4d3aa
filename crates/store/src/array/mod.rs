//! An array: drives used together, as one core sees them.
//!
//! Connects to all drives at once and stays usable while a quorum answers. Does not retry a drive
//! that is down, and hides none: every error names the drive. Invariants: a drive keeps its index,
//! its place in the array file, whether it is up or down; a connection is one life of its drive;
//! votes are decided again with every set of connections (`generation`).

mod array_folder;
mod damage;
mod drive;
mod drive_index;
mod drive_record;
mod error;
mod file;
mod generation;
pub(crate) mod membership;
mod plan;
mod quorum;
mod record;
mod redial;
mod slot;
mod vote;
mod writers;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::{Class, Semaphore, spawn};

use drive::{PlannedDrive, open};
use generation::Generation;

pub use array_folder::{ArrayFolder, DEFAULT_FOLDER};
pub use drive::Drive;
pub use drive::words;
pub use drive_index::{DRIVES_MAX, DriveIndex};
pub use drive_record::{DriveOptions, DriveRecord, IN_MEMORY, Words};
pub use error::Error;
pub use file::{ArrayFile, DEFAULT_PATH, FileError, OsRecord, SCHEMA};
pub use plan::Plan;
pub use quorum::Quorum;
pub use record::{Lives, Roster};
pub(crate) use redial::Redial;
pub use slot::DriveSlot;
pub(crate) use slot::drive as drive_of;
pub use writers::Writers;

pub use csd_nvme::vendor::{
    NSID_BLOCK as BLOCK_NSID, NSID_COMPUTE as COMPUTE_NSID, NSID_OBJECTS as OBJECTS_NSID,
};

/// Drives used together.
pub struct Array {
    /// The connections that it began with; others may have replaced them.
    first: Rc<Generation>,
    /// True if it stays with these.
    is_pinned: bool,
    patience: Duration,
    uuid: [u8; 16],
    guards: Guards,
    redial: Rc<Redial>,
    /// Held while lost connections are replaced.
    renewing: Semaphore,
    /// Damaged copies of names that were met, in words.
    damage: Rc<RefCell<BTreeSet<String>>>,
}

/// Guards against wrong answers. Tests switch one off to show that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// Drives refuse entries that are older than their own.
    pub fence: bool,
    /// Drives that have forgotten something do not vote.
    pub slots: bool,
    /// Chunks are compared with their digests.
    pub digests: bool,
}

/// All guards.
pub const GUARDED: Guards = Guards { fence: true, slots: true, digests: true };

/// Time that a writer of a name waits for another writer that has begun to change it, before it
/// takes that writer for interrupted.
const PATIENCE: Duration = Duration::from_secs(2);

impl Array {
    /// Connects to all drives at once, and waits until every one has answered or failed. Finds out
    /// which of them vote.
    pub async fn connect(plan: &Plan, options: &Options) -> Self {
        Self::connect_with(plan, options, GUARDED).await
    }

    /// Connects like [`Self::connect`], with only some guards.
    pub async fn connect_with(plan: &Plan, options: &Options, guards: Guards) -> Self {
        let mut first = connect_all(plan, options).await;
        if guards.slots {
            first.decide_votes(plan.uuid, &Redial::new(plan, options)).await;
        }
        Self { guards, ..Self::new(plan, options, first) }
    }

    /// Connects to all drives without asking which of them vote: for work that does not use the
    /// catalogue.
    pub async fn connect_drives(plan: &Plan, options: &Options) -> Self {
        Self::new(plan, options, connect_all(plan, options).await)
    }

    fn new(plan: &Plan, options: &Options, first: Generation) -> Self {
        let (first, is_pinned, renewing) = (Rc::new(first), false, Semaphore::new(1));
        let (patience, uuid, guards) = (PATIENCE, plan.uuid, GUARDED);
        let (redial, damage) = (Redial::new(plan, options), Rc::default());
        Self { first, is_pinned, patience, uuid, guards, redial, renewing, damage }
    }

    /// Sets the time that a writer of a name waits for another writer that has begun to change it,
    /// before it takes that writer for interrupted. It does not affect which of the two gets the
    /// name.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the time set by [`Self::with_patience`].
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the array of the drives at the first `places`, over the same connections.
    #[must_use]
    pub fn first(&self, places: usize) -> Self {
        self.of(self.slots()[..places].to_vec())
    }

    /// Returns the same array, in which the drive with this index has no vote.
    #[must_use]
    pub(crate) fn without_vote(&self, index: DriveIndex) -> Self {
        let mut slots = self.slots().to_vec();
        slots[index].vote = Err("it is being rebuilt".to_owned());
        self.of(slots)
    }

    /// Returns the same array without the drive with this index, whose place is vacant.
    #[must_use]
    pub fn without(&self, index: DriveIndex) -> Self {
        let mut slots = self.slots().to_vec();
        slots[index] = DriveSlot::vacant(index);
        self.of(slots)
    }

    /// Returns the same array with this drive in its place, where it has a vote.
    #[must_use]
    pub(crate) fn with_drive(&self, drive: Rc<Drive>) -> Self {
        let mut slots = self.slots().to_vec();
        let (name, url, index) = (drive.name.clone(), drive.url.clone(), drive.index);
        slots[index] = DriveSlot { name, url, link: Ok(drive), vote: Ok(()), is_vacant: false };
        let array = self.of(slots);
        array.now().silenced.borrow_mut().remove(&index);
        array
    }

    fn of(&self, slots: Vec<DriveSlot>) -> Self {
        self.over(Rc::new(self.now().with_slots(slots)), false)
    }

    fn over(&self, first: Rc<Generation>, is_pinned: bool) -> Self {
        let renewing = Semaphore::new(1);
        let (patience, uuid, guards) = (self.patience, self.uuid, self.guards);
        let (redial, damage) = (Rc::clone(&self.redial), Rc::clone(&self.damage));
        Self { first, is_pinned, patience, uuid, guards, redial, renewing, damage }
    }

    /// Returns how to connect to its drives once more.
    pub(crate) fn redial(&self) -> Rc<Redial> {
        Rc::clone(&self.redial)
    }

    /// Returns the guards in force.
    #[must_use]
    pub(crate) fn guards(&self) -> Guards {
        self.guards
    }

    /// Returns every drive's slot, by place; among them are vacant ones.
    #[must_use]
    pub fn slots(&self) -> &[DriveSlot] {
        &self.now().slots
    }

    /// Returns the slot of the drive with this index; `None` if the array file does not list it.
    #[must_use]
    pub fn slot(&self, index: DriveIndex) -> Option<&DriveSlot> {
        self.slots().get(usize::from(index))
    }

    /// Returns the slots that have a drive, in the order of the array file.
    pub fn occupied(&self) -> impl Iterator<Item = &DriveSlot> {
        self.slots().iter().filter(|slot| !slot.is_vacant)
    }

    /// Returns the number of drives.
    #[must_use]
    pub fn size(&self) -> usize {
        self.occupied().count()
    }

    /// Returns the data of all commands of all drives so far, in both directions, bytes.
    pub(crate) fn crossed_bytes(&self) -> u64 {
        self.drives().map(|drive| drive.crossed_bytes()).sum()
    }

    /// Returns the drives that are up.
    pub fn drives(&self) -> impl Iterator<Item = &Rc<Drive>> {
        self.slots().iter().filter_map(|slot| slot.link.as_ref().ok())
    }

    /// Returns the drives whose answers about the catalogue count.
    #[must_use]
    pub fn voters(&self) -> Vec<Rc<Drive>> {
        let Generation { slots, silenced, .. } = self.now();
        let votes = |drive: &&Rc<Drive>| {
            slots[drive.index].vote.is_ok() && !silenced.borrow().contains(&drive.index)
        };
        self.drives().filter(votes).cloned().collect()
    }

    /// Returns the indices of [`Self::voters`].
    #[must_use]
    pub fn voting(&self) -> Vec<DriveIndex> {
        self.voters().iter().map(|drive| drive.index).collect()
    }

    /// Takes a drive's vote for the rest of this connection.
    fn silence(&self, index: DriveIndex) {
        self.now().silenced.borrow_mut().insert(index);
    }

    /// Returns the drive with this index.
    ///
    /// # Errors
    /// [`Error::Down`].
    pub fn drive(&self, index: DriveIndex) -> Result<&Rc<Drive>, Error> {
        drive_of(self.slots(), index)
    }

    /// Returns the quorums of the catalogue.
    #[must_use]
    pub fn quorum(&self) -> Quorum {
        self.quorum_of(0)
    }

    /// Returns the quorums of a name that must survive the loss of so many drives.
    #[must_use]
    pub fn quorum_of(&self, losses: usize) -> Quorum {
        Quorum::new(self.size(), losses)
    }

    /// Returns the drives that are down or do not vote, each with its reason.
    #[must_use]
    pub fn down(&self) -> Vec<String> {
        self.occupied()
            .filter_map(|slot| {
                let (name, url) = (&slot.name, &slot.url);
                match (&slot.link, &slot.vote) {
                    (Err(why), _) => Some(format!("drive {name} ({url}) is down: {why}")),
                    (Ok(_), Err(why)) => Some(format!(
                        "drive {name} ({url}) does not vote: {why}; {}",
                        vote::remedy(name, why)
                    )),
                    (Ok(_), Ok(())) => None,
                }
            })
            .collect()
    }

    /// Checks that a majority is up and votes, which writers need.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn require_majority(&self) -> Result<(), Error> {
        self.require(self.quorum().majority())
    }

    /// Checks that as many drives are up and vote as readers need.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn require_readers(&self) -> Result<(), Error> {
        self.require(self.readers())
    }

    /// Returns the number of drives that must answer a reader: a read quorum, or a majority while
    /// there is a drive that was never registered.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers_of(0)
    }

    /// Returns the number of drives that must answer a reader of a name that must survive the loss
    /// of so many drives.
    #[must_use]
    pub fn readers_of(&self, losses: usize) -> usize {
        let quorum = self.quorum_of(losses);
        if self.now().is_new { quorum.majority().max(quorum.read()) } else { quorum.read() }
    }

    /// Checks that so many drives are up and vote.
    pub(crate) fn require(&self, needed: usize) -> Result<(), Error> {
        if self.voters().len() >= needed { Ok(()) } else { Err(self.too_few(needed)) }
    }

    /// Returns the error of a command that needs so many drives.
    pub(crate) fn too_few(&self, needed: usize) -> Error {
        let (up, drives) = (self.voters().len(), self.size());
        Error::TooFew { up, drives, needed, down: self.down() }
    }

    /// Closes all connections in order.
    pub async fn disconnect(&self) {
        for slot in self.slots() {
            if let Ok(drive) = &slot.link {
                drive.controller.clone().disconnect().await;
            }
        }
    }
}

/// Connects to all drives of a plan at once.
async fn connect_all(plan: &Plan, options: &Options) -> Generation {
    let links: Vec<_> = DriveIndex::each(&plan.drives)
        .map(|(index, planned)| {
            let (planned, options) = (planned.clone()?, options.clone());
            let opening = async move { open(index, &planned, &options).await };
            Some(spawn(Class::Foreground, opening))
        })
        .collect();
    let mut slots = Vec::with_capacity(links.len());
    for (place, (planned, link)) in DriveIndex::each(plan.drives.iter().zip(links)) {
        slots.push(match (planned, link) {
            (Some(PlannedDrive { name, url, .. }), Some(link)) => {
                let (name, url, link) = (name.clone(), url.clone(), link.await.map(Rc::new));
                DriveSlot { name, url, link, vote: Ok(()), is_vacant: false }
            }
            _ => DriveSlot::vacant(place),
        });
    }
    Generation::new(slots)
}
