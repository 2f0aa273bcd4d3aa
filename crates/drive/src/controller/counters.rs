//! Counters of one core that the health log reports.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one core. Only that core writes them; every core reads them.
#[derive(Debug, Default)]
pub struct CoreCounters {
    /// Number of read commands.
    pub reads: AtomicU64,
    /// Number of write commands.
    pub writes: AtomicU64,
    /// Bytes read by hosts.
    pub read_bytes: AtomicU64,
    /// Bytes written by hosts.
    pub written_bytes: AtomicU64,
    /// Number of modular powers computed for hosts that authenticate themselves.
    pub powers: AtomicU64,
}

impl CoreCounters {
    /// Adds to a counter that only this core writes: a load and a store, no locked instruction.
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.store(counter.load(Relaxed) + amount, Relaxed);
    }
}
