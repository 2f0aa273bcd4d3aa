//! [`Generation`]: the connections of an array from one moment on, with the votes that they have.
//!
//! Lost connections are replaced by another generation, in which all votes are decided again: a
//! drive may have been started meanwhile, and may have forgotten something. Work that began with
//! the connections of one generation does not change over to the next by itself. Invariant: the
//! drives of a generation are known, up or down, before anybody sees it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use csd_initiator::Error;
use csd_reactor::{Class, spawn};

use super::drive::ATTEMPTS;
use super::redial::Redial;
use super::{Array, Drive, DriveIndex, DriveSlot, membership, vote};

/// Connections and votes; see the module's text.
pub(super) struct Generation {
    pub(super) slots: Vec<DriveSlot>,
    /// True if a drive that is up has never been registered.
    pub(super) is_new: bool,
    /// Number of drives that are known to hold the lives of the voting drives.
    pub(super) registered: Cell<usize>,
    /// Drives that have lost their vote on this connection.
    pub(super) silenced: RefCell<BTreeSet<DriveIndex>>,
    /// The connections that have replaced these.
    next: OnceCell<Rc<Self>>,
}

impl Generation {
    /// Returns a generation in which every drive that is up votes.
    pub(super) fn new(slots: Vec<DriveSlot>) -> Self {
        let (registered, silenced, next) = (Cell::new(0), RefCell::default(), OnceCell::new());
        Self { slots, is_new: false, registered, silenced, next }
    }

    /// Returns one with other slots over the same connections.
    pub(super) fn with_slots(&self, slots: Vec<DriveSlot>) -> Self {
        Self { is_new: self.is_new, silenced: self.silenced.clone(), ..Self::new(slots) }
    }

    /// Asks the drives which of them vote. Connections that are lost meanwhile are made again.
    pub(super) async fn decide_votes(&mut self, array: [u8; 16], redial: &Rc<Redial>) {
        for _ in 1..ATTEMPTS {
            let lost = self.look(array).await;
            if lost.is_empty() {
                return;
            }
            self.connect(lost, redial).await;
        }
        self.look(array).await;
    }

    /// Does the same once. Returns the drives whose connections were lost.
    async fn look(&mut self, array: [u8; 16]) -> Vec<DriveIndex> {
        let up: Vec<Rc<Drive>> =
            self.slots.iter().filter_map(|slot| slot.link.as_ref().ok()).cloned().collect();
        let (mut seen, mut lost) = (vec![None; self.slots.len()], Vec::new());
        for (drive, (index, look)) in up.iter().zip(membership::look_at(&up).await) {
            match look {
                Ok(found) => seen[index] = Some(found),
                Err(error) => {
                    if let Some(Error::Lost { .. }) = drive.controller.closed() {
                        lost.push(index);
                    }
                    self.slots[index].link = Err(error.to_string());
                }
            }
        }
        let size = self.slots.iter().filter(|slot| !slot.is_vacant).count();
        let verdict = vote::decide_votes(&seen, size, array);
        self.is_new = verdict.is_new;
        self.slots.iter_mut().zip(verdict.votes).for_each(|(slot, vote)| slot.vote = vote);
        lost
    }

    /// Connects to drives once more.
    async fn connect(&mut self, lost: Vec<DriveIndex>, redial: &Rc<Redial>) {
        let dial = |index: DriveIndex| {
            let redial = Rc::clone(redial);
            (index, spawn(Class::Foreground, async move { redial.connect_soon(index).await }))
        };
        let dialing: Vec<_> = lost.into_iter().map(dial).collect();
        for (index, connected) in dialing {
            self.slots[index].link = connected.await;
        }
    }
}

impl Array {
    /// Returns the connections in use.
    pub(super) fn now(&self) -> &Generation {
        self.current()
    }

    fn current(&self) -> &Rc<Generation> {
        let mut current = &self.first;
        while let Some(next) = current.next.get().filter(|_| !self.is_pinned) {
            current = next;
        }
        current
    }

    /// Returns the same array over the connections that it has now, which are not replaced.
    pub(crate) fn pinned(&self) -> Self {
        self.over(Rc::clone(self.current()), true)
    }

    /// Returns the drives that were up at the beginning and are not now.
    pub(crate) fn lost(&self) -> Vec<DriveIndex> {
        let is_up = |slot: &DriveSlot| match &slot.link {
            Ok(drive) => drive.controller.closed().is_none(),
            Err(_) => false,
        };
        let first = DriveIndex::each(self.first.slots.iter().zip(self.slots()));
        let lost = first.filter(|(_, (first, now))| first.link.is_ok() && !is_up(now));
        lost.map(|(index, _)| index).collect()
    }

    /// Connects again to the drives whose connections were lost, and decides all votes again. Does
    /// nothing if none was lost.
    pub(crate) async fn renew(&self) {
        let _permit = self.renewing.acquire(1).await;
        let lost = self.lost();
        if lost.is_empty() {
            return;
        }
        let mut next = Generation::new(self.slots().to_vec());
        next.connect(lost, &self.redial).await;
        if self.guards.slots {
            next.decide_votes(self.uuid, &self.redial).await;
        }
        assert!(self.now().next.set(Rc::new(next)).is_ok(), "one task at a time gets here");
    }
}
