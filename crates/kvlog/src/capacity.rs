//! [`Room`]: the room for records and keys that namespaces announce and promise.
//!
//! Invariants: the records of all keys together never exceed [`Segments::capacity_bytes`]; what is
//! announced can be stored.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::format::SHARDS;
use crate::segments::Segments;

/// Segments whose space is not announced: the open one of each shard, those that [`Need`] reserves,
/// and two for cleaning to choose from.
const UNANNOUNCED: u64 = SHARDS as u64 + 3 + 2;
/// One segment in this many is not announced either, for padding of groups and ends of segments
/// that were too short for the next record.
const PADDING_SHARE: u64 = 50;
impl Segments {
    /// Returns the bytes of records that the drive promises to keep, over all namespaces.
    pub fn capacity_bytes(&self) -> u64 {
        let count = u64::from(self.count);
        count.saturating_sub(UNANNOUNCED + count / PADDING_SHARE) * self.payload_bytes()
    }

    /// Counts new current records of so many keys, which take `bytes` together.
    pub fn add_used(&self, nsid: u16, bytes: u64, keys: u64) {
        self.promised.fetch_add(bytes, Relaxed);
        if let Some(namespace) = self.namespace(nsid) {
            self.index_bytes.fetch_add(keys * namespace.index.key_bytes(), Relaxed);
            namespace.used_bytes.fetch_add(bytes, Relaxed);
            namespace.keys.fetch_add(keys, Relaxed);
        }
    }

    /// Counts a record that is no longer current.
    pub fn remove_used(&self, nsid: u16, bytes: u64) {
        self.promised.fetch_sub(bytes, Relaxed);
        if let Some(namespace) = self.namespace(nsid) {
            self.index_bytes.fetch_sub(namespace.index.key_bytes(), Relaxed);
            namespace.used_bytes.fetch_sub(bytes, Relaxed);
            namespace.keys.fetch_sub(1, Relaxed);
        }
    }

    /// Returns the size of a namespace in bytes: its records in use, and what the drive has room
    /// for beyond the records of all namespaces.
    pub fn size_bytes(&self, nsid: u16) -> u64 {
        self.used_bytes(nsid) + self.capacity_bytes().saturating_sub(self.promised.load(Relaxed))
    }

    /// Returns the most keys of a namespace: its keys, and those that the memory of indexes has
    /// room for; `None` if nothing but the bytes of records limits them.
    pub fn keys_max(&self, nsid: u16) -> Option<u64> {
        let left = self.index_bytes_max?.saturating_sub(self.index_bytes.load(Relaxed));
        let namespace = self.namespace(nsid)?;
        Some(namespace.keys.load(Relaxed) + left / namespace.index.key_bytes())
    }

    /// Promises space for `bytes` more bytes of records, and for the index's entry of a new key;
    /// `None` when the drive is full.
    pub fn promise(self: &Arc<Self>, nsid: u16, bytes: u64, is_new: bool) -> Option<Room> {
        let key_bytes = if is_new { self.index_kind(nsid).key_bytes() } else { 0 };
        // Dropped, it takes back what was promised so far.
        let mut room = Room { segments: Arc::clone(self), bytes: 0, key_bytes: 0 };
        if !reserve(&self.promised, bytes, self.capacity_bytes()) {
            return None;
        }
        room.bytes = bytes;
        if !reserve(&self.index_bytes, key_bytes, self.index_bytes_max.unwrap_or(u64::MAX)) {
            return None;
        }
        room.key_bytes = key_bytes;
        Some(room)
    }
}

/// A promise of space to a Store. Dropping it takes the promise back; a Store that has become
/// durable drops it when its record is counted.
#[derive(Debug)]
pub struct Room {
    segments: Arc<Segments>,
    bytes: u64,
    // Memory for the key, if it is new.
    key_bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.segments.promised.fetch_sub(self.bytes, Relaxed);
        self.segments.index_bytes.fetch_sub(self.key_bytes, Relaxed);
    }
}

/// Adds `more` to a sum that must not exceed `most`. Nothing more always fits.
fn reserve(sum: &AtomicU64, more: u64, most: u64) -> bool {
    let fits = |sum: u64| sum.checked_add(more).filter(|sum| *sum <= most);
    more == 0 || sum.fetch_update(Relaxed, Relaxed, fits).is_ok()
}
