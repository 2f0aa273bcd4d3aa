//! Work of hosts that repeat what failed, and the comparison of what a start finds with it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::drive::Core;
use csd_kvlog::record::Content;
use csd_nvme::feature::FeatureId;
use csd_nvme::kv::Key;
use csd_nvme::nvm::Extent;
use csd_reactor::{Buffer, random_u64, sleep};

use crate::lives::{NSID, content, find_in, keys_in, together};
use crate::model::{Model, State};

/// Keys of both namespaces, half of them each, spread over all shards.
pub(super) const KEYS: u64 = 48;
const SHARDS: u64 = 16;
const OBJECTS: u16 = 3;
const BLOCKS: u64 = 6;
const BLOCK_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// A change that fails so often after a single fault never succeeds.
const TRIES: usize = 4;
/// Pause before what failed is done again: others may have to end first.
const PAUSE: Duration = Duration::from_millis(10);

/// States of keys, sectors of blocks, and settings.
#[derive(Clone, Default)]
pub(super) struct Known {
    keys: Model<u64>,
    sectors: Model<u64>,
    settings: Model<u64>,
}

pub(super) type Shared = Rc<RefCell<Known>>;

impl Known {
    /// Notes that everything acknowledged is durable.
    pub(super) fn flushed(&mut self) {
        for number in self.keys.keys() {
            let current = self.keys.current(number);
            self.keys.durable(number, current);
        }
    }
}

pub(super) fn key(number: u64) -> (u16, Key) {
    let nsid = if number < KEYS / 2 { NSID } else { OBJECTS };
    let (shard, index) = (number % SHARDS, number % (KEYS / 2) / SHARDS);
    let mut keys = keys_in(nsid, usize::try_from(shard).unwrap());
    (nsid, keys.nth(usize::try_from(index).unwrap()).unwrap())
}

/// Calls `act` until it succeeds or the medium is read-only; false if it is.
pub(super) async fn repeated<E: fmt::Display>(
    core: &Core,
    what: String,
    failures: &RefCell<u64>,
    mut act: impl AsyncFnMut() -> Result<(), E>,
) -> bool {
    let mut last = String::new();
    for _ in 0..TRIES {
        match act().await {
            Ok(()) => return true,
            Err(_) if core.shared.media().is_read_only() => return false,
            Err(error) => last = error.to_string(),
        }
        *failures.borrow_mut() += 1;
        sleep(PAUSE).await;
    }
    panic!("{what}: after one fault it still fails, and the medium is not read-only: {last}");
}

/// Stores or deletes, as often as it takes.
pub(super) async fn change(
    core: Rc<Core>,
    number: u64,
    bytes: usize,
    known: Shared,
    failed: Rc<RefCell<u64>>,
) {
    let draw = random_u64();
    let state = (!draw.is_multiple_of(6)).then(|| content(draw, bytes));
    let (nsid, key) = key(number);
    let done = repeated(&core, format!("key {number}"), &failed, async || {
        known.borrow_mut().keys.asked(number, state.clone());
        match &state {
            Some(value) => core.kv.store(nsid, key, vec![Buffer::from_slice(value)], 0).await,
            None => core.kv.delete(nsid, key).await,
        }
    });
    if done.await {
        let keys = &mut known.borrow_mut().keys;
        keys.acknowledged(number, state.clone());
        if core.shared.segments.is_uncached(nsid) {
            keys.durable(number, state);
        }
    }
}

/// Returns the sectors of a block with their states: a power cut may tear it between them.
fn sectors(number: u64, data: Option<&[u8]>) -> Vec<(u64, State)> {
    let zeros = [0; BLOCK_BYTES];
    let states = data.unwrap_or(&zeros).chunks(SECTOR_BYTES).map(|sector| {
        let is_zero = sector.iter().all(|byte| *byte == 0);
        (!is_zero).then(|| sector.to_vec())
    });
    (number * (BLOCK_BYTES / SECTOR_BYTES) as u64..).zip(states).collect()
}

/// Writes a block, or makes it zeros.
async fn write_block(core: Rc<Core>, number: u64, known: Shared, failed: Rc<RefCell<u64>>) {
    let draw = random_u64();
    let data = (!draw.is_multiple_of(4)).then(|| content(draw, BLOCK_BYTES));
    let sectors = sectors(number, data.as_deref());
    let extent = Extent { slba: number, blocks: 1 };
    let done = repeated(&core, format!("block {number}"), &failed, async || {
        for (sector, state) in &sectors {
            known.borrow_mut().sectors.asked(*sector, state.clone());
        }
        match &data {
            Some(data) => core.block.write(extent, vec![Buffer::from_slice(data)], true).await,
            None => core.block.zero(extent, draw.is_multiple_of(8), true).await,
        }
    });
    if done.await {
        let known = &mut known.borrow_mut().sectors;
        for (sector, state) in sectors {
            known.acknowledged(sector, state.clone());
            known.durable(sector, state);
        }
    }
}

/// Saves a setting.
pub(super) async fn save(core: Rc<Core>, known: Shared, failed: Rc<RefCell<u64>>) {
    let (settings, syncer) = (&core.shared.settings, &core.shared.syncer);
    let value = u32::try_from(random_u64() % 1000).unwrap();
    let state = Some(value.to_le_bytes().to_vec());
    let done = repeated(&core, "a setting".to_owned(), &failed, async || {
        known.borrow_mut().settings.asked(0, state.clone());
        settings.save(FeatureId::TEMPERATURE_THRESHOLD, 0, value);
        settings.persist(syncer).await
    });
    if done.await {
        let settings = &mut known.borrow_mut().settings;
        settings.acknowledged(0, state.clone());
        settings.durable(0, state);
    }
}

/// Reads a key, which must have its last acknowledged state, as often as it takes.
pub(super) async fn look(core: Rc<Core>, number: u64, known: Shared, failed: Rc<RefCell<u64>>) {
    let (nsid, key) = key(number);
    let found = RefCell::new(None);
    let read = repeated(&core, format!("reading key {number}"), &failed, async || {
        find_in(nsid, &core, key).await.map(|value| *found.borrow_mut() = value)
    });
    if read.await && !core.shared.media().is_read_only() {
        assert!(
            found.into_inner() == known.borrow().keys.current(number),
            "key {number} is another"
        );
    }
}

/// Compares what the drive says of its room with what is known to be there.
pub(super) fn compare_figures(core: &Core, known: &Known) {
    let segments = &core.shared.segments;
    let mut all = 0;
    for nsid in [NSID, OBJECTS] {
        let own = known.keys.keys().into_iter().filter(|number| key(*number).0 == nsid);
        let values: Vec<Vec<u8>> = own.filter_map(|number| known.keys.current(number)).collect();
        let space =
            |value: &Vec<u8>| segments.space(Content::Value(u32::try_from(value.len()).unwrap()));
        let used: u64 = values.iter().map(space).sum();
        let namespace = segments.namespace(nsid).unwrap();
        assert_eq!(namespace.used_bytes.load(Relaxed), used, "bytes in use of {nsid}");
        assert_eq!(namespace.keys.load(Relaxed), values.len() as u64, "keys of {nsid}");
        all += used;
    }
    let namespace = segments.namespace(NSID).unwrap();
    let rest = segments.size_bytes(NSID) - namespace.used_bytes.load(Relaxed);
    assert_eq!(rest, segments.capacity_bytes() - all, "promises of room are given back");
}

/// Works in bursts, with pauses of all work in between.
pub(super) async fn work(core: &Rc<Core>, bursts: u64, known: &Shared, failed: &Rc<RefCell<u64>>) {
    for burst in 0..bursts {
        let draw = random_u64();
        let bytes = [0, 50, 3_000, 30_000, 200_000][usize::try_from(burst % 5).unwrap()];
        let chosen = (0..KEYS).filter(|number| draw >> number & 3 == 3);
        let parts = || (Rc::clone(core), Rc::clone(known), Rc::clone(failed));
        together(chosen.map(|number| {
            let (core, known, failed) = parts();
            change(core, number, bytes, known, failed)
        }))
        .await;
        let (one, known_there, failed_there) = parts();
        write_block(one, draw % BLOCKS, known_there, failed_there).await;
        let (one, known_there, failed_there) = parts();
        look(one, draw % KEYS, known_there, failed_there).await;
        if burst % 3 == 1 {
            let (one, known_there, failed_there) = parts();
            save(one, known_there, failed_there).await;
        }
        // A change that failed is undecided once the medium is read-only.
        let is_flushed = burst % 3 == 2 && core.kv.flush().await.is_ok();
        if is_flushed && !core.shared.media().is_read_only() {
            known.borrow_mut().flushed();
        }
    }
}

/// Reads everything after a start, and compares it.
pub(super) async fn verify(core: &Core, known: &Shared) -> Result<(), String> {
    for number in 0..KEYS {
        let (nsid, key) = key(number);
        let found = find_in(nsid, core, key).await;
        let found = found.map_err(|status| format!("key {number}: {status}"))?;
        known.borrow_mut().keys.recovered(number, found)?;
    }
    for number in 0..BLOCKS {
        let read = core.block.read(number, 0, Buffer::zeroed(BLOCK_BYTES)).await;
        let read = read.map_err(|status| format!("block {number}: {status}"))?;
        for (sector, found) in sectors(number, Some(&read)) {
            known.borrow_mut().sectors.recovered(sector, found)?;
        }
    }
    let saved = core.shared.settings.saved(FeatureId::TEMPERATURE_THRESHOLD, 0);
    let found = saved.map(|value| value.to_le_bytes().to_vec());
    known.borrow_mut().settings.recovered(0, found)?;
    compare_figures(core, &known.borrow());
    Ok(())
}
