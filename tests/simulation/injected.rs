//! Numbers of the faults that media have injected, by kind.

use std::sync::atomic::Ordering::Relaxed;

use csd_drive::media::Injected;

/// Faults of any number of media.
#[derive(Clone, Copy, Debug, Default)]
pub struct Injections {
    pub failed_reads: u64,
    pub flipped_reads: u64,
    pub failed_writes: u64,
    pub torn_writes: u64,
    pub failed_syncs: u64,
}

impl Injections {
    /// Adds those of a medium.
    pub fn add(&mut self, medium: &Injected) {
        self.failed_reads += medium.failed_reads.load(Relaxed);
        self.flipped_reads += medium.flipped_reads.load(Relaxed);
        self.failed_writes += medium.failed_writes.load(Relaxed);
        self.torn_writes += medium.torn_writes.load(Relaxed);
        self.failed_syncs += medium.failed_syncs.load(Relaxed);
    }
}
