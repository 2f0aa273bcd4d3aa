//! [`ByDrives`]: the drive of a lost piece fetches others from its peers, computes the piece and
//! stores it, by the program `combine`. The host sends a task and gets a number back.
//!
//! A rebuild that drives cannot do is done by the host. A drive that fails for a reason of its own,
//! such as a missing file of peers, is not asked again. Pieces on blocks are always left to the
//! host: a drive may still write when its host has ended and another object has the blocks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use csd_nvme::combine::{self, Target, Task};
use csd_nvme::execute::Output;
use csd_nvme::status::Status;

use super::mover::{By, ByHost, Fault, Mover, Rebuild};
use super::piece::Piece;
use crate::array::Drive;
use crate::in_place::program_index;
use crate::peers::Peers;
use crate::piece::Spot;

/// Drives rebuild their own pieces, as far as they can.
#[derive(Default)]
pub(super) struct ByDrives {
    /// Index of the program by drive; `None` for a drive that is not asked again.
    programs: RefCell<BTreeMap<usize, Option<u16>>>,
}

impl Mover for ByDrives {
    async fn rebuild(&self, work: &Rebuild) -> Result<By, Fault> {
        match self.in_drive(work).await {
            true => Ok(By::Drives),
            false => ByHost.rebuild(work).await,
        }
    }
}

impl ByDrives {
    /// Has the first target's drive do the work. Returns false if it has not.
    async fn in_drive(&self, work: &Rebuild) -> bool {
        let executor = &work.targets[0].drive;
        let Some(task) = task(executor, work) else { return false };
        let Some(program) = self.program(executor).await else { return false };
        match executor.compute.execute(program, &task.execution(Output::Completion)).await {
            Ok(_) => true,
            Err(error) => {
                if !is_of_source(error.status()) {
                    self.programs.borrow_mut().insert(executor.index, None);
                }
                false
            }
        }
    }

    /// Returns the index of the program on a drive that can be asked.
    async fn program(&self, drive: &Drive) -> Option<u16> {
        let known = self.programs.borrow().get(&drive.index).copied();
        if let Some(known) = known {
            return known;
        }
        let program = program_index(drive, combine::PROGRAM_ID).await.ok();
        self.programs.borrow_mut().insert(drive.index, program);
        program
    }
}

/// Returns true if an execution has failed because of one of its sources: the host finds out which.
fn is_of_source(status: Option<Status>) -> bool {
    let of_source =
        [Status::SOURCE_MISSING, Status::UNRECOVERED_ERROR, Status::UNRECOVERED_READ_ERROR];
    status.is_some_and(|status| of_source.contains(&status))
}

/// Returns the task of a rebuild; `None` if a target is on blocks.
fn task(executor: &Drive, work: &Rebuild) -> Option<Task> {
    let is_on_blocks = |target: &Piece| matches!(target.spot, Spot::Blocks(_));
    if work.targets.iter().any(is_on_blocks) {
        return None;
    }
    let mut peers = Peers::of(executor);
    let mut named = |piece: &Piece| combine::Piece {
        peer: peers.number(&piece.drive),
        place: piece.spot.combined(piece.drive.block.block_bytes()),
        bytes: piece.bytes,
        crc32c: work.compares.then_some(piece.sum),
    };
    let sources: Vec<combine::Piece> = work.sources.iter().map(&mut named).collect();
    let decoder = work.decoder();
    let target = |(wanted, target): (usize, &Piece)| {
        // Pieces that the stripe does not have are zeros.
        let factors = decoder.factors(wanted)[..sources.len()].to_vec();
        Target { piece: named(target), factors }
    };
    let targets = work.targets.iter().enumerate().map(target).collect();
    Some(Task { sources, targets, peers: peers.into_nqns() })
}
