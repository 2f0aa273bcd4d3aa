//! [`Fleet`]: the drives that a repair may use, and the rate at which it uses them.
//!
//! A drive that is down or has no vote takes no part: neither its pieces nor its answers count, and
//! nothing is written to it, because it may belong to another array. Invariant: a drive whose
//! connection has failed is not used again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use csd_kernels::verify;

use crate::array::{Array, Drive, DriveIndex, DriveSlot};
use crate::catalogue;
use crate::error::Error;
use crate::in_place::program_index;
use crate::pace::Pace;

/// Drives of an array, by index.
pub(super) struct Fleet {
    drives: Vec<Option<Rc<Drive>>>,
    names: Vec<String>,
    /// Reasons why drives take no part.
    away: RefCell<BTreeMap<DriveIndex, String>>,
    /// Reasons why drives could not take pieces.
    failures: RefCell<BTreeMap<DriveIndex, String>>,
    /// Index of the program `verify` of each drive, once it is known.
    programs: Vec<Cell<Option<u16>>>,
    pace: Pace,
}

impl Fleet {
    /// Returns the drives of an array that are up and vote.
    pub(super) fn new(array: &Array, bytes_per_s: Option<u64>) -> Self {
        let slots = array.slots();
        let mut drives = vec![None; slots.len()];
        for drive in array.voters() {
            drives[drive.index] = Some(Rc::clone(&drive));
        }
        let mut away = BTreeMap::new();
        let takes_no_part = |(index, slot): &(DriveIndex, &DriveSlot)| {
            drives[*index].is_none() && !slot.is_vacant()
        };
        for (index, slot) in DriveIndex::each(slots).filter(takes_no_part) {
            let why = match (slot.drive(), slot.vote()) {
                (Err(why), _) => format!("it is down: {why}"),
                (Ok(_), Err(why)) => format!("it does not vote: {why}"),
                (Ok(_), Ok(())) => "it has lost its vote".to_owned(),
            };
            away.insert(index, why);
        }
        Self {
            drives,
            names: slots.iter().map(|slot| slot.name.clone()).collect(),
            away: RefCell::new(away),
            failures: RefCell::default(),
            programs: slots.iter().map(|_| Cell::new(None)).collect(),
            pace: Pace::new(slots.len(), bytes_per_s),
        }
    }

    /// Returns a drive; `None` if it takes no part.
    pub(super) fn drive(&self, index: DriveIndex) -> Option<&Rc<Drive>> {
        let drive = self.drives.get(usize::from(index))?.as_ref();
        drive.filter(|_| !self.away.borrow().contains_key(&index))
    }

    /// Returns a drive's name.
    pub(super) fn name(&self, index: DriveIndex) -> String {
        self.names.get(usize::from(index)).cloned().unwrap_or_else(|| format!("#{index}"))
    }

    /// Returns the reason why a drive takes no part.
    pub(super) fn why(&self, index: DriveIndex) -> Option<String> {
        match self.away.borrow().get(&index) {
            None if usize::from(index) >= self.drives.len() => {
                Some("the array file does not list it".to_owned())
            }
            None if self.drives[index].is_none() => Some("it was removed".to_owned()),
            why => why.cloned(),
        }
    }

    /// Takes a drive out: one of its commands has failed in a way that says nothing about a piece.
    pub(super) fn lose(&self, index: DriveIndex, error: &Error) {
        self.away.borrow_mut().entry(index).or_insert_with(|| error.to_string());
    }

    /// Returns the bytes that have crossed the network to and from all drives.
    pub(super) fn crossed_bytes(&self) -> u64 {
        self.drives.iter().flatten().map(|drive| drive.crossed_bytes()).sum()
    }

    /// Leaves a drive out.
    pub(super) fn leave_out(&self, index: DriveIndex) {
        self.away.borrow_mut().insert(index, "it is left out".to_owned());
    }

    /// Notes the reason why a drive could not take a piece, if it is the first.
    pub(super) fn fail(&self, index: DriveIndex, why: String) {
        self.failures.borrow_mut().entry(index).or_insert(why);
    }

    /// Returns the reason why a drive could not take a piece.
    pub(super) fn failure(&self, index: DriveIndex) -> Option<String> {
        self.failures.borrow().get(&index).cloned()
    }

    /// Returns the drives that take no part, each with its reason. Before, every other drive
    /// answers a command: so no drive has restarted since its pieces were checked.
    pub(super) async fn away(&self) -> Vec<String> {
        for drive in self.drives.iter().flatten() {
            if let Err(error) = drive.objects.exist(&catalogue::key("")).await {
                self.lose(drive.index, &Error::command(drive, error));
            }
        }
        let away = self.away.borrow();
        let words = |(index, why): (&DriveIndex, &String)| match why.starts_with("drive ") {
            true => why.clone(),
            false => format!("drive {}: {why}", self.name(*index)),
        };
        away.iter().map(words).collect()
    }

    /// Returns the index of the program `verify` of a drive.
    pub(super) async fn program(&self, drive: &Drive) -> Result<u16, Error> {
        let known = &self.programs[drive.index];
        if let Some(program) = known.get() {
            return Ok(program);
        }
        let program = program_index(drive, verify::PROGRAM_ID).await?;
        known.set(Some(program));
        Ok(program)
    }

    /// Waits until a drive may read or write so many bytes more.
    pub(super) async fn pace(&self, index: DriveIndex, bytes: u64) {
        self.pace.wait(index, bytes).await;
    }
}
