//! Faults of a run by kind, and what the hosts did about them.

use super::flips::Flips;

/// Faults of each kind that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub cuts: u64,
    pub emptied: u64,
    pub older: u64,
    pub partitions: u64,
    pub isolations: u64,
    pub host_crashes: u64,
    pub swaps: u64,
    pub rebuilds: u64,
    pub protects: u64,
    pub compared: u64,
    pub repairs: u64,
    pub rebuilt: u64,
    pub moved: u64,
    pub fetched: u64,
    pub flips: Flips,
    pub by_drives: u64,
    pub listed: u64,
    pub degraded: u64,
}

impl Faults {
    /// Adds those of another run.
    pub fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.emptied += other.emptied;
        self.older += other.older;
        self.partitions += other.partitions;
        self.isolations += other.isolations;
        self.host_crashes += other.host_crashes;
        self.swaps += other.swaps;
        self.rebuilds += other.rebuilds;
        self.protects += other.protects;
        self.compared += other.compared;
        self.repairs += other.repairs;
        self.rebuilt += other.rebuilt;
        self.moved += other.moved;
        self.fetched += other.fetched;
        self.flips.add(other.flips);
        self.by_drives += other.by_drives;
        self.listed += other.listed;
        self.degraded += other.degraded;
    }
}
