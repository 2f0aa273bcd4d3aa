//! Numbers of the faults that media have injected, by kind.

use std::sync::atomic::Ordering::Relaxed;

use csd_kvlog::media::Injected;

/// Faults of any number of media.
#[derive(Clone, Copy, Debug, Default)]
pub struct Injections {
    pub failed_reads: u64,
    pub flipped_reads: u64,
    pub failed_writes: u64,
    pub torn_writes: u64,
    pub failed_syncs: u64,
    /// Syncs that lost something, which the next one reports.
    pub failed_writebacks: u64,
    /// Accesses that took longer.
    pub delays: u64,
}

impl From<&Injected> for Injections {
    fn from(medium: &Injected) -> Self {
        Self {
            failed_reads: medium.failed_reads.load(Relaxed),
            flipped_reads: medium.flipped_reads.load(Relaxed),
            failed_writes: medium.failed_writes.load(Relaxed),
            torn_writes: medium.torn_writes.load(Relaxed),
            failed_syncs: medium.failed_syncs.load(Relaxed),
            failed_writebacks: medium.failed_writebacks.load(Relaxed),
            delays: medium.delays.load(Relaxed),
        }
    }
}

impl Injections {
    pub fn add(&mut self, other: impl Into<Self>) {
        let other = other.into();
        self.failed_reads += other.failed_reads;
        self.flipped_reads += other.flipped_reads;
        self.failed_writes += other.failed_writes;
        self.torn_writes += other.torn_writes;
        self.failed_syncs += other.failed_syncs;
        self.failed_writebacks += other.failed_writebacks;
        self.delays += other.delays;
    }
}
