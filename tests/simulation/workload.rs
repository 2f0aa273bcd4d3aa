//! The workload: a host that stores, deletes, writes, flushes and reads until its connection ends.
//! The simulation lane and the crash lane run it.

use std::cell::RefCell;
use std::rc::Rc;

use csd_initiator::{Address, Block, Controller, Error, Kv, Options};
use csd_kvlog::format::SHARDS;
use csd_kvlog::shard_of;
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, Class, spawn};

use super::blocks;
use super::model::{Model, State};
use super::words::{PAGE_BYTES, common_page, words};
// The lane's random numbers: those of a simulated world, or from a seed.
use crate::random_u64;

/// Torn writes are recognised per sector.
pub const SECTOR_BYTES: usize = 512;
pub const KEYS_PER_WORKER: u64 = 6;
const BLOCKS_PER_WORKER: u64 = 12;

/// Concurrency of the workers, and the end of their work.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Commands in flight; at most 42, because one byte identifies the worker of a key.
    pub workers: u64,
    /// Workers that have keys in the first so many shards use only those.
    pub shards: u32,
    /// True if most values are short, so that many fit in a group of records.
    pub small: bool,
    /// Total number of [`Known::syncing`] operations after which the workers end.
    pub syncing_max: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self { workers: 5, shards: SHARDS, small: false, syncing_max: u64::MAX }
    }
}

/// Knowledge of the host, shared by its workers and the test.
#[derive(Default)]
pub struct Known {
    pub kv: Model<u64>,
    pub sectors: Model<u64>,
    pub failure: Option<String>,
    /// The first status that refused a command.
    pub refused: Option<String>,
    /// True to go on after a command that failed with a status.
    pub goes_on: bool,
    /// True once a command failed without one: the drive, or its connection, is gone.
    pub is_lost: bool,
    pub operations: u64,
    /// Number of operations that are slow because the drive syncs: those of kv namespaces, and
    /// flushes.
    pub syncing: u64,
    pub load: Load,
    /// Called when the load is done.
    pub when_done: Option<Box<dyn FnOnce()>>,
    /// True to store values so large that the log must be cleaned.
    pub heavy: bool,
    /// True if a change of namespace 2 is durable only after a Flush.
    pub cached: bool,
    /// True to store values that have pages of other values.
    pub alike: bool,
    pub counter: u64,
    /// Connections made by a host that came back.
    pub connections: u64,
}

pub type Shared = Rc<RefCell<Known>>;

pub fn key(number: u64) -> Key {
    // Keys of several lengths, so that order by length is exercised too.
    let bytes = number.to_be_bytes();
    Key::new(&bytes[7 - usize::try_from(number % 4).unwrap()..]).unwrap()
}

/// Returns content that identifies its write in every sector.
pub fn content(known: &Shared, bytes: usize) -> Vec<u8> {
    let mut known = known.borrow_mut();
    known.counter += 1;
    words(known.counter << 20, bytes)
}

pub fn fail(known: &Shared, text: String) {
    known.borrow_mut().failure.get_or_insert(text);
}

/// Records the status of a command that failed with one, and else that the drive is gone.
pub fn refused(known: &Shared, error: &Error) {
    let mut known = known.borrow_mut();
    match error.status() {
        Some(_) => drop(known.refused.get_or_insert(error.to_string())),
        None => known.is_lost = true,
    }
}

/// Counts an operation; returns an error if the worker must end.
fn count(known: &Shared, syncs: bool, done: Result<(), ()>) -> Result<(), ()> {
    let (enough, goes_on, when_done) = {
        let mut known = known.borrow_mut();
        known.operations += 1;
        known.syncing += u64::from(syncs);
        let enough = known.syncing >= known.load.syncing_max;
        (enough, known.goes_on && !known.is_lost, known.when_done.take_if(|_| enough))
    };
    if let Some(act) = when_done {
        act();
    }
    if enough { Err(()) } else { done.or(if goes_on { Ok(()) } else { Err(()) }) }
}

/// Connects and works until the drive is gone.
pub async fn work(address: Address, known: Shared) {
    let Ok(controller) = Controller::connect(&address, &Options::default()).await else { return };
    work_until_lost(&controller, &known).await;
}

/// Works on a connection until it or the drive is gone.
pub async fn work_until_lost(controller: &Controller, known: &Shared) {
    let load = known.borrow().load;
    let workers: Vec<_> = (0..load.workers)
        .map(|worker| {
            let (controller, known) = (controller.clone(), Rc::clone(known));
            spawn(Class::Foreground, async move {
                if worker % 2 == 0 {
                    work_kv(worker, load.shards, &controller, &known).await;
                } else {
                    work_block(worker, &controller, &known).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await;
    }
}

/// Returns the keys of a worker: those in the first `shards` shards, or all if it has none there.
fn keys_of(worker: u64, nsid: u16, shards: u32) -> Vec<u64> {
    let all = worker * KEYS_PER_WORKER..(worker + 1) * KEYS_PER_WORKER;
    let there = |number: &u64| shard_of(&(nsid, key(*number))) < shards as usize;
    let some: Vec<u64> = all.clone().filter(there).collect();
    if some.is_empty() { all.collect() } else { some }
}

async fn work_kv(worker: u64, shards: u32, controller: &Controller, known: &Shared) {
    let nsid: u16 = if worker == 0 { 2 } else { 3 };
    let kv = Kv::open(controller, nsid.into()).expect("kv namespaces");
    let own = keys_of(worker, nsid, shards);
    let is_cached = nsid == 2 && known.borrow().cached;
    loop {
        let number = own[usize::try_from(random_u64()).unwrap() % own.len()];
        let done = match random_u64() % 8 {
            0 if is_cached => flush_keys(&kv, &own, known).await,
            0 | 1 => delete(&kv, number, known).await,
            2 | 3 => retrieve(&kv, number, known).await,
            _ => store(&kv, number, known).await,
        };
        if count(known, true, done).is_err() {
            return;
        }
    }
}

async fn store(kv: &Kv, number: u64, known: &Shared) -> Result<(), ()> {
    let (heavy, small) = (known.borrow().heavy, known.borrow().load.small);
    let bytes = match random_u64() % 8 {
        0 => 0,
        _ if heavy => random_u64() % (u64::from(kv.value_bytes_max()) + 1),
        1..7 if small => 16 + random_u64() % 285,
        1..4 => random_u64() % 300,
        4..7 => random_u64() % 20_000,
        _ => random_u64() % 200_000,
    };
    let mut value = content(known, usize::try_from(bytes).unwrap());
    if known.borrow().alike {
        // The first page says which value it is.
        let pages = value.chunks_exact_mut(PAGE_BYTES).skip(1);
        pages.for_each(|page| page.copy_from_slice(&common_page(random_u64())));
    }
    let state = Some(value.clone());
    known.borrow_mut().kv.asked(number, state.clone());
    let stored = kv.store(&key(number), vec![Buffer::from_slice(&value)], 0).await;
    stored.map_err(|error| refused(known, &error))?;
    answered(known, number, state);
    Ok(())
}

/// Records the answer of a change.
fn answered(known: &Shared, number: u64, state: State) {
    let mut known = known.borrow_mut();
    known.kv.acknowledged(number, state.clone());
    if !known.cached || number >= KEYS_PER_WORKER {
        known.kv.durable(number, state);
    }
}

async fn delete(kv: &Kv, number: u64, known: &Shared) -> Result<(), ()> {
    known.borrow_mut().kv.asked(number, None);
    kv.delete(&key(number)).await.map_err(|error| refused(known, &error))?;
    answered(known, number, None);
    Ok(())
}

async fn flush_keys(kv: &Kv, own: &[u64], known: &Shared) -> Result<(), ()> {
    kv.flush().await.map_err(|error| refused(known, &error))?;
    let mut known = known.borrow_mut();
    for number in own {
        let current = known.kv.current(*number);
        known.kv.durable(*number, current);
    }
    Ok(())
}

async fn find(kv: &Kv, number: u64) -> Result<State, Error> {
    let found = kv.retrieve(&key(number), 1 << 20).await?;
    Ok(found.map(|buffer| buffer.to_vec()))
}

async fn retrieve(kv: &Kv, number: u64, known: &Shared) -> Result<(), ()> {
    let found = find(kv, number).await.map_err(|error| refused(known, &error))?;
    if found != known.borrow().kv.current(number) {
        fail(known, format!("key {number}: a running drive returned another value"));
    }
    Ok(())
}

async fn work_block(worker: u64, controller: &Controller, known: &Shared) {
    let block = Block::open(controller, 1).expect("a block namespace");
    let block_bytes = u64::from(block.block_bytes());
    // Blocks written since the last flush.
    let mut dirty: Vec<u64> = Vec::new();
    loop {
        let number = worker * BLOCKS_PER_WORKER + random_u64() % BLOCKS_PER_WORKER;
        let choice = random_u64() % 8;
        let done = match choice {
            0 => flush(&block, &mut dirty, known).await,
            3 => {
                let own = worker * BLOCKS_PER_WORKER..(worker + 1) * BLOCKS_PER_WORKER;
                blocks::work(&block, number, own, &mut dirty, known).await
            }
            1 | 2 => blocks::read(&block, number, known).await,
            _ => write(&block, number, block_bytes, choice == 4, &mut dirty, known).await,
        };
        if count(known, choice == 0, done).is_err() {
            return;
        }
    }
}

pub fn sectors(number: u64, block_bytes: u64) -> std::ops::Range<u64> {
    let per_block = block_bytes / SECTOR_BYTES as u64;
    number * per_block..(number + 1) * per_block
}

async fn write(
    block: &Block,
    number: u64,
    block_bytes: u64,
    fua: bool,
    dirty: &mut Vec<u64>,
    known: &Shared,
) -> Result<(), ()> {
    let data = content(known, usize::try_from(block_bytes).unwrap());
    let states = |data: &[u8]| -> Vec<State> {
        data.chunks(SECTOR_BYTES).map(|sector| Some(sector.to_vec())).collect()
    };
    for (sector, state) in sectors(number, block_bytes).zip(states(&data)) {
        known.borrow_mut().sectors.asked(sector, state);
    }
    let buffers = vec![Buffer::from_slice(&data)];
    let written = block.write(number * block_bytes, buffers, fua).await;
    written.map_err(|error| refused(known, &error))?;
    for (sector, state) in sectors(number, block_bytes).zip(states(&data)) {
        let mut known = known.borrow_mut();
        known.sectors.acknowledged(sector, state.clone());
        if fua {
            known.sectors.durable(sector, state);
        }
    }
    dirty.push(number);
    Ok(())
}

async fn flush(block: &Block, dirty: &mut Vec<u64>, known: &Shared) -> Result<(), ()> {
    block.flush().await.map_err(|error| refused(known, &error))?;
    let block_bytes = u64::from(block.block_bytes());
    for sector in dirty.drain(..).flat_map(|number| sectors(number, block_bytes)) {
        let mut known = known.borrow_mut();
        let current = known.sectors.current(sector);
        known.sectors.durable(sector, current);
    }
    Ok(())
}

/// Reads everything back after a cut and checks it; returns `true` if the host could read it all.
pub async fn verify(address: Address, known: Shared) -> bool {
    match Controller::connect(&address, &Options::default()).await {
        Ok(controller) => read_back(&controller, &known, false).await.is_ok(),
        Err(_) => false,
    }
}

/// Reads everything back and checks it. `kept` means that only connections or a process were lost:
/// then all acknowledged data is there, flushed or not. Returns an error if the connection is lost.
pub async fn read_back(controller: &Controller, known: &Shared, kept: bool) -> Result<(), ()> {
    let stores = [2, 3].map(|nsid| Kv::open(controller, nsid).expect("kv namespaces"));
    let keys = known.borrow().kv.keys();
    for number in keys {
        let kv = &stores[usize::from(number >= KEYS_PER_WORKER)];
        let found = find(kv, number).await;
        let found = readable(known, &format!("key {number}"), found)?;
        if let Some(found) = found {
            check(known, |known| {
                if !kept {
                    return known.kv.recovered(number, found);
                }
                let result = known.kv.reconnected(number, found.clone());
                // A value that can be read is durable.
                known.kv.durable(number, found);
                result
            });
        }
    }
    if !list_matches(&stores, known).await? {
        fail(known, "List differs from what Retrieve found".into());
    }
    let block = Block::open(controller, 1).expect("a block namespace");
    let block_bytes = u64::from(block.block_bytes());
    let length = usize::try_from(block_bytes).unwrap();
    let touched = known.borrow().sectors.keys();
    let numbers: std::collections::BTreeSet<u64> =
        touched.iter().map(|sector| sector * SECTOR_BYTES as u64 / block_bytes).collect();
    for number in numbers {
        let data = block.read(number * block_bytes, length).await;
        let Some(data) = readable(known, &format!("block {number}"), data)? else { continue };
        for (sector, found) in sectors(number, block_bytes).zip(data.chunks(SECTOR_BYTES)) {
            // A sector never written is zero, which is the model's "nothing".
            let found = Some(found.to_vec()).filter(|bytes| bytes.iter().any(|b| *b != 0));
            check(known, |known| match kept {
                true => known.sectors.reconnected(sector, found),
                false => known.sectors.recovered(sector, found),
            });
        }
    }
    Ok(())
}

/// Unwraps a read. A status in place of data is a failure of the drive; without a status the
/// connection is lost.
fn readable<T>(known: &Shared, what: &str, read: Result<T, Error>) -> Result<Option<T>, ()> {
    match read {
        Ok(data) => Ok(Some(data)),
        Err(error) if error.status().is_some() => {
            fail(known, format!("{what} cannot be read: {error}"));
            Ok(None)
        }
        Err(_) => Err(()),
    }
}

async fn list_matches(stores: &[Kv; 2], known: &Shared) -> Result<bool, ()> {
    for (index, kv) in stores.iter().enumerate() {
        let mut expected: Vec<Key> = {
            let known = known.borrow();
            let of_store = |number: &u64| usize::from(*number >= KEYS_PER_WORKER) == index;
            let numbers = known.kv.keys().into_iter().filter(of_store);
            numbers.filter(|number| known.kv.current(*number).is_some()).map(key).collect()
        };
        expected.sort();
        let mut found = kv.list_all(&[]).await;
        if let (0, Ok(keys)) = (index, &mut found) {
            // In the order of an index of either kind.
            keys.sort();
        }
        match found {
            Ok(found) if found == expected => {}
            Err(error) if error.status().is_none() => return Err(()),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn check(known: &Shared, step: impl FnOnce(&mut Known) -> Result<(), String>) {
    let result = step(&mut known.borrow_mut());
    if let Err(text) = result {
        fail(known, text);
    }
}
