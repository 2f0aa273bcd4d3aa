//! [`Holders`]: a value for each chunk that was seen, so that the value can share the chunk once
//! another one has it, too. In bounded memory: when that is full, chunks that were not seen before
//! are not remembered, and are not shared until the drive starts again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_kvlog::record::EntryKey;

use super::table::{Spread, part_of};

/// Number of parts, each under a lock of its own.
const PARTS: usize = 64;
/// Most bytes of memory that a chunk takes: a hash map has up to twice the room that it needs, and
/// both the old room and the new one while it grows.
const CHUNK_MEMORY_BYTES: u64 = 120;

/// A chunk that was seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// In one value.
    In(EntryKey),
    /// In several, or it is shared already.
    Often,
}

/// Chunks by the first 64 bits of their hashes, per namespace.
#[derive(Debug)]
pub(crate) struct Holders {
    parts: Vec<Mutex<HashMap<u64, Seen, BuildHasherDefault<Spread>>>>,
    chunks_max: usize,
    left_out: AtomicU64,
}

/// Knowledge of a chunk that a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// It was not seen before.
    New,
    /// One other value has it, which is now to share it.
    In(EntryKey),
    /// Several values have it.
    Often,
}

impl Holders {
    /// Makes a table that takes at most so many bytes of memory.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let chunks_max = memory_bytes / CHUNK_MEMORY_BYTES / PARTS as u64;
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            chunks_max: usize::try_from(chunks_max).unwrap_or(usize::MAX).max(1),
            left_out: AtomicU64::new(0),
        }
    }

    /// Notes a chunk of a value. The same value may have it several times.
    pub(crate) fn meet(&self, hash: u64, entry: EntryKey) -> Met {
        let mut part = self.part(hash);
        let has_room = part.len() < self.chunks_max;
        match part.get_mut(&hash) {
            Some(Seen::Often) => Met::Often,
            Some(seen) => match std::mem::replace(seen, Seen::Often) {
                Seen::In(other) => Met::In(other),
                Seen::Often => Met::Often,
            },
            None if has_room => {
                part.insert(hash, Seen::In(entry));
                Met::New
            }
            None => {
                self.left_out.fetch_add(1, Relaxed);
                Met::New
            }
        }
    }

    /// Notes a chunk that is shared.
    pub(crate) fn meet_shared(&self, hash: u64) {
        let mut part = self.part(hash);
        let has_room = part.len() < self.chunks_max;
        match part.get_mut(&hash) {
            Some(seen) => *seen = Seen::Often,
            None if has_room => drop(part.insert(hash, Seen::Often)),
            None => drop(self.left_out.fetch_add(1, Relaxed)),
        }
    }

    /// Returns true if a chunk was seen in several values, or is shared.
    pub(crate) fn is_often(&self, hash: u64) -> bool {
        matches!(self.part(hash).get(&hash), Some(Seen::Often))
    }

    /// Returns the number of chunks that there was no memory for.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    fn part(&self, hash: u64) -> MutexGuard<'_, HashMap<u64, Seen, BuildHasherDefault<Spread>>> {
        self.parts[part_of(hash)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use csd_nvme::kv::Key;

    use super::*;

    fn entry(number: u8) -> EntryKey {
        (2, Key::new(&[number]).unwrap())
    }

    #[test]
    fn the_first_holder_is_named_once_and_from_then_on_the_chunk_is_frequent() {
        let holders = Holders::new(1 << 20);
        assert_eq!(holders.meet(5, entry(1)), Met::New);
        assert!(!holders.is_often(5));
        assert_eq!(holders.meet(5, entry(2)), Met::In(entry(1)));
        assert_eq!(holders.meet(5, entry(3)), Met::Often);
        assert!(holders.is_often(5) && !holders.is_often(6));
        holders.meet_shared(6);
        assert_eq!(holders.meet(6, entry(1)), Met::Often);
    }

    #[test]
    fn a_full_table_remembers_what_it_knows_and_counts_the_rest() {
        let holders = Holders::new(0);
        let hash = |number: u64| number << 58;
        assert_eq!(holders.meet(hash(1), entry(1)), Met::New);
        assert_eq!(holders.meet(hash(1) + 1, entry(1)), Met::New);
        assert_eq!(holders.meet(hash(1) + 1, entry(2)), Met::New, "it had no room");
        assert_eq!(holders.meet(hash(1), entry(2)), Met::In(entry(1)));
        assert_eq!(holders.left_out(), 2);
    }
}
