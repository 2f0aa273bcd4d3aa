//! Chunks of a whole object that drives fetch to blocks of their own.
//!
//! The drive that has the object sends parity, and no chunks to blocks: a write that comes late
//! could reach a unit that belongs to another object by then. The drive of each chunk reads it, and
//! writes it only while it has the claim of its unit ([`crate::guarded`]).

use std::rc::Rc;

use csd_nvme::combine::{Piece, Target, Task};
use csd_nvme::execute::Output;
use csd_nvme::status::Status;
use csd_reactor::{Class, spawn};

use super::Error;
use super::encoding::Encoding;
use super::in_drives::InDrives;
use crate::array::{Drive, words};
use crate::guarded::Owner;
use crate::peers::Peers;
use crate::piece::Spot;

impl Encoding {
    /// Returns the pieces of a stripe that their own drives fetch.
    pub(super) fn pulled(&self, stripe: u32) -> impl Iterator<Item = usize> {
        let chunks = if self.writes_blocks() { self.stripes.chunks(stripe).len() } else { 0 };
        0..chunks
    }

    /// Returns the pieces of a stripe that its encoder stores.
    pub(super) fn sent(&self, stripe: u32) -> impl Iterator<Item = usize> {
        let first = self.pulled(stripe).count();
        self.written(stripe).filter(move |piece| *piece >= first)
    }

    /// Has drives fetch the chunks of a stripe, which have these digests. Returns true once all are
    /// stored, false if a drive has not stored its own.
    pub(super) async fn pull(
        self: &Rc<Self>,
        drives: &Rc<InDrives>,
        stripe: u32,
        sums: &[u32],
    ) -> bool {
        let begin = |piece: usize| {
            let (work, drives, sum) = (Rc::clone(self), Rc::clone(drives), sums[piece]);
            spawn(
                Class::Foreground,
                async move { work.pull_one(&drives, (stripe, piece), sum).await },
            )
        };
        let pulling: Vec<_> = self.pulled(stripe).map(begin).collect();
        let mut all = true;
        for pulled in pulling {
            all &= pulled.await;
        }
        all
    }

    /// Has a drive fetch a chunk. Returns true if it has.
    async fn pull_one(&self, drives: &InDrives, (stripe, piece): (u32, usize), sum: u32) -> bool {
        let Ok(drive) = self.drive(stripe, piece) else { return false };
        let Ok(task) = self.pull_task(drive, (stripe, piece), sum) else { return false };
        let why = match drives.index(drive).await {
            Ok(index) => {
                let execution = task.execution(Output::Completion);
                match drive.compute.execute(index, &execution).await {
                    Ok(_) => return true,
                    // The claim is gone, which is no fault of the drive.
                    Err(error) if error.status() == Some(Status::COMPARE_FAILURE) => return false,
                    Err(error) => words(&error),
                }
            }
            Err(why) => why,
        };
        drives.gives_up(drive, &why);
        false
    }

    /// Returns the task by which a chunk's drive fetches it.
    fn pull_task(
        &self,
        drive: &Drive,
        (stripe, piece): (u32, usize),
        sum: u32,
    ) -> Result<Task, Error> {
        let (mut peers, crc32c) = (Peers::of(drive), Some(sum));
        let (origin, entry) = self.source(stripe, piece)?;
        let chunk = self.stripes.chunks(stripe)[piece];
        let from = Spot::of_chunk(entry, &entry.layout(), chunk);
        let (to, bytes) = self.place(stripe, piece);
        let place = from.combined(origin.block.block_bytes());
        let source = Piece { peer: peers.number(origin), place, bytes, crc32c };
        let place = to.combined(drive.block.block_bytes());
        let target = Target { piece: Piece { peer: 0, place, bytes, crc32c }, factors: vec![1] };
        let (sources, targets) = (vec![source], vec![target]);
        let guards = Owner::of(&self.entry).guards(0, to, bytes);
        Ok(Task { sources, targets, guards, peers: peers.into_nqns() })
    }
}
