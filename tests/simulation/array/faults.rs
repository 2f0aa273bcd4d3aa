//! Faults of a run by kind, and what the hosts did about them.

use csd_kvlog::media::Losses;

use super::flips::Flips;
use super::host::Shared;
use super::rot::Rot;

/// Faults of each kind that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub cuts: u64,
    /// Sectors and writes in these power cuts.
    pub losses: Losses,
    pub emptied: u64,
    pub older: u64,
    pub partitions: u64,
    pub isolations: u64,
    pub host_crashes: u64,
    pub swaps: u64,
    pub flipped_at_work: u64,
    pub rebuilds: u64,
    pub protects: u64,
    pub compared: u64,
    pub repairs: u64,
    pub rebuilt: u64,
    pub moved: u64,
    pub fetched: u64,
    pub flips: Flips,
    pub rot: Rot,
    pub by_drives: u64,
    pub listed: u64,
    pub degraded: u64,
}

impl Faults {
    /// Adds those of another run.
    pub fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.losses.add(other.losses);
        self.emptied += other.emptied;
        self.older += other.older;
        self.partitions += other.partitions;
        self.isolations += other.isolations;
        self.host_crashes += other.host_crashes;
        self.swaps += other.swaps;
        self.flipped_at_work += other.flipped_at_work;
        self.rebuilds += other.rebuilds;
        self.protects += other.protects;
        self.compared += other.compared;
        self.repairs += other.repairs;
        self.rebuilt += other.rebuilt;
        self.moved += other.moved;
        self.fetched += other.fetched;
        self.flips.add(other.flips);
        self.rot.add(other.rot);
        self.by_drives += other.by_drives;
        self.listed += other.listed;
        self.degraded += other.degraded;
    }

    /// Takes over what the hosts have counted.
    pub fn count(&mut self, known: &Shared) {
        self.swaps = known.swapped;
        self.rebuilds = known.rebuilt;
        self.protects = known.protected;
        self.compared = known.compared;
        self.repairs = known.repaired;
        self.rebuilt = known.rebuilt_pieces;
        (self.moved, self.fetched) = (known.moved, known.fetched);
        self.by_drives = known.by_drives;
        self.listed = known.listed;
        self.rot.mended = known.mended;
        self.rot.accepted = known.accepted;
    }

    /// Returns the number of the rarest kind, but for those that are rare.
    pub fn fewest(&self) -> u64 {
        let every = [
            self.emptied,
            self.older,
            self.isolations,
            self.swaps,
            self.flipped_at_work,
            self.rebuilds,
            self.protects,
            self.compared,
            self.repairs,
            self.rebuilt,
            self.moved,
            self.fetched,
            // Few objects are protected and on blocks.
            2 * self.flips.fewest(),
            2 * self.rot.fewest(),
            self.by_drives,
            self.listed,
            self.degraded,
        ];
        every.into_iter().fold(u64::MAX, u64::min)
    }
}
