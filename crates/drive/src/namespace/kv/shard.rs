//! One shard of the kv log: its index, its segments, its group commits.
//!
//! A shard lives on one core. Stores and deletes are appended to its open segment in groups: one
//! write, one sync, then every member is answered and the index changes. Never: routing, commands.
//!
//! Invariants: the index points only at durable records; changes of one key are made one after the
//! other ([`Shard::lock`]); an acknowledged byte is never written again; only a shard's newest
//! segment is without a seal.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Notify};

use super::record::{EntryKey, footprint};
use super::segments::Segments;
use crate::error::Access;
use crate::media::{Media, Syncer};

/// Where the newest record of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Segment.
    pub segment: u32,
    /// Offset of the record within it, in bytes.
    pub offset: u64,
    /// Length of the value in bytes, `None` for a tombstone.
    pub value_bytes: Option<u32>,
    /// CRC-32C of the value.
    pub value_checksum: u32,
    /// Commit number.
    pub commit: u64,
}

impl Location {
    /// Bytes of the record in its segment.
    pub fn footprint(&self) -> u64 {
        footprint(u64::from(self.value_bytes.unwrap_or(0)))
    }
}

/// A segment that the shard owns.
#[derive(Debug, Default)]
pub struct Segment {
    /// Its sequence.
    pub sequence: u64,
    /// Bytes filled, from offset 0.
    pub filled: u64,
    /// Bytes of records that the index points at, tombstones included.
    pub live: u64,
    /// Bytes of tombstones among them.
    pub tombstones: u64,
    /// Reads that go on.
    pub readers: u32,
    /// No more records are appended.
    pub sealed: bool,
}

/// What is to be appended.
pub struct Append {
    /// Namespace and key, locked until this is durable or has failed, even if whoever asked for it
    /// is gone: what comes later must not see it half done.
    pub lock: KeyLock,
    /// Pieces of the value, `None` for a tombstone.
    pub value: Option<Vec<Buffer>>,
    /// Commit number of a record that cleaning moves; a new one gets the next.
    pub moved: Option<u64>,
    /// Filled in when the group is durable, or has failed.
    pub outcome: Rc<Outcome>,
}

/// An append that was refused: nothing was written.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub status: Status,
    /// The value, for another try when there was no room for it.
    pub value: Option<Vec<Buffer>>,
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self { status, value: None }
    }
}

/// The answer to one append.
#[derive(Default)]
pub struct Outcome {
    /// The answer.
    pub result: Cell<Option<Result<(), Refused>>>,
    /// Woken with it.
    pub done: Notify,
}

/// The shard.
pub struct Shard {
    /// Its number.
    pub number: u32,
    /// The medium.
    pub media: Media,
    /// What all shards share.
    pub segments: Arc<Segments>,
    /// Syncs of this core.
    pub syncer: Rc<Syncer>,
    pub(super) index: RefCell<BTreeMap<EntryKey, Location>>,
    pub(super) owned: RefCell<BTreeMap<u32, Segment>>,
    pub(super) open: Cell<Option<u32>>,
    // A segment that is being sealed, and up to where: no other is begun before it is.
    pub(super) closing: Cell<Option<(u32, u64)>>,
    pub(super) queue: RefCell<VecDeque<Append>>,
    pub(super) committing: Cell<bool>,
    pub(super) broken: Cell<bool>,
    locked: RefCell<BTreeSet<EntryKey>>,
    unlocked: Notify,
}

/// The right to change one key.
pub struct KeyLock {
    shard: Weak<Shard>,
    key: EntryKey,
}

impl KeyLock {
    /// The key.
    pub fn key(&self) -> EntryKey {
        self.key
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        if let Some(shard) = self.shard.upgrade() {
            shard.locked.borrow_mut().remove(&self.key);
            shard.unlocked.notify_all();
        }
    }
}

impl Shard {
    /// A shard that owns nothing yet.
    pub fn new(number: u32, media: Media, segments: Arc<Segments>, syncer: Rc<Syncer>) -> Self {
        Self {
            number,
            media,
            segments,
            syncer,
            index: RefCell::default(),
            owned: RefCell::default(),
            open: Cell::new(None),
            closing: Cell::new(None),
            queue: RefCell::default(),
            committing: Cell::new(false),
            broken: Cell::new(false),
            locked: RefCell::default(),
            unlocked: Notify::new(),
        }
    }

    /// The newest value's location; `None` when the key does not exist.
    pub fn find(&self, key: &EntryKey) -> Option<Location> {
        let found = self.index.borrow().get(key).copied();
        found.filter(|location| location.value_bytes.is_some())
    }

    /// Keeps the record's segment from being reused while it is read.
    pub fn pin(&self, location: &Location) {
        if let Some(segment) = self.owned.borrow_mut().get_mut(&location.segment) {
            segment.readers += 1;
        }
    }

    /// Ends a read that [`Self::pin`] began.
    pub fn unpin(&self, segment: u32) {
        if let Some(segment) = self.owned.borrow_mut().get_mut(&segment) {
            segment.readers -= 1;
        }
    }

    /// Waits until nobody else changes this key.
    pub async fn lock(self: &Rc<Self>, key: EntryKey) -> KeyLock {
        while !self.locked.borrow_mut().insert(key) {
            self.unlocked.notified().await;
        }
        KeyLock { shard: Rc::downgrade(self), key }
    }

    /// At most `most` keys of a namespace in order, from `from` on.
    pub fn list(&self, nsid: u16, from: Option<Key>, most: usize) -> Vec<Key> {
        let first = from.unwrap_or_else(|| Key::new(&[0]).expect("the least key"));
        let index = self.index.borrow();
        let entries = index.range((nsid, first)..).take_while(|((at, _), _)| *at == nsid);
        let values = entries.filter(|(_, location)| location.value_bytes.is_some());
        values.map(|((_, key), _)| *key).take(most).collect()
    }

    /// Appends a record and waits until it is durable and in the index.
    ///
    /// # Errors
    /// [`Status::CAPACITY_EXCEEDED`], with the value given back, or what the medium's failure
    /// means.
    pub async fn append(
        self: &Rc<Self>,
        lock: KeyLock,
        value: Option<Vec<Buffer>>,
        moved: Option<u64>,
    ) -> Result<(), Refused> {
        if self.broken.get() {
            return Err(Status::NAMESPACE_WRITE_PROTECTED.into());
        }
        let outcome = Rc::new(Outcome::default());
        let append = Append { lock, value, moved, outcome: Rc::clone(&outcome) };
        self.queue.borrow_mut().push_back(append);
        self.start_committing();
        loop {
            if let Some(result) = outcome.result.take() {
                return result;
            }
            outcome.done.notified().await;
        }
    }

    /// Points the index at a durable record, and accounts for the one it replaces.
    pub(super) fn apply(&self, key: EntryKey, location: Location) {
        let old = self.index.borrow_mut().insert(key, location);
        let mut owned = self.owned.borrow_mut();
        if let Some(segment) = owned.get_mut(&location.segment) {
            segment.live += location.footprint();
            if location.value_bytes.is_none() {
                segment.tombstones += location.footprint();
            }
        }
        drop(owned);
        if location.value_bytes.is_some() {
            self.segments.add_used(key.0, location.footprint());
        }
        if let Some(old) = old {
            self.forget(key, &old);
        }
    }

    /// Accounts for a record that the index no longer points at.
    pub(super) fn forget(&self, key: EntryKey, old: &Location) {
        if let Some(segment) = self.owned.borrow_mut().get_mut(&old.segment) {
            segment.live -= old.footprint();
            if old.value_bytes.is_none() {
                segment.tombstones -= old.footprint();
            }
        }
        if old.value_bytes.is_some() {
            self.segments.remove_used(key.0, old.footprint());
        }
    }

    /// Reads the whole value of a pinned record in one buffer, and checks it.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the medium fails or the checksum does not hold.
    pub(super) async fn read_value(&self, location: &Location) -> Result<Buffer, Status> {
        let length = location.value_bytes.unwrap_or(0) as usize;
        let at = self.segments.at(location.segment, location.offset) + 64;
        let (result, buffer) = self.media.read(at, Buffer::with_room(0, length, 0)).await;
        result.map_err(|error| error.status(Access::Value))?;
        if crc32c::crc32c(&buffer) != location.value_checksum {
            return Err(Status::UNRECOVERED_ERROR);
        }
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::media::Memory;

    #[test]
    fn a_key_stays_locked_until_a_store_that_nobody_waits_for_is_durable() {
        csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            let media = Media::Memory(Arc::new(Memory::new(16 << 20)));
            let segments = Arc::new(Segments::new([1; 16], 0, 2 << 20, 8, &[2]));
            (0..8).for_each(|number| segments.give(number));
            let syncer = Rc::new(Syncer::new(media.clone()));
            let shard = Rc::new(Shard::new(0, media, segments, syncer));
            let key = (2, Key::new(b"k").unwrap());
            let lock = shard.lock(key).await;
            let mut cx = Context::from_waker(Waker::noop());
            {
                let value = vec![Buffer::from_slice(b"value")];
                let mut store = pin!(shard.append(lock, Some(value), None));
                assert!(store.as_mut().poll(&mut cx).is_pending(), "it is queued");
            } // Its connection is lost.
            let mut next = pin!(shard.lock(key));
            assert_eq!(next.as_mut().poll(&mut cx).map(|_| ()), Poll::Pending);
            drop(next.await);
            assert!(shard.find(&key).is_some(), "durable before anyone else's turn");
        })
        .unwrap();
    }
}
