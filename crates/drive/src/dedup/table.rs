//! Chunks that were seen, and how often, in bounded memory.
//!
//! A chunk is known by the first 64 bits of its hash. When a part of the table is full it keeps
//! half of its chunks, chosen by bits of their hashes, and from then on looks at that half only:
//! adaptive sampling (Wegman; Flajolet, "On adaptive sampling", Computing 43, 1990). Every chunk
//! that stays has been counted from its first time on, so the share of duplicates among those that
//! stay estimates that of all. Invariant: the table never holds more chunks than its memory has
//! room for.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of parts, each under a lock of its own; a chunk's part is given by its highest bits.
const PARTS: usize = 64;
/// Most bytes of memory that a chunk takes: a hash map has up to twice the room that it needs, and
/// both the old room and the new one while it grows.
const CHUNK_MEMORY_BYTES: u64 = 60;

/// A chunk: the first bits of its hash, and its length in bytes.
pub(crate) type Chunk = (u64, u32);

/// A chunk in the table.
#[derive(Clone, Copy, Debug)]
struct Seen {
    times: u32,
    bytes: u32,
}

/// The bits of a hash are spread already.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.is_empty(), "keys are numbers");
    }

    fn write_u64(&mut self, number: u64) {
        // The highest bits select the part, and the lowest ones the sample.
        self.0 = number.rotate_left(29);
    }
}

#[derive(Debug, Default)]
struct Part {
    seen: HashMap<u64, Seen, BuildHasherDefault<Spread>>,
    /// One chunk of 2 to the power of this is looked at.
    level: u32,
    /// Bytes of the chunks in the table, each counted as often as it was seen.
    stored_bytes: u64,
    /// Bytes of the chunks in the table, each counted once.
    unique_bytes: u64,
    chunks: u64,
    bytes: u64,
}

impl Part {
    fn is_sampled(level: u32, chunk: u64) -> bool {
        chunk.trailing_zeros() >= level
    }

    fn count(&mut self, (chunk, bytes): Chunk, chunks_max: usize) {
        self.chunks += 1;
        self.bytes += u64::from(bytes);
        if !Self::is_sampled(self.level, chunk) {
            return;
        }
        if let Some(seen) = self.seen.get_mut(&chunk) {
            seen.times = seen.times.saturating_add(1);
            self.stored_bytes += u64::from(seen.bytes);
            return;
        }
        while self.seen.len() >= chunks_max {
            self.halve();
            if !Self::is_sampled(self.level, chunk) {
                return;
            }
        }
        self.seen.insert(chunk, Seen { times: 1, bytes });
        self.stored_bytes += u64::from(bytes);
        self.unique_bytes += u64::from(bytes);
    }

    /// Returns the bytes of different chunks, those that are not looked at included.
    fn all_unique_bytes(&self) -> u64 {
        if self.stored_bytes == 0 {
            return self.bytes;
        }
        let unique = u128::from(self.bytes) * u128::from(self.unique_bytes);
        u64::try_from(unique / u128::from(self.stored_bytes)).unwrap_or(u64::MAX)
    }

    /// Forgets the half of the chunks that is no longer looked at.
    fn halve(&mut self) {
        self.level += 1;
        let level = self.level;
        self.seen.retain(|chunk, _| Self::is_sampled(level, *chunk));
        let sum = |of: fn(&Seen) -> u64| self.seen.values().map(of).sum::<u64>();
        self.unique_bytes = sum(|seen| u64::from(seen.bytes));
        self.stored_bytes = sum(|seen| u64::from(seen.bytes) * u64::from(seen.times));
    }
}

/// Counts of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Chunks, each as often as it was stored.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of different chunks; an estimate if `sampling` is more than 1.
    pub unique_bytes: u64,
    /// One chunk of so many is looked at, at the part of the table where that is most.
    pub sampling: u64,
    /// Chunks in the table.
    pub table_chunks: u64,
}

impl Counted {
    /// Returns the share of the bytes that are in a chunk which was there before, 0 to 1.
    pub fn duplicate_share(&self) -> f64 {
        match self.bytes {
            0 => 0.0,
            bytes => 1.0 - self.unique_bytes as f64 / bytes as f64,
        }
    }
}

/// The chunks that were seen.
#[derive(Debug)]
pub(crate) struct Table {
    parts: Vec<Mutex<Part>>,
    chunks_max: usize,
}

impl Table {
    /// Makes an empty table that takes at most so many bytes of memory.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let chunks_max = memory_bytes / CHUNK_MEMORY_BYTES / PARTS as u64;
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            chunks_max: usize::try_from(chunks_max).unwrap_or(usize::MAX).max(1),
        }
    }

    /// Counts chunks, whose order changes.
    pub(crate) fn count(&self, chunks: &mut [Chunk]) {
        chunks.sort_unstable();
        for of_part in chunks.chunk_by(|one, other| part_of(one.0) == part_of(other.0)) {
            let mut part = lock(&self.parts[part_of(of_part[0].0)]);
            of_part.iter().for_each(|chunk| part.count(*chunk, self.chunks_max));
        }
    }

    /// Returns the counts.
    pub(crate) fn counted(&self) -> Counted {
        let mut counted = Counted { sampling: 1, ..Counted::default() };
        for part in &self.parts {
            let part = lock(part);
            counted.chunks += part.chunks;
            counted.bytes += part.bytes;
            counted.table_chunks += part.seen.len() as u64;
            counted.sampling = counted.sampling.max(1 << part.level.min(63));
            counted.unique_bytes += part.all_unique_bytes();
        }
        counted
    }
}

pub(super) fn part_of(chunk: u64) -> usize {
    (chunk >> 58) as usize
}

/// Locks a part. Counting does not panic half-way.
fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hash of a chunk: that of SplitMix64.
    fn hash(number: u64) -> u64 {
        let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Counts each of `different` chunks 1 to 3 times; returns what that is, and the bytes.
    fn fill(table: &Table, different: u64) -> (u64, u64) {
        let (mut stored, mut unique) = (0, 0);
        for round in 0..3 {
            let here = (0..different).filter(|number| number % 3 >= round);
            let mut chunks: Vec<Chunk> = here.map(|number| (hash(number), 128)).collect();
            stored += 128 * chunks.len() as u64;
            unique += if round == 0 { 128 * chunks.len() as u64 } else { 0 };
            chunks.chunks_mut(100).for_each(|some| table.count(some));
        }
        (stored, unique)
    }

    #[test]
    fn everything_is_counted_while_there_is_room() {
        let table = Table::new(64 << 20);
        let (bytes, unique_bytes) = fill(&table, 30_000);
        let (chunks, table_chunks) = (bytes / 128, 30_000);
        let counted = Counted { chunks, bytes, unique_bytes, sampling: 1, table_chunks };
        assert_eq!(table.counted(), counted);
        assert!((counted.duplicate_share() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_full_table_samples_and_its_share_stays_close() {
        let memory = 1 << 20;
        let table = Table::new(memory);
        let (bytes, unique_bytes) = fill(&table, 300_000);
        let counted = table.counted();
        assert_eq!((counted.bytes, counted.chunks), (bytes, bytes / 128));
        assert!(counted.sampling >= 16, "{counted:?}");
        assert!(counted.table_chunks * CHUNK_MEMORY_BYTES <= memory, "{counted:?}");
        // Some 10,000 chunks of a binomial share: 4 standard deviations are 2 %.
        let wrong = counted.unique_bytes as f64 / unique_bytes as f64 - 1.0;
        assert!(wrong.abs() < 0.02, "{wrong}: {counted:?}");
    }

    #[test]
    fn an_empty_table_has_no_duplicates_and_one_chunk_is_enough_for_a_tiny_one() {
        assert_eq!(Table::new(0).counted().duplicate_share(), 0.0);
        let table = Table::new(0);
        fill(&table, 1000);
        let counted = table.counted();
        assert!(counted.table_chunks <= PARTS as u64 && counted.sampling > 1, "{counted:?}");
    }
}
