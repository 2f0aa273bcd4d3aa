//! Current records: the index of a shard, and the accounts of the records that it points at.
//!
//! Invariant: bytes in use, of a segment and of a namespace, are those of the records that the
//! index points at.

use std::ops::Bound;

use csd_nvme::kv::Key;

use crate::index::{Index, Page, RecordPointer};
use crate::record::{EntryKey, RECORD_ALIGNMENT};
use crate::shard::{Location, Shard};

impl Shard {
    /// Returns the newest value's location; `None` when the key does not exist.
    pub fn find(&self, key: &EntryKey) -> Option<Location> {
        self.newest(key).filter(|location| location.value_bytes.is_some())
    }

    /// Returns the location of a key's newest record, which may be a tombstone.
    pub(crate) fn newest(&self, (nsid, key): &EntryKey) -> Option<Location> {
        let pointer = self.index.borrow().get(nsid)?.get(key)?;
        Some(self.location(pointer))
    }

    pub(crate) fn location(&self, pointer: RecordPointer) -> Location {
        let (at, segment_bytes) = (pointer.record * RECORD_ALIGNMENT, self.segments.segment_bytes);
        Location {
            segment: u32::try_from(at / segment_bytes).expect("the log has 2^32 segments at most"),
            offset: at % segment_bytes,
            value_bytes: pointer.value_bytes,
        }
    }

    pub(crate) fn pointer(&self, location: &Location) -> RecordPointer {
        let at = u64::from(location.segment) * self.segments.segment_bytes + location.offset;
        RecordPointer { record: at / RECORD_ALIGNMENT, value_bytes: location.value_bytes }
    }

    /// Returns the next keys of a namespace in the order of its index, at most `keys_max`, after a
    /// look at no more than `looks_max` entries.
    pub fn list(&self, nsid: u16, from: Bound<Key>, keys_max: usize, looks_max: usize) -> Page {
        let index = self.index.borrow();
        index.get(&nsid).map(|index| index.page(from, keys_max, looks_max)).unwrap_or_default()
    }

    /// Points the index at a durable record, and accounts for the one it replaces.
    pub(crate) fn apply(&self, key: EntryKey, location: Location) {
        let old = {
            let mut index = self.index.borrow_mut();
            let of_namespace = || Index::new(self.segments.index_kind(key.0));
            let index = index.entry(key.0).or_insert_with(of_namespace);
            index.insert(key.1, self.pointer(&location))
        };
        let space = self.segments.space(location.value_bytes);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&location.segment) {
            segment.live += space;
            segment.tombstones += if location.value_bytes.is_none() { space } else { 0 };
        }
        if location.value_bytes.is_some() {
            self.segments.add_used(key.0, space, 1);
        }
        if let Some(old) = old {
            self.forget(key, &self.location(old));
        }
    }

    /// Returns true when the index points at this record.
    pub(crate) fn is_current(&self, key: &EntryKey, location: &Location) -> bool {
        self.newest(key) == Some(*location)
    }

    /// Removes a tombstone from the index.
    pub(crate) fn bury(&self, key: EntryKey, tombstone: &Location) {
        if let Some(index) = self.index.borrow_mut().get_mut(&key.0) {
            index.remove(&key.1);
        }
        self.forget(key, tombstone);
    }

    /// Accounts for a record that the index no longer points at.
    pub(crate) fn forget(&self, key: EntryKey, old: &Location) {
        let space = self.segments.space(old.value_bytes);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&old.segment) {
            segment.live -= space;
            segment.tombstones -= if old.value_bytes.is_none() { space } else { 0 };
        }
        if old.value_bytes.is_some() {
            self.segments.remove_used(key.0, space);
        }
    }
}
