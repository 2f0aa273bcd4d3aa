//! Repair of one stripe: chooses sources, has the bad pieces rebuilt, and lets the drives check
//! them.
//!
//! A source that turns out to be wrong becomes a target; one whose drive fails is replaced by
//! another. Ends, because every turn makes a piece good, bad or failed, or loses a drive.

use std::rc::Rc;

use super::check::Checks;
use super::fleet::Fleet;
use super::mover::{By, Fault, Mover, Rebuild};
use super::subject::{PieceState, Subject};
use crate::array::DriveIndex;
use crate::error::Error;
use crate::guarded::Owner;

/// Pieces that became good.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fixed {
    /// Number and bytes of pieces that were read and found good, or rebuilt.
    pub(super) bytes: u64,
    /// Number of pieces that were rebuilt, and their bytes.
    pub(super) rebuilt: u64,
    pub(super) rebuilt_bytes: u64,
    /// Number of those that drives have rebuilt.
    pub(super) by_drives: u64,
    /// True if pieces are left, which the host rebuilds after another look at the object.
    pub(super) is_left: bool,
}

/// A stripe that is repaired.
pub(super) struct Repair<M> {
    pub(super) fleet: Rc<Fleet>,
    pub(super) subject: Rc<Subject>,
    pub(super) mover: Rc<M>,
    pub(super) checks: Checks,
    pub(super) stripe: u32,
}

impl<M: Mover> Repair<M> {
    /// Waits until the drives may read and write what the repair probably takes. Nothing waits
    /// between the caller's look at the object and the last write.
    pub(super) async fn pace(&self) {
        let Some(work) = self.plan() else { return };
        let reads = self.mover.reads(&work);
        for source in &work.sources {
            self.fleet.pace(source.drive.index, reads * u64::from(source.bytes)).await;
        }
        for target in &work.targets {
            // It is written, and read again.
            self.fleet.pace(target.drive.index, 2 * u64::from(target.bytes)).await;
        }
    }

    /// Rebuilds all bad pieces whose drives take part, as far as enough others are there.
    ///
    /// # Errors
    /// [`Error::ComputeThread`].
    pub(super) async fn run(&self) -> Result<Fixed, Error> {
        let mut fixed = Fixed::default();
        while let Some(work) = self.plan() {
            match self.mover.rebuild(&work).await {
                Ok(by) => {
                    for source in &work.sources {
                        fixed.bytes += self.good(source.number);
                    }
                    for target in &work.targets {
                        if self.check(target.number).await {
                            let bytes = self.good(target.number);
                            fixed.rebuilt += 1;
                            fixed.by_drives += u64::from(by == By::Drives);
                            fixed.rebuilt_bytes += bytes;
                            fixed.bytes += bytes;
                        }
                    }
                }
                Err(Fault::Wrong(number)) => self.set(number, PieceState::Bad),
                Err(Fault::Source(number, error)) => {
                    self.fleet.lose(self.drive(number), &error);
                }
                Err(Fault::Target(number, error)) if error.is_lost() => {
                    self.fleet.lose(self.drive(number), &error);
                }
                Err(Fault::Target(number, error)) => self.fail(number, error.to_string()),
                Err(Fault::Entry) => {
                    for target in &work.targets {
                        let why = "other pieces do not give what its entry says".to_owned();
                        self.fail(target.number, why);
                    }
                }
                Err(Fault::Look) => {
                    fixed.is_left = true;
                    break;
                }
                Err(Fault::ComputeThread) => return Err(Error::ComputeThread),
            }
        }
        Ok(fixed)
    }

    /// Returns the next rebuild; `None` if no bad piece is left, or too few others.
    fn plan(&self) -> Option<Rebuild> {
        let (subject, fleet) = (&self.subject, &self.fleet);
        let in_state = |state| subject.in_state(fleet, self.stripe, state);
        let bad = in_state(PieceState::Bad);
        let needed = subject.stripes().chunks(self.stripe).len();
        let mut sources = [in_state(PieceState::Good), in_state(PieceState::Unknown)].concat();
        sources.truncate(needed);
        if bad.is_empty() || sources.len() < needed {
            return None;
        }
        let piece = |number: &usize| {
            let drive = fleet.drive(self.drive(*number)).expect("pieces of drives that take part");
            subject.piece(drive, self.stripe, *number)
        };
        Some(Rebuild {
            code: subject.code().clone(),
            sources: sources.iter().map(piece).collect(),
            empty: (needed..subject.code().data()).collect(),
            targets: bad.iter().map(piece).collect(),
            owner: Owner::of(&subject.entry),
            compares: self.checks.compares,
        })
    }

    /// Lets the drive compare a stored piece with its digest.
    async fn check(&self, number: usize) -> bool {
        let index = self.drive(number);
        let Some(drive) = self.fleet.drive(index) else { return false };
        let piece = self.subject.piece(drive, self.stripe, number);
        match self.checks.are_right(&self.fleet, &[piece]).await {
            Ok(true) => true,
            Ok(false) => {
                self.fail(number, "it does not return the piece that was stored".to_owned());
                false
            }
            Err(error) => {
                self.fleet.lose(index, &error);
                false
            }
        }
    }

    fn drive(&self, number: usize) -> DriveIndex {
        self.subject.drive(self.stripe, number)
    }

    fn set(&self, number: usize, state: PieceState) {
        self.subject.set(self.stripe, number, state);
    }

    /// Makes a piece good; returns its bytes if it was not good before.
    fn good(&self, number: usize) -> u64 {
        let before = self.subject.state(self.stripe, number);
        self.set(number, PieceState::Good);
        match before {
            PieceState::Good => 0,
            _ => self.subject.bytes(self.stripe, number).into(),
        }
    }

    fn fail(&self, number: usize, why: String) {
        self.set(number, PieceState::Failed);
        self.fleet.fail(self.drive(number), why);
    }
}
