//! [`Fetch`]: a chunk that its new drive fetches from the drive that has it, by the program
//! `combine`. The host sends a task and gets no data.
//!
//! Invariant: a chunk is stored only if it matches its digest, and on blocks only while its units
//! are those of the object ([`crate::guarded`]): the drive may still write when this host has
//! ended.

use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Piece, Target, Task};
use csd_nvme::vendor::execute::Output;

use super::in_drives::InDrives;
use crate::array::{Drive, words};
use crate::guarded::Owner;
use crate::peers::{Peers, is_of_piece};
use crate::piece::Spot;

/// A chunk, the drive that has it and the one that fetches it.
pub(super) struct Fetch<'a> {
    pub(super) from: (&'a Drive, Spot),
    pub(super) to: (&'a Drive, Spot),
    /// Length, bytes; not 0.
    pub(super) bytes: u32,
    /// CRC-32C.
    pub(super) sum: u32,
    /// The object that gets the chunk.
    pub(super) owner: Owner,
}

impl Fetch<'_> {
    fn task(&self) -> Task {
        let mut peers = Peers::of(self.to.0);
        let mut piece = |(drive, spot): (&Drive, Spot)| {
            let (peer, location) = (peers.number(drive), spot.location(drive.block.block_bytes()));
            Piece { peer, location, bytes: self.bytes, crc32c: Some(self.sum) }
        };
        let (source, target) = (piece(self.from), piece(self.to));
        let targets = vec![Target { piece: target, factors: vec![1] }];
        let guards = self.owner.guards(0, self.to.1, self.bytes);
        Task { sources: vec![source], targets, guards, peers: peers.into_nqns() }
    }
}

impl InDrives {
    /// Returns true if a drive may be able to fetch from another one.
    pub(super) fn can_fetch(&self, from: &Drive, to: &Drive) -> bool {
        self.is_sound(to) && !self.are_apart(from, to)
    }

    /// Has a drive fetch a chunk. Returns true once it is stored.
    pub(super) async fn fetch(&self, fetch: &Fetch<'_>) -> bool {
        let (from, to) = (fetch.from.0, fetch.to.0);
        if !self.can_fetch(from, to) {
            return false;
        }
        let index = match self.index(to).await {
            Ok(index) => index,
            Err(why) => {
                self.gives_up(to, &why);
                return false;
            }
        };
        let execution = fetch.task().execution(Output::Completion);
        let Err(error) = to.compute.execute(index, &execution).await else { return true };
        match error.status() {
            // Its chunk or the claim is gone, which is no fault of the drives.
            status if is_of_piece(status) => {}
            // It cannot reach the other one, which others may.
            Some(Status::PEER_FAILED | Status::PEER_UNKNOWN) => self.keep_apart(from, to),
            _ => self.gives_up(to, &words(&error)),
        }
        false
    }
}
