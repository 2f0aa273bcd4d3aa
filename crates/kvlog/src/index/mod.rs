//! [`Index`]: the keys of one namespace in one shard, with the places of their records, in memory.
//!
//! Two kinds behind one interface: [`IndexKind::Hash`] is compact, [`IndexKind::Ordered`] keeps
//! keys in their own order. Entries are exact in both, so that Exist, List, Delete and the
//! conditions of Store read no media. Nothing on the medium depends on the kind: it is chosen at
//! each start. It does no I/O.

mod hash;
mod permute;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use csd_nvme::kv::Key;

use super::record::{Content, RECORD_ALIGNMENT};
use hash::Hash;

/// Kind of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexKind {
    /// 24 bytes an entry, in the order of permuted keys.
    #[default]
    Hash,
    /// A tree, in the order of keys by length and bytes.
    Ordered,
}

impl IndexKind {
    /// Returns the bytes of memory that one key is counted with when the memory of indexes is
    /// limited. An index of many keys takes less.
    pub const fn key_bytes(self) -> u64 {
        match self {
            Self::Hash => 32,
            Self::Ordered => 64,
        }
    }

    /// Returns the size of the longest log that an entry can point into, in bytes.
    pub const fn log_bytes_max(self) -> u64 {
        match self {
            Self::Hash => RECORD_ALIGNMENT << hash::RECORD_BITS,
            Self::Ordered => u64::MAX,
        }
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hash => "hash",
            Self::Ordered => "ordered",
        })
    }
}

/// Pointer to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPointer {
    /// Offset of the record in the log, in units of [`RECORD_ALIGNMENT`].
    pub record: u64,
    /// Content behind the header.
    pub content: Content,
}

/// Rank of a key in the order of its index: equal keys have equal ranks in all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u8, u128, u8);

/// A page of an index: keys whose values exist, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Keys with their ranks.
    pub keys: Vec<(Rank, Key)>,
    /// Last key that was looked at, if there may be more behind it.
    pub last: Option<Key>,
}

/// An index.
#[derive(Debug)]
pub enum Index {
    /// Compact entries.
    Hash(Box<Hash>),
    /// A tree.
    Ordered(BTreeMap<Key, RecordPointer>),
}

impl Index {
    /// Makes an empty index.
    pub fn new(kind: IndexKind) -> Self {
        match kind {
            IndexKind::Hash => Self::Hash(Box::default()),
            IndexKind::Ordered => Self::Ordered(BTreeMap::new()),
        }
    }

    /// Returns the pointer to a key's newest record, which may be a tombstone.
    pub fn get(&self, key: &Key) -> Option<RecordPointer> {
        match self {
            Self::Hash(hash) => hash.get(key),
            Self::Ordered(tree) => tree.get(key).copied(),
        }
    }

    /// Sets the pointer to the record of a key, and returns the one before.
    pub fn insert(&mut self, key: Key, pointer: RecordPointer) -> Option<RecordPointer> {
        match self {
            Self::Hash(hash) => hash.insert(&key, pointer),
            Self::Ordered(tree) => tree.insert(key, pointer),
        }
    }

    /// Removes a key, and returns its pointer.
    pub fn remove(&mut self, key: &Key) -> Option<RecordPointer> {
        match self {
            Self::Hash(hash) => hash.remove(key),
            Self::Ordered(tree) => tree.remove(key),
        }
    }

    /// Returns the next keys in the index's order whose records have such content: at most
    /// `keys_max` of them, after a look at no more than `looks_max` entries.
    pub fn page(
        &self,
        from: Bound<Key>,
        keys_max: usize,
        looks_max: usize,
        is_wanted: impl Fn(Content) -> bool,
    ) -> Page {
        let mut page = Page::default();
        let mut looks = 0;
        let mut look = |rank, key, pointer: RecordPointer| {
            if page.keys.len() == keys_max || looks == looks_max {
                return false;
            }
            looks += 1;
            page.last = Some(key);
            if is_wanted(pointer.content) {
                page.keys.push((rank, key));
            }
            true
        };
        let is_whole = match self {
            Self::Hash(hash) => hash.scan(from, &mut look),
            Self::Ordered(tree) => {
                let mut entries = tree.range((from, Bound::Unbounded));
                entries.all(|(key, pointer)| look(ordered_rank(key), *key, *pointer))
            }
        };
        if is_whole {
            page.last = None;
        }
        page
    }

    /// Returns the number of entries, tombstones included.
    pub fn len(&self) -> usize {
        match self {
            Self::Hash(hash) => hash.len(),
            Self::Ordered(tree) => tree.len(),
        }
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of allocated capacity; `None` for a tree, which cannot tell.
    pub fn allocated_bytes(&self) -> Option<usize> {
        match self {
            Self::Hash(hash) => Some(hash.allocated_bytes()),
            Self::Ordered(_) => None,
        }
    }
}

fn ordered_rank(key: &Key) -> Rank {
    let length = u8::try_from(key.as_bytes().len()).expect("a key has at most 16 bytes");
    Rank(length, u128::from_be_bytes(*key.padded()), 0)
}

#[cfg(test)]
mod tests;
