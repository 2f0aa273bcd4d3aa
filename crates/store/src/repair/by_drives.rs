//! [`ByDrives`]: the drive of a lost piece fetches others from its peers, computes the piece and
//! stores it, by the program `combine`. The host sends a task and gets a number back.
//!
//! A rebuild that drives cannot do is done by the host. A drive that fails for a reason of its own,
//! such as a missing file of peers, is not asked again. Pieces on blocks are always left to the
//! host: a drive may still write when its host has ended and another object has the blocks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use csd_nvme::combine::{self, Place, Target, Task};
use csd_nvme::execute::{Output, chunk_key};
use csd_nvme::status::Status;

use super::mover::{By, ByHost, Fault, Mover, Rebuild};
use super::piece::Piece;
use crate::array::{BLOCK_NSID, Drive, OBJECTS_NSID};
use crate::error::Error;
use crate::piece::Spot;
use crate::run::program_index;

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
        let program: Result<u16, Error> = program_index(drive, combine::PROGRAM_ID).await;
        let program = program.ok();
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
    let (mut peers, mut sources) = (Vec::new(), Vec::new());
    for source in &work.sources {
        sources.push(piece(executor, source, &mut peers, work.compares));
    }
    let (decoder, mut targets) = (work.decoder(), Vec::new());
    for (wanted, target) in work.targets.iter().enumerate() {
        if matches!(target.spot, Spot::Blocks(_)) {
            return None;
        }
        let piece = piece(executor, target, &mut peers, work.compares);
        // Pieces that the stripe does not have are zeros.
        let factors = decoder.factors(wanted)[..sources.len()].to_vec();
        targets.push(Target { piece, factors });
    }
    Some(Task { sources, targets, peers })
}

/// Returns a piece as the executor finds it.
fn piece(
    executor: &Drive,
    piece: &Piece,
    peers: &mut Vec<String>,
    compares: bool,
) -> combine::Piece {
    let peer = match piece.drive.index == executor.index {
        true => 0,
        false => {
            let nqn = &piece.drive.controller.address().nqn;
            let known = peers.iter().position(|peer| peer == nqn).unwrap_or_else(|| {
                peers.push(nqn.clone());
                peers.len() - 1
            });
            u8::try_from(known + 1).expect("a stripe has at most 48 pieces")
        }
    };
    let place = match piece.spot {
        Spot::Value(id, number) => {
            Place::Value { nsid: OBJECTS_NSID, key: *chunk_key(&id.0, number).padded() }
        }
        Spot::Blocks(offset) => Place::Blocks {
            nsid: BLOCK_NSID,
            slba: offset / u64::from(piece.drive.block.block_bytes()),
        },
    };
    combine::Piece { peer, place, bytes: piece.bytes, crc32c: compares.then_some(piece.sum) }
}
