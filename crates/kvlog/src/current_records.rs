//! Current records: the index of a shard, and the accounts of the records that it points at.
//!
//! Invariant: bytes in use, of a segment and of a namespace, are those of the records that the
//! index points at.

use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::kv::Key;

use crate::index::{Index, Page, RecordPointer};
use crate::record::{Content, EntryKey, RECORD_ALIGNMENT};
use crate::shard::{Location, Shard};

impl Shard {
    /// Returns the newest value's location; `None` when the key does not exist.
    pub fn find(&self, key: &EntryKey) -> Option<Location> {
        self.newest(key).filter(|location| location.content.is_value())
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
            content: pointer.content,
        }
    }

    pub(crate) fn pointer(&self, location: &Location) -> RecordPointer {
        let at = u64::from(location.segment) * self.segments.segment_bytes + location.offset;
        RecordPointer { record: at / RECORD_ALIGNMENT, content: location.content }
    }

    /// Returns the next keys of a namespace in the order of its index, at most `keys_max`, after a
    /// look at no more than `looks_max` entries.
    pub fn list(&self, nsid: u16, from: Bound<Key>, keys_max: usize, looks_max: usize) -> Page {
        self.list_of(nsid, from, (keys_max, looks_max), Content::is_value)
    }

    /// Returns the next keys of a namespace whose records have such content, otherwise as
    /// [`Self::list`].
    pub(crate) fn list_of(
        &self,
        nsid: u16,
        from: Bound<Key>,
        (keys_max, looks_max): (usize, usize),
        is_wanted: impl Fn(Content) -> bool,
    ) -> Page {
        let index = self.index.borrow();
        let page = |index: &Index| index.page(from, keys_max, looks_max, is_wanted);
        index.get(&nsid).map(page).unwrap_or_default()
    }

    /// Points the index at a durable record, and accounts for the one it replaces.
    pub(crate) fn apply(&self, key: EntryKey, location: Location) {
        let old = {
            let mut index = self.index.borrow_mut();
            let of_namespace = || Index::new(self.segments.index_kind(key.0));
            let index = index.entry(key.0).or_insert_with(of_namespace);
            index.insert(key.1, self.pointer(&location))
        };
        let space = self.segments.space(location.content);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&location.segment) {
            segment.live += space;
            segment.tombstones += if !location.content.is_value() { space } else { 0 };
        }
        if location.content.is_value() {
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
        let space = self.segments.space(old.content);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&old.segment) {
            segment.live -= space;
            segment.tombstones -= if !old.content.is_value() { space } else { 0 };
        }
        if old.content.is_list() {
            self.segments.dropped_lists.fetch_add(1, Relaxed);
        }
        if old.content.is_value() {
            self.segments.remove_used(key.0, space);
        }
    }
}
