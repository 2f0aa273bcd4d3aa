//! [`ByDrives`]: the drive of a lost piece fetches others from its peers, computes the piece and
//! stores it, by the program `combine`. The host sends a task and gets a number back.
//!
//! A piece on blocks is written by its own drive only, and guarded: the drive may still write when
//! its host has ended and another object has the blocks ([`crate::guarded`]). A rebuild that drives
//! cannot do is done by the host, which looks at the object again before it writes to blocks. A
//! drive that fails for a reason of its own, such as a missing file of peers, is not asked again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use csd_nvme::vendor::combine::{self, Target, Task};
use csd_nvme::vendor::execute::Output;

use super::mover::{By, ByHost, Fault, Mover, Rebuild};
use super::piece::Piece;
use crate::array::{Drive, DriveIndex};
use crate::in_place::program_index;
use crate::peers::{Peers, is_of_piece};

/// Drives rebuild their own pieces, as far as they can.
#[derive(Default)]
pub(super) struct ByDrives {
    /// Index of the program by drive; `None` for a drive that is not asked again.
    programs: RefCell<BTreeMap<DriveIndex, Option<u16>>>,
}

impl Mover for ByDrives {
    async fn rebuild(&self, work: &Rebuild) -> Result<By, Fault> {
        for share in shares(work) {
            if !self.in_drive(&share).await {
                return match work.targets.iter().any(|piece| piece.spot.is_on_blocks()) {
                    true => Err(Fault::Look),
                    false => ByHost.rebuild(work).await,
                };
            }
        }
        Ok(By::Drives)
    }

    fn reads(&self, work: &Rebuild) -> u64 {
        shares(work).len() as u64
    }
}

impl ByDrives {
    /// Has the first target's drive do the work. Returns false if it has not.
    async fn in_drive(&self, work: &Rebuild) -> bool {
        let executor = &work.targets[0].drive;
        let task = task(executor, work);
        let Some(program) = self.program(executor).await else { return false };
        match executor.compute.execute(program, &task.execution(Output::Completion)).await {
            Ok(_) => true,
            Err(error) => {
                if !is_of_piece(error.status()) {
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

/// Divides the targets of a rebuild among drives that store them: each on blocks is stored by its
/// own drive, and the values by the first of these.
fn shares(work: &Rebuild) -> Vec<Rebuild> {
    let (on_blocks, values): (Vec<Piece>, Vec<Piece>) =
        work.targets.iter().cloned().partition(|piece| piece.spot.is_on_blocks());
    let mut shares: Vec<Vec<Piece>> = on_blocks.into_iter().map(|piece| vec![piece]).collect();
    match shares.first_mut() {
        Some(first) => first.extend(values),
        None => shares.push(values),
    }
    shares.into_iter().map(|targets| Rebuild { targets, ..work.clone() }).collect()
}

/// Returns the task of a rebuild.
fn task(executor: &Drive, work: &Rebuild) -> Task {
    let mut peers = Peers::of(executor);
    let mut named = |piece: &Piece| combine::Piece {
        peer: peers.number(&piece.drive),
        location: piece.spot.location(piece.drive.block.block_bytes()),
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
    let guards =
        |(number, target): (usize, &Piece)| work.owner.guards(number, target.spot, target.bytes);
    let guards = work.targets.iter().enumerate().flat_map(guards).collect();
    Task { sources, targets, guards, peers: peers.into_nqns() }
}
