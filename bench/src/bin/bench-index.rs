//! Measures the kv index alone, next to a tree and a hash table of the standard library: processor
//! time of a lookup, an insert, an overwrite, a removal and a listed key, and resident memory for
//! each key.
//!
//! `bench-index 1000000 10000000` measures each structure in a process of its own, because memory
//! that one frees may stay resident. As in a drive, keys are spread over sixteen shards. The hash
//! table is hashbrown, with a hash of a few multiplications; it has no order and cannot list.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::ops::Bound;
use std::process::Command;

use csd_bench::timing::cpu_ns;
use csd_kernels::kernel::mix;
use csd_kvlog::IndexKind;
use csd_kvlog::format::SHARDS;
use csd_kvlog::index::{Index, RecordPointer};
use csd_kvlog::record::Content;
use csd_kvlog::shard_of;
use csd_nvme::kv::Key;

/// Keys of one page of a list.
const PAGE_KEYS: usize = 64;
const PAGE_BYTES: u64 = 4096;

const STRUCTURES: [&str; 4] = ["hash", "ordered", "BTreeMap", "hashbrown"];

/// Returns a key of 16 bytes, as caches make them from hashes.
fn key(number: u64) -> Key {
    let bytes = u128::from(mix(number)) << 64 | u128::from(mix(!number));
    Key::new(&bytes.to_be_bytes()).expect("16 bytes")
}

fn pointer(number: u64) -> RecordPointer {
    RecordPointer { record: number, content: Content::Value(100) }
}

/// A structure of one shard.
trait Structure {
    fn get(&self, key: &Key) -> Option<RecordPointer>;
    fn insert(&mut self, key: Key, pointer: RecordPointer);
    fn remove(&mut self, key: &Key);
    /// Returns the number of keys behind a key, at most a page.
    fn page(&self, from: Key) -> usize;
}

impl Structure for Index {
    fn get(&self, key: &Key) -> Option<RecordPointer> {
        self.get(key)
    }

    fn insert(&mut self, key: Key, pointer: RecordPointer) {
        self.insert(key, pointer);
    }

    fn remove(&mut self, key: &Key) {
        self.remove(key);
    }

    fn page(&self, from: Key) -> usize {
        let page = self.page(Bound::Included(from), PAGE_KEYS, usize::MAX, Content::is_value);
        black_box(page).keys.len()
    }
}

impl Structure for BTreeMap<Key, RecordPointer> {
    fn get(&self, key: &Key) -> Option<RecordPointer> {
        self.get(key).copied()
    }

    fn insert(&mut self, key: Key, pointer: RecordPointer) {
        self.insert(key, pointer);
    }

    fn remove(&mut self, key: &Key) {
        self.remove(key);
    }

    fn page(&self, from: Key) -> usize {
        let keys: Vec<Key> = self.range(from..).take(PAGE_KEYS).map(|(key, _)| *key).collect();
        black_box(keys).len()
    }
}

/// A hash of the words of a key.
#[derive(Default)]
struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let product = (self.0 ^ u64::from_le_bytes(padded)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.0 = product ^ product >> 32;
        }
    }
}

type Table = HashMap<Key, RecordPointer, BuildHasherDefault<Words>>;

impl Structure for Table {
    fn get(&self, key: &Key) -> Option<RecordPointer> {
        self.get(key).copied()
    }

    fn insert(&mut self, key: Key, pointer: RecordPointer) {
        self.insert(key, pointer);
    }

    fn remove(&mut self, key: &Key) {
        self.remove(key);
    }

    fn page(&self, _from: Key) -> usize {
        0
    }
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).ok_or("no resident pages")?;
    Ok(pages.parse::<u64>()? * PAGE_BYTES)
}

/// Returns the mean time of a step on a processor in nanoseconds.
#[allow(clippy::cast_precision_loss)] // far below 2^52
fn mean_ns(steps: u64, step: impl FnMut(u64)) -> f64 {
    cpu_ns(|| (0..steps).for_each(step)) / steps as f64
}

#[allow(clippy::cast_precision_loss)] // far below 2^52
fn measure<S: Structure>(
    name: &str,
    keys: u64,
    new: impl Fn() -> S,
) -> Result<Vec<S>, Box<dyn Error>> {
    let mut shards: Vec<S> = (0..SHARDS).map(|_| new()).collect();
    let shard = |key: &Key| shard_of(&(2, *key));
    let before = resident_bytes()?;
    let insert = mean_ns(keys, |number| {
        let key = key(number);
        shards[shard(&key)].insert(key, pointer(number));
    });
    let bytes = (resident_bytes()? - before) as f64 / keys as f64;
    let any = |step: u64| key(mix(step) % keys);
    let steps = keys.min(2_000_000);
    let get = mean_ns(steps, |step| {
        let key = any(step);
        assert!(black_box(shards[shard(&key)].get(&key)).is_some());
    });
    let overwrite = mean_ns(steps, |step| {
        let key = any(step);
        shards[shard(&key)].insert(key, pointer(step));
    });
    let mut listed = 0;
    let page = mean_ns(steps / PAGE_KEYS as u64, |step| {
        let key = any(step);
        listed += shards[shard(&key)].page(key);
    });
    let list = if listed == 0 { "-".to_owned() } else { format!("{:.1}", page / PAGE_KEYS as f64) };
    let remove = mean_ns(steps, |number| {
        let key = key(number);
        shards[shard(&key)].remove(&key);
    });
    println!(
        "{name:<10} {keys:>10} {insert:>8.0} {get:>8.0} {overwrite:>10.0} {remove:>8.0} \
         {list:>8} {bytes:>8.1}"
    );
    Ok(shards)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, keys] = &arguments[..]
        && STRUCTURES.contains(&name.as_str())
    {
        let keys = keys.parse()?;
        match name.as_str() {
            "hash" => drop(measure(name, keys, || Index::new(IndexKind::Hash))?),
            "ordered" => drop(measure(name, keys, || Index::new(IndexKind::Ordered))?),
            "BTreeMap" => drop(measure(name, keys, BTreeMap::<Key, RecordPointer>::new)?),
            _ => drop(measure(name, keys, Table::default)?),
        }
        return Ok(());
    }
    println!("nanoseconds of processor time a step; resident bytes a key");
    println!("structure        keys   insert   lookup  overwrite   remove     list    bytes");
    for keys in &arguments {
        for name in STRUCTURES {
            let done = Command::new(std::env::current_exe()?).args([name, keys]).status()?;
            if !done.success() {
                return Err(format!("{name} with {keys} keys failed").into());
            }
        }
    }
    Ok(())
}
