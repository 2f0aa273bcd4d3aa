//! What the drive counts, per core without contention, and the view of it that admin commands get.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use csd_nvme::controller::{Backing, NamespaceKind};
use csd_nvme::log::{Smart, WARNING_READ_ONLY};

use crate::drive::Shared;

/// Counters of one core: only that core writes them, anyone reads.
#[derive(Debug, Default)]
pub struct CoreCounters {
    /// Read commands.
    pub reads: AtomicU64,
    /// Write commands.
    pub writes: AtomicU64,
    /// Bytes read by hosts.
    pub read_bytes: AtomicU64,
    /// Bytes written by hosts.
    pub written_bytes: AtomicU64,
    /// Commands that failed for the media.
    pub media_errors: AtomicU64,
}

impl CoreCounters {
    /// Adds to a counter that only this core writes: a load and a store, no locked instruction.
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.store(counter.load(Relaxed) + amount, Relaxed);
    }
}

/// The drive as [`csd_nvme::controller`] asks about it.
#[derive(Debug)]
pub struct View<'a>(pub &'a Shared);

impl View<'_> {
    fn sum(&self, counter: impl Fn(&CoreCounters) -> &AtomicU64) -> u64 {
        self.0.counters.iter().map(|core| counter(core).load(Relaxed)).sum()
    }
}

fn flag(nsid: u32, drive: &Shared) -> Option<&AtomicBool> {
    let nsid = u16::try_from(nsid).ok()?;
    drive.segments.namespace(nsid).map(|namespace| &namespace.absent_delete_is_error)
}

impl Backing for View<'_> {
    fn used(&self, nsid: u32) -> u64 {
        match self.0.subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
            // Blocks are not allocated on write: all of them are in use.
            Some(NamespaceKind::Block { blocks, .. }) => *blocks,
            Some(NamespaceKind::Kv { .. }) => {
                let namespace =
                    u16::try_from(nsid).ok().map(|nsid| self.0.segments.namespace(nsid));
                namespace.flatten().map_or(0, |namespace| namespace.used_bytes.load(Relaxed))
            }
            _ => 0,
        }
    }

    fn smart(&self) -> Smart {
        let mut smart = Smart::zeroed();
        let units = |bytes: u64| bytes.div_ceil(512 * 1000);
        let read_only = self.0.read_only.load(Relaxed);
        smart.set_critical_warning(if read_only { WARNING_READ_ONLY } else { 0 });
        // There is no thermometer: the temperature of a room, in kelvin.
        smart.set_temperature(298).set_available_spare(100).set_spare_threshold(10);
        smart.set_data_units_read(units(self.sum(|core| &core.read_bytes)));
        smart.set_data_units_written(units(self.sum(|core| &core.written_bytes)));
        smart.set_host_reads(self.sum(|core| &core.reads));
        smart.set_host_writes(self.sum(|core| &core.writes));
        smart.set_media_errors(self.sum(|core| &core.media_errors));
        smart.set_power_cycles(1).set_power_on_hours(csd_reactor::now().ns() / 3_600_000_000_000);
        smart
    }

    fn absent_delete_is_error(&self, nsid: u32) -> bool {
        flag(nsid, self.0).is_some_and(|flag| flag.load(Relaxed))
    }

    fn set_absent_delete_is_error(&self, nsid: u32, error: bool) {
        if let Some(flag) = flag(nsid, self.0) {
            flag.store(error, Relaxed);
        }
    }
}
