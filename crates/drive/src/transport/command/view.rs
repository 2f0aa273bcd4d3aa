//! [`View`]: the drive's state as admin commands of one controller see it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use csd_nvme::compute::ProgramDescriptor;
use csd_nvme::controller::{Backing, Event, NamespaceKind};
use csd_nvme::discovery::{DISCOVERY_NQN, DiscoveryRecord, SUBTYPE_CURRENT_DISCOVERY, SUBTYPE_NVM};
use csd_nvme::feature::FeatureId;
use csd_nvme::log::{ErrorEntry, Smart, WARNING_READ_ONLY};
use csd_nvme::program::{ProgramType, RangeSet};
use csd_nvme::vendor::NSID_BLOCK;
use csd_nvme::vendor::decisions::Decisions;
use csd_nvme::vendor::executions::Entry;
use csd_nvme::vendor::media_errors::MediaErrors;
use csd_nvme::vendor::services::{Order, Services};
use csd_nvme::vendor::tunnel::encode_log;

use super::super::connections::announce;
use crate::controller::{Association, CoreCounters};
use crate::core_choice;
use crate::drive::Shared;
use crate::health::media_errors;
use crate::services::orders;
use crate::side::Side;
use crate::tunnel::Tunnel;

/// Generation of the discovery log. Its records do not change while a drive runs.
const DISCOVERY_GENERATION: u64 = 1;

/// The drive's state for one controller.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) drive: &'a Shared,
    /// Controller that asks.
    pub(super) association: &'a Association,
    /// Address that its host connected to.
    pub(super) local: Option<SocketAddr>,
    /// Side from which it asks.
    pub(super) side: Side,
}

impl View<'_> {
    fn sum(&self, counter: impl Fn(&CoreCounters) -> &AtomicU64) -> u64 {
        self.drive.counters.iter().map(|core| counter(core).load(Relaxed)).sum()
    }
}

fn flag(nsid: u32, drive: &Shared) -> Option<&AtomicBool> {
    let nsid = u16::try_from(nsid).ok()?;
    drive.segments.namespace(nsid).map(|namespace| &namespace.absent_delete_is_error)
}

impl Backing for View<'_> {
    fn used(&self, nsid: u32) -> u64 {
        match self.drive.subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
            // Blocks are not allocated on write: all of them are in use.
            Some(NamespaceKind::Block { blocks, .. }) => *blocks,
            Some(NamespaceKind::Kv { .. }) => {
                u16::try_from(nsid).map_or(0, |nsid| self.drive.segments.used_bytes(nsid))
            }
            Some(NamespaceKind::Memory { .. }) => self.drive.memory.allocated_bytes(),
            Some(NamespaceKind::Compute { .. }) => self.drive.library.bytes(),
            None => 0,
        }
    }

    fn kv_bytes(&self, nsid: u32, announced: u64) -> u64 {
        u16::try_from(nsid).map_or(announced, |nsid| self.drive.segments.size_bytes(nsid))
    }

    fn kv_keys_max(&self, nsid: u32) -> u32 {
        let most = u16::try_from(nsid).ok().and_then(|nsid| self.drive.segments.keys_max(nsid));
        // 0 says that there is no limit: a namespace that takes no key at all says 1.
        most.map_or(0, |most| u32::try_from(most.max(1)).unwrap_or(u32::MAX))
    }

    fn is_uncached(&self, nsid: u32) -> bool {
        match self.drive.subsystem.namespace(nsid).map(|namespace| &namespace.kind) {
            Some(NamespaceKind::Kv { .. }) => {
                u16::try_from(nsid).is_ok_and(|nsid| self.drive.segments.is_uncached(nsid))
            }
            _ => false,
        }
    }

    fn smart(&self) -> Smart {
        let mut smart = Smart::zeroed();
        let units = |bytes: u64| bytes.div_ceil(512 * 1000);
        let read_only = self.drive.read_only.load(Relaxed);
        smart.set_critical_warning(if read_only { WARNING_READ_ONLY } else { 0 });
        // Room temperature in kelvin, because there is no thermometer. Each controller still
        // compares its thresholds with it.
        smart.set_temperature(298).set_available_spare(100).set_spare_threshold(10);
        smart.set_data_units_read(units(self.sum(|core| &core.read_bytes)));
        smart.set_data_units_written(units(self.sum(|core| &core.written_bytes)));
        smart.set_host_reads(self.sum(|core| &core.reads));
        smart.set_host_writes(self.sum(|core| &core.writes));
        smart.set_media_errors(self.drive.media().failures().count());
        smart.set_error_entries(self.association.error_count());
        smart.set_power_cycles(1).set_power_on_hours(csd_reactor::now().ns() / 3_600_000_000_000);
        smart
    }

    fn media_errors(&self) -> MediaErrors {
        media_errors(self.drive)
    }

    fn absent_delete_is_error(&self, nsid: u32) -> bool {
        flag(nsid, self.drive).is_some_and(|flag| flag.load(Relaxed))
    }

    fn set_absent_delete_is_error(&self, nsid: u32, error: bool) {
        if let Some(flag) = flag(nsid, self.drive) {
            flag.store(error, Relaxed);
        }
    }

    fn saved(&self, id: FeatureId, nsid: u32) -> Option<u32> {
        self.drive.settings.saved(id, nsid)
    }

    fn save(&self, id: FeatureId, nsid: u32, value: u32) {
        self.drive.settings.save(id, nsid, value);
    }

    fn protection(&self, nsid: u32) -> u32 {
        self.drive.settings.protection(nsid)
    }

    fn set_protection(&self, nsid: u32, value: u32) {
        self.drive.settings.set_protection(nsid, value);
        announce(Event::NamespaceChanged(nsid), Some(self.association.cntlid));
    }

    fn inside(&self) -> Option<bool> {
        self.drive.inside_only.is_served().then_some(self.side == Side::Inside)
    }

    fn is_inside_only(&self, nsid: u32) -> bool {
        nsid == NSID_BLOCK && self.drive.inside_only.is_set()
    }

    fn set_inside_only(&self, nsid: u32, only: bool) {
        self.drive.settings.save(FeatureId::INSIDE_ONLY, nsid, only.into());
        self.drive.inside_only.set(only);
        announce(Event::NamespaceChanged(nsid), Some(self.association.cntlid));
    }

    fn errors(&self) -> Vec<ErrorEntry> {
        self.association.recent_errors()
    }

    fn executions(&self) -> (u64, Vec<Entry>) {
        self.drive.execution_log.recent()
    }

    fn services(&self) -> Services {
        orders::list(self.drive)
    }

    fn decisions(&self) -> Decisions {
        core_choice::decisions(&self.drive.core_choice)
    }

    fn order(&self, order: &Order) -> bool {
        orders::order(self.drive, self.association.host_nqn(), order)
    }

    fn tunnel(&self) -> Vec<u8> {
        let log = self.drive.tunnel.as_ref().map(Tunnel::log);
        log.map(|(mtu, ends)| encode_log(mtu, &ends)).unwrap_or_default()
    }

    fn controllers(&self) -> Vec<u16> {
        self.drive.controllers.ids()
    }

    fn io_queues(&self) -> usize {
        self.association.io_queues()
    }

    fn loaded_programs(&self) -> Vec<(u16, ProgramDescriptor)> {
        self.drive.library.descriptors(self.association.host_nqn())
    }

    fn program_types(&self) -> Vec<ProgramType> {
        self.drive.library.types()
    }

    fn range_sets(&self) -> Vec<RangeSet> {
        self.drive.range_sets.list(self.association.host_nqn())
    }

    fn abort(&self, qid: u16, cid: u16) -> bool {
        let caller = (self.association.cntlid, qid, cid);
        let tunnel = self.drive.tunnel.as_ref();
        self.drive.executions.abort(caller) || tunnel.is_some_and(|tunnel| tunnel.abort(caller))
    }

    fn discovery(&self) -> (u64, Vec<DiscoveryRecord>) {
        let record = |address: SocketAddr| {
            [
                DiscoveryRecord::tcp(address, &self.drive.subsystem.nqn, SUBTYPE_NVM),
                DiscoveryRecord::tcp(address, DISCOVERY_NQN, SUBTYPE_CURRENT_DISCOVERY),
            ]
        };
        (DISCOVERY_GENERATION, self.local.into_iter().flat_map(record).collect())
    }
}
