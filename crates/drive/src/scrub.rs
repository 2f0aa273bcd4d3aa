//! Scrub of a drive: a service of each core reads the current values of its shards at a pace, and
//! compares blocks with the page lists among them.
//!
//! Disks return wrong data without an error now and then (Bairavasundaram et al., "An Analysis of
//! Data Corruption in the Storage Stack", FAST 2008). A scrub reads all data regularly, so that
//! damage is found while other copies or parity can still mend it.

use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::Kv;
use csd_kvlog::control::Control;
use csd_kvlog::parts::POOL;
use csd_kvlog::record::EntryKey;
use csd_kvlog::scrub::{Compared, Damage, Owner, Scrubber};
use csd_kvlog::service::Service;
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{KEY_BYTES, List, Place};
use csd_nvme::vendor::{NSID_BLOCK, NSID_OBJECTS};
use csd_reactor::{Buffer, class, compute_fn, random_u64, spawn};

use crate::drive::{Core, Shared};
use crate::log::Level;
use crate::page_check::{Differing, Pages, compare};
use crate::pass_bound::PassBound;
use crate::services::runner::Runner;

/// Most keys that one line of the log names.
const NAMED_MAX: usize = 64;

/// Returns the part of a core in the drive's scrub, which logs damage.
pub(crate) fn begin(core: &Rc<Core>) -> Box<dyn Service> {
    let reporter = Rc::clone(core);
    Box::new(scrubber(core, move |damage: &Damage| {
        log(&reporter.shared, damage);
        if let Some(entry) = damage.entry.filter(|(nsid, _)| nsid & POOL != 0) {
            let name = name_sharers(Rc::clone(&reporter.kv), Arc::clone(&reporter.shared), entry);
            drop(spawn(class(), name));
        }
    }))
}

/// Logs the keys of the values that have a shared chunk, which is damaged.
async fn name_sharers(kv: Rc<Kv>, shared: Arc<Shared>, chunk: EntryKey) {
    let Ok(sharers) = kv.sharers(chunk).await else { return };
    let keys = sharers.iter().take(NAMED_MAX);
    let keys: Vec<String> =
        keys.map(|(_, key)| key.as_bytes().escape_ascii().to_string()).collect();
    let fields = [
        ("nsid", (chunk.0 & !POOL).to_string()),
        ("values", sharers.len().to_string()),
        ("keys", keys.join(" ")),
    ];
    shared.log().write_rated(Level::Error, "damaged chunk is shared", &fields);
}

/// Reads the values of a core's shards, pass after pass, until the drive stops: a scrub apart from
/// the drive's own. Calls `report` for damage, in every pass again.
pub async fn run(core: &Rc<Core>, bytes_per_s: u64, report: impl Fn(&Damage)) {
    let control = &Control::default();
    control.set_rate(Some(bytes_per_s));
    let runner = Runner { control, gate: &core.gate, segments: &core.shared.segments };
    runner.run(|| Box::new(scrubber(core, report))).await;
}

fn scrubber<R: Fn(&Damage)>(core: &Rc<Core>, report: R) -> Scrubber<PageLists<R>> {
    core.kv.scrubber(PageLists { core: Rc::clone(core), report, pass: PassBound::default() })
}

/// The page lists of blocks among a core's values.
struct PageLists<R> {
    core: Rc<Core>,
    report: R,
    pass: PassBound,
}

impl<R> PageLists<R> {
    /// Returns the length of the block namespace in bytes.
    fn block_bytes(&self) -> u64 {
        self.core.block.blocks() * u64::from(self.core.block.block_bytes())
    }
}

impl<R: Fn(&Damage)> Owner for PageLists<R> {
    type Checksums = (List, Place);

    /// Leaves out what no medium can have: bytes behind the last block, and bytes twice. So a list
    /// takes no longer than all blocks, whatever it says, and [`PassBound`] bounds all lists.
    async fn checksums(&self, entry: &EntryKey, value: Buffer) -> Option<(List, Place)> {
        if !is_list(entry) || !List::is_likely(&value) {
            return None;
        }
        let (cost_ns, end) = (value.len() as u64 / 10, self.block_bytes());
        let parsed = compute_fn(class(), cost_ns, move || {
            let mut list = List::parse(&value).ok()?;
            // Values are compared with the checksums of their records.
            let is_of_blocks = list.kind == LocationKind::BLOCKS && list.nsid == NSID_BLOCK;
            list.keep_apart(if is_of_blocks { end } else { 0 });
            let bytes = list.pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
            Some((list, bytes))
        });
        let (list, bytes) = parsed.await.ok().flatten()?;
        self.pass.takes(bytes, end, random_u64()).then(|| (list, Place::default()))
    }

    async fn compare(&self, (list, place): &mut (List, Place)) -> Option<Compared> {
        let (piece, sums) = list.next(place)?;
        let pages = Pages { piece, sums, from: 0 };
        let first = match compare(&self.core.kv, &self.core.block, list, &pages).await {
            Ok(Differing { count: 0, .. }) => None,
            Ok(Differing { first, .. }) => Some(u64::from(first)),
            // The medium cannot read them.
            Err(_) => Some(0),
        };
        let differs_at = first.map(|page| piece.start + page * u64::from(list.page_bytes));
        Some(Compared { bytes: piece.bytes.into(), differs_at })
    }

    fn pass_ended(&self) {
        let Some(left) = self.pass.end() else { return };
        let fields = [("lists", left.lists.to_string()), ("bytes", left.bytes.to_string())];
        let log = self.core.shared.log();
        log.write_rated(Level::Info, "page lists left for later passes", &fields);
    }

    fn report(&self, damage: &Damage) {
        (self.report)(damage);
    }
}

/// Logs damage that a scrub has met.
fn log(shared: &Shared, damage: &Damage) {
    let mut fields =
        vec![("segment", damage.segment.to_string()), ("offset", damage.offset.to_string())];
    if let Some(entry) = &damage.entry {
        let (nsid, key) = entry;
        fields.push(("nsid", nsid.to_string()));
        fields.push(("key", key.as_bytes().escape_ascii().to_string()));
        if is_list(entry) && damage.outside.is_none() {
            fields.push(("value", "page list".to_owned()));
        }
    }
    if let Some(page) = damage.outside {
        fields.push(("page", page.to_string()));
    }
    shared.log().write_rated(Level::Error, "damage at rest", &fields);
}

/// Returns true if page lists have such keys.
fn is_list((nsid, key): &EntryKey) -> bool {
    u32::from(*nsid) == NSID_OBJECTS && key.as_bytes().len() == KEY_BYTES
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use csd_kvlog::format::Split;
    use csd_kvlog::media::{Media, Memory};
    use csd_nvme::kv::Key;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{CoreId, busy, core_local, sleep};

    use super::*;
    use crate::{Resources, drive, life, metrics};

    const SIZE_BYTES: u64 = 64 << 20;
    const SPLIT: Split = Split { kv_percent: 50, reserve_percent: 5, block_bytes: 4096 };
    const VALUE_BYTES: usize = 32 << 10;

    /// Returns the bytes that a scrub of a drive of two cores reads in this time, which is
    /// simulated. A pass takes longer.
    fn scrubbed(bytes_per_s: u64, span: Duration) -> u64 {
        let world = World::new(7, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 2);
        let read = Rc::new(Cell::new(None));
        let slot = Rc::clone(&read);
        world.start(machine, move |core| {
            let slot = Rc::clone(&slot);
            async move {
                if core != CoreId(0) {
                    return std::future::pending().await;
                }
                let media = Media::Memory(Arc::new(Memory::new(2 * SIZE_BYTES)));
                let resources = Resources::default();
                let opened = drive::open(media, true, "nqn.2026-11.x:a", &SPLIT, &resources);
                let shared = opened.await.unwrap();
                shared.services.begin_scrub(bytes_per_s);
                life::start_all(&shared).await.unwrap();
                let core = core_local::<Core>().unwrap();
                for number in 0..512_u16 {
                    let key = Key::new(&number.to_be_bytes()).unwrap();
                    core.kv.store(2, key, vec![Buffer::zeroed(VALUE_BYTES)], 0).await.unwrap();
                }
                // Until the pass behind the one that met an empty log.
                sleep(Duration::from_secs(2)).await;
                let scrubbed = || shared.services.scrub.bytes.load(Relaxed);
                let before = scrubbed();
                sleep(span).await;
                let spent = busy();
                assert!(spent.service_ns > 0 && spent.execution_ns == 0, "{spent:?}");
                let page = metrics::render(&shared).await;
                let line = |name| format!("\n{name}{{service=\"scrub\"}} ");
                assert!(page.contains(&line("csd_service_bytes_total")), "{page}");
                assert!(!page.contains(&(line("csd_service_steps_total") + "0\n")), "{page}");
                slot.set(Some(scrubbed() - before));
            }
        });
        world.run_until(|_| read.get().is_some(), 10 * span).unwrap();
        read.get().unwrap()
    }

    #[test]
    fn the_scrubs_of_all_cores_together_keep_to_their_rate() {
        let (rate, span) = (1 << 20, Duration::from_secs(10));
        let (read, expected) = (scrubbed(rate, span), rate * span.as_secs());
        // Each core reads a value before it waits, and is within another one at the end.
        let slack = 2 * 2 * (VALUE_BYTES as u64 + 4096);
        assert!(read.abs_diff(expected) <= slack, "{read} bytes, not {expected}");
    }
}
