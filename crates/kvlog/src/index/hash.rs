//! [`Hash`]: an exact index of 24 bytes an entry.
//!
//! Entries are sorted by a permutation of the key, so that they spread evenly, and the permutation
//! is inverted to list keys. Bits of the key that an entry's position implies are not stored:
//! quotienting (Cleary, "Compact hash tables using bidirectional linear probing", 1984). In place
//! of probing there are sorted blocks, as the leaves of a B+ tree.
//!
//! A key's first 8 permuted bits choose one of 256 partitions and are not stored. A partition is a
//! list of blocks, a block a sorted array of at most [`BLOCK_ENTRIES_MAX`] entries. Invariants:
//! no block is empty; every entry of a block is at or behind the block's `first` and before that of
//! the next one; the capacity of a block is at most [`SLACK_ENTRIES`] larger than its length. No
//! step's time grows with the number of keys, except that a block that splits moves the list of its
//! partition's blocks, 40 bytes for about 90 keys.

use std::ops::Bound;

use csd_nvme::kv::Key;

use super::permute::{inverse, permute};
use super::{Content, Rank, RecordPointer};

/// Bits of a record's offset: 16 TiB in units of 64 bytes.
pub(super) const RECORD_BITS: u32 = 38;
/// Bits of a value's length: up to 16 MiB.
const LENGTH_BITS: u32 = 25;
/// Number of partitions.
const PARTITIONS: usize = 256;
/// Bits of a permuted key that its partition stands for.
const PARTITION_BITS: u32 = 8;
/// Most entries of a block. A full block splits in halves.
pub(super) const BLOCK_ENTRIES_MAX: usize = 128;
/// Entries by which the capacity of a block grows.
const STEP_ENTRIES: usize = 8;
/// Unused capacity of a block at which it is given back.
const SLACK_ENTRIES: usize = 2 * STEP_ENTRIES;
/// Two neighbours that together have at most this many entries become one block.
const MERGED_ENTRIES_MAX: usize = 96;

/// Order of an entry in its partition: 120 bits of the permuted key, 4 bits of the key's length
/// less one, 4 zeros.
type Order = u128;

/// An entry. Two words of the order, so that its size is 24 bytes, then the pointer: 38 bits of the
/// record, 25 of the length behind its header, and one that is not set for a value. Without a
/// value, a length of 0 is a tombstone, and another one that of a list of parts.
#[derive(Clone, Copy, Debug)]
struct Entry([u64; 3]);

const _: () = assert!(size_of::<Entry>() == 24 && RECORD_BITS + LENGTH_BITS + 1 == u64::BITS);

impl Entry {
    #[allow(clippy::cast_possible_truncation)] // the halves
    fn new(order: Order, pointer: RecordPointer) -> Self {
        Self([(order >> 64) as u64, order as u64, pack(pointer)])
    }

    fn order(&self) -> Order {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }

    fn pointer(&self) -> RecordPointer {
        let length = u32::try_from(self.0[2] >> 1 & ((1 << LENGTH_BITS) - 1)).expect("25 bits");
        RecordPointer {
            record: self.0[2] >> (LENGTH_BITS + 1),
            content: match (self.0[2] & 1, length) {
                (0, length) => Content::Value(length),
                (_, 0) => Content::Tombstone,
                (_, length) => Content::Indirect(length),
            },
        }
    }
}

fn pack(pointer: RecordPointer) -> u64 {
    let length = u64::from(pointer.content.bytes());
    // The drive refuses longer logs at its start, and the commands longer values.
    assert!(pointer.record >> RECORD_BITS == 0 && length >> LENGTH_BITS == 0, "{pointer:?}");
    // A list of parts is never empty.
    assert!(pointer.content != Content::Indirect(0), "{pointer:?}");
    let is_other = !matches!(pointer.content, Content::Value(_));
    pointer.record << (LENGTH_BITS + 1) | length << 1 | u64::from(is_other)
}

/// A sorted array of entries.
#[derive(Debug)]
struct Block {
    first: Order,
    entries: Vec<Entry>,
}

impl Block {
    fn find(&self, order: Order) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&order, Entry::order)
    }

    /// Gives capacity back that is more than a step beyond the length.
    fn trim(&mut self) {
        if self.entries.capacity() - self.entries.len() > SLACK_ENTRIES {
            self.entries.shrink_to(self.entries.len().next_multiple_of(STEP_ENTRIES));
        }
    }
}

/// A compact index.
#[derive(Debug)]
pub struct Hash {
    partitions: Vec<Vec<Block>>,
    length: usize,
}

impl Default for Hash {
    fn default() -> Self {
        Self { partitions: (0..PARTITIONS).map(|_| Vec::new()).collect(), length: 0 }
    }
}

impl Hash {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, key: &Key) -> Option<RecordPointer> {
        let (partition, order) = spot(key);
        let blocks = &self.partitions[partition];
        let block = &blocks[block_of(blocks, order)?];
        block.find(order).ok().map(|at| block.entries[at].pointer())
    }

    pub(super) fn insert(&mut self, key: &Key, pointer: RecordPointer) -> Option<RecordPointer> {
        let (partition, order) = spot(key);
        let blocks = &mut self.partitions[partition];
        if blocks.is_empty() {
            blocks.push(Block { first: order, entries: Vec::new() });
        }
        let mut number = block_of(blocks, order).unwrap_or(0);
        let mut at = match blocks[number].find(order) {
            Ok(at) => {
                let entry = &mut blocks[number].entries[at];
                let before = entry.pointer();
                *entry = Entry::new(order, pointer);
                return Some(before);
            }
            Err(at) => at,
        };
        if blocks[number].entries.len() == BLOCK_ENTRIES_MAX {
            let half = BLOCK_ENTRIES_MAX / 2;
            let entries = blocks[number].entries.split_off(half);
            blocks[number].trim();
            blocks.insert(number + 1, Block { first: entries[0].order(), entries });
            if at > half {
                (number, at) = (number + 1, at - half);
            }
        }
        let block = &mut blocks[number];
        if block.entries.len() == block.entries.capacity() {
            block.entries.reserve_exact(STEP_ENTRIES);
        }
        block.entries.insert(at, Entry::new(order, pointer));
        block.first = block.first.min(order);
        self.length += 1;
        None
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<RecordPointer> {
        let (partition, order) = spot(key);
        let blocks = &mut self.partitions[partition];
        let number = block_of(blocks, order)?;
        let at = blocks[number].find(order).ok()?;
        let pointer = blocks[number].entries.remove(at).pointer();
        self.length -= 1;
        let entries = |number: usize| blocks.get(number).map_or(usize::MAX, |b| b.entries.len());
        let own = entries(number);
        let fits = |neighbour: usize| entries(neighbour).saturating_add(own) <= MERGED_ENTRIES_MAX;
        if own == 0 {
            blocks.remove(number);
        } else if fits(number + 1) {
            let mut next = blocks.remove(number + 1);
            blocks[number].entries.reserve_exact(next.entries.len());
            blocks[number].entries.append(&mut next.entries);
        } else if number > 0 && fits(number - 1) {
            let mut last = blocks.remove(number);
            blocks[number - 1].entries.reserve_exact(last.entries.len());
            blocks[number - 1].entries.append(&mut last.entries);
        }
        if let Some(block) = blocks.get_mut(number) {
            block.trim();
        }
        if blocks.capacity() > 2 * blocks.len() + STEP_ENTRIES {
            blocks.shrink_to(blocks.len() + STEP_ENTRIES);
        }
        Some(pointer)
    }

    /// Shows entries in order, from a key on, until `look` returns false. Returns true if all were
    /// shown.
    pub(super) fn scan(
        &self,
        from: Bound<Key>,
        look: &mut impl FnMut(Rank, Key, RecordPointer) -> bool,
    ) -> bool {
        let (first, is_included) = match from {
            Bound::Included(key) => (spot(&key), true),
            Bound::Excluded(key) => (spot(&key), false),
            Bound::Unbounded => ((0, 0), true),
        };
        for (number, blocks) in self.partitions.iter().enumerate().skip(first.0) {
            // Partitions behind the first are shown whole.
            let (least, is_included) =
                if number == first.0 { (first.1, is_included) } else { (0, true) };
            let begin = block_of(blocks, least).unwrap_or(0);
            for block in &blocks[begin..] {
                let start = match block.find(least) {
                    Ok(at) if is_included => at,
                    Ok(at) => at + 1,
                    Err(at) => at,
                };
                for entry in &block.entries[start..] {
                    let (rank, key) = ranked(number, entry.order());
                    if !look(rank, key, entry.pointer()) {
                        return false;
                    }
                }
            }
        }
        true
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        let blocks = self.partitions.iter().flatten();
        let entries: usize = blocks.map(|block| block.entries.capacity()).sum();
        let blocks: usize = self.partitions.iter().map(Vec::capacity).sum();
        size_of::<Self>()
            + self.partitions.capacity() * size_of::<Vec<Block>>()
            + blocks * size_of::<Block>()
            + entries * size_of::<Entry>()
    }
}

/// Returns the number of the block that has, or would have, an entry; `None` if it is before the
/// first.
fn block_of(blocks: &[Block], order: Order) -> Option<usize> {
    blocks.partition_point(|block| block.first <= order).checked_sub(1)
}

/// Returns the partition of a key, and its order there.
fn spot(key: &Key) -> (usize, Order) {
    let permuted = permute(key.padded());
    let partition = usize::try_from(permuted >> (128 - PARTITION_BITS)).expect("8 bits");
    (partition, permuted << PARTITION_BITS | (key.as_bytes().len() as u128 - 1) << 4)
}

/// Returns rank and key of an entry.
fn ranked(partition: usize, order: Order) -> (Rank, Key) {
    let length = usize::try_from(order >> 4 & 0xF).expect("4 bits") + 1;
    let permuted = (partition as u128) << (128 - PARTITION_BITS) | order >> PARTITION_BITS;
    let key = Key::new(&inverse(permuted)[..length]).expect("1 to 16 bytes");
    (Rank(0, permuted, u8::try_from(length).expect("at most 16")), key)
}

#[cfg(test)]
impl Hash {
    /// Checks the invariants.
    pub(super) fn check(&self) {
        let mut length = 0;
        for blocks in &self.partitions {
            for (number, block) in blocks.iter().enumerate() {
                let entries = &block.entries;
                assert!(!entries.is_empty() && entries.len() <= BLOCK_ENTRIES_MAX);
                assert!(entries.capacity() - entries.len() <= SLACK_ENTRIES, "{}", entries.len());
                assert!(entries.is_sorted_by(|a, b| a.order() < b.order()));
                assert!(block.first <= entries[0].order());
                let next = blocks.get(number + 1).map_or(u128::MAX, |next| next.first);
                assert!(entries.iter().all(|entry| entry.order() < next));
                length += entries.len();
            }
        }
        assert_eq!(length, self.length);
    }
}
