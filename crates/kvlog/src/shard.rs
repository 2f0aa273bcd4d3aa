//! [`Shard`]: one shard of the kv log, with its index, its segments and its queue of appends.
//!
//! A shard lives on one core. Stores, deletes and the records that cleaning moves are appended to
//! its open segment in groups (`commit.rs`): one write and one sync, then the index changes and
//! every command is answered. With a volatile cache there is no sync, and the order of answers is
//! that of epochs (`epochs.rs`).
//!
//! Invariants: the index points only at durable records, or with a volatile cache at written ones;
//! changes of one key by hosts are sequential
//! ([`Shard::lock`]); an acknowledged byte is not overwritten by another; only a shard's newest
//! segment is without a seal.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Notify};

use crate::capacity::Room;
use crate::epochs::Turn;
use crate::index::Index;
use crate::log_positions::Ends;
use crate::media::{Media, Syncer};
use crate::news::News;
use crate::record::{Content, EntryKey, footprint};
use crate::segment_tail::SegmentTail;
use crate::segments::Segments;
use crate::sum::checksum;
use crate::watch::Watched;

/// Location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Segment number.
    pub segment: u32,
    /// Offset of the record within it, in bytes.
    pub offset: u64,
    /// Content behind the header.
    pub content: Content,
}

impl Location {
    /// Returns the bytes of the record in its segment.
    pub fn footprint(&self) -> u64 {
        self.content.footprint()
    }
}

/// A segment that the shard owns.
#[derive(Debug, Default)]
pub struct Segment {
    /// Its sequence.
    pub sequence: u64,
    /// Bytes filled, from offset 0.
    pub filled: u64,
    /// Space of records that the index points at, tombstones included ([`Segments::space`]).
    pub live: u64,
    /// Space of tombstones among them.
    pub tombstones: u64,
    /// Longest record, in bytes.
    pub longest: u64,
    /// Number of reads that run.
    pub readers: u32,
    /// True if no more records are appended.
    pub sealed: bool,
    /// True if a current record cannot be read: cleaning leaves the segment as it is.
    pub damaged: bool,
    /// True once its header is being removed, which may have failed: it may be free on the medium.
    pub freeing: bool,
}

/// An append to the log.
pub struct Append {
    /// Change.
    pub change: Change,
    /// Pieces of what is behind the header, `None` for a tombstone.
    pub value: Option<Vec<Buffer>>,
    /// True if that is a list of the value's parts.
    pub is_indirect: bool,
    /// CRC-32C of the pieces.
    pub checksum: u32,
    /// Outcome, set when the group is durable or has failed.
    pub outcome: Rc<Outcome>,
    /// Place in the order of answers, from the time when its group is written.
    pub turn: Turn,
}

/// The change that an append makes.
pub enum Change {
    /// A host's Store or Delete. The key stays locked until this is durable or has failed, even if
    /// the host is gone: later changes must not see it half done.
    New {
        /// Namespace and key.
        lock: KeyLock,
        /// Space that was promised to a value.
        room: Option<Room>,
    },
    /// Cleaning moves a record, or a value comes to share chunks. It is written only if the index
    /// still points at `from` then, so that no superseded record lies in a newer segment than the
    /// one that superseded it.
    Move {
        /// Namespace and key.
        key: EntryKey,
        /// Location of the record so far.
        from: Location,
        /// Commit number of the record, which it keeps.
        commit: u64,
        /// True if it may take the segments that are reserved for cleaning.
        for_cleaning: bool,
    },
}

impl Append {
    /// Makes an append that is not written yet, of a value with this CRC-32C.
    pub fn new(
        change: Change,
        (value, checksum): (Option<Vec<Buffer>>, u32),
        outcome: &Rc<Outcome>,
    ) -> Self {
        let (outcome, turn) = (Rc::clone(outcome), Turn::default());
        Self { change, value, is_indirect: false, checksum, outcome, turn }
    }

    /// Returns namespace and key.
    pub fn key(&self) -> EntryKey {
        match &self.change {
            Change::New { lock, .. } => lock.key(),
            Change::Move { key, .. } => *key,
        }
    }

    /// Returns the bytes of the record in its segment.
    pub fn footprint(&self) -> u64 {
        footprint(self.value.iter().flatten().map(|piece| piece.len() as u64).sum())
    }

    /// Returns true for a host's change.
    pub fn is_new(&self) -> bool {
        matches!(self.change, Change::New { .. })
    }

    /// Answers the append.
    pub fn answer(self, result: Result<(), Refused>) {
        let Self { change, outcome, turn, .. } = self;
        // The key is unlocked before its waiter runs.
        drop(change);
        outcome.one_ended(result.map(|()| turn));
    }
}

/// An append that was refused: nothing was written.
#[derive(Debug)]
pub struct Refused {
    /// Status.
    pub status: Status,
    /// Value, for another attempt when there was no space for it.
    pub value: Option<Vec<Buffer>>,
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self { status, value: None }
    }
}

/// Outcome of one append, or of several that are waited for together.
pub struct Outcome {
    pending: Cell<usize>,
    failure: Cell<Option<Refused>>,
    turn: Cell<Turn>,
    done: Notify,
}

impl Outcome {
    /// Makes the outcome of `count` appends.
    pub fn of(count: usize) -> Rc<Self> {
        let (pending, failure) = (Cell::new(count), Cell::default());
        Rc::new(Self { pending, failure, turn: Cell::default(), done: Notify::new() })
    }

    fn one_ended(&self, result: Result<Turn, Refused>) {
        match result {
            Ok(turn) => self.turn.set(turn),
            Err(refused) => self.failure.set(Some(refused)),
        }
        self.pending.set(self.pending.get() - 1);
        if self.pending.get() == 0 {
            self.done.notify_all();
        }
    }

    /// Waits until all are durable or have failed. Returns the turn of the last one.
    ///
    /// # Errors
    /// One of the failures.
    pub async fn all_ended(&self) -> Result<Turn, Refused> {
        while self.pending.get() > 0 {
            self.done.notified().await;
        }
        self.failure.take().map_or_else(|| Ok(self.turn.take()), Err)
    }
}

/// A shard.
pub struct Shard {
    /// Its number.
    pub number: u32,
    /// The medium.
    pub media: Media,
    /// State that all shards share.
    pub segments: Arc<Segments>,
    /// Syncs of this core.
    pub syncer: Rc<Syncer>,
    // By namespace.
    pub(crate) index: RefCell<BTreeMap<u16, Index>>,
    pub(crate) owned: RefCell<BTreeMap<u32, Segment>>,
    pub(crate) open: Cell<Option<u32>>,
    pub(crate) tail: RefCell<SegmentTail>,
    // True if the open segment still has the seal that it got when the drive stopped.
    pub(crate) has_stop_seal: Cell<bool>,
    // Segment that is being sealed, and its valid bytes. No other segment begins before its seal is
    // durable.
    pub(crate) closing: Cell<Option<(u32, u64)>>,
    pub(crate) queue: RefCell<VecDeque<Append>>,
    pub(crate) committing: Cell<bool>,
    pub(crate) ends: Ends,
    // Keys whose last change failed, and may yet be found after a restart (`uncertain.rs`). True if
    // the key exists with the change or without it, and not in both cases.
    pub(crate) uncertain: RefCell<BTreeMap<EntryKey, bool>>,
    // Takes what is written, while a service reads every value.
    pub(crate) news: RefCell<Option<Rc<News>>>,
    // Keys that changed, while somebody asks for them.
    pub(crate) watched: RefCell<Option<Watched>>,
    locked: RefCell<BTreeSet<EntryKey>>,
    unlocked: Notify,
}

/// The right to change one key.
pub struct KeyLock {
    shard: Weak<Shard>,
    key: EntryKey,
}

impl KeyLock {
    /// Returns the key.
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
    /// Makes a shard that owns no segment.
    pub fn new(number: u32, media: Media, segments: Arc<Segments>, syncer: Rc<Syncer>) -> Self {
        Self {
            number,
            media,
            segments,
            syncer,
            index: RefCell::default(),
            owned: RefCell::default(),
            open: Cell::new(None),
            tail: RefCell::default(),
            has_stop_seal: Cell::new(false),
            closing: Cell::new(None),
            queue: RefCell::default(),
            committing: Cell::new(false),
            ends: Ends::default(),
            uncertain: RefCell::default(),
            news: RefCell::default(),
            watched: RefCell::default(),
            locked: RefCell::default(),
            unlocked: Notify::new(),
        }
    }

    /// Keeps the record's segment from being reused while it is read. Returns its sequence; `None`
    /// if the shard does not own it.
    pub fn pin(&self, location: &Location) -> Option<u64> {
        let mut owned = self.owned.borrow_mut();
        let segment = owned.get_mut(&location.segment)?;
        segment.readers += 1;
        Some(segment.sequence)
    }

    /// Ends a read that [`Self::pin`] began.
    pub fn unpin(&self, segment: u32) {
        if let Some(segment) = self.owned.borrow_mut().get_mut(&segment) {
            segment.readers -= 1;
        }
    }

    /// Waits until no other command changes this key, and locks it.
    pub async fn lock(self: &Rc<Self>, key: EntryKey) -> KeyLock {
        while !self.locked.borrow_mut().insert(key) {
            self.unlocked.notified().await;
        }
        KeyLock { shard: Rc::downgrade(self), key }
    }

    /// Appends a host's change, and waits until it is durable (with a volatile cache, written) and
    /// in the index. Returns its turn.
    ///
    /// # Errors
    /// [`Status::CAPACITY_EXCEEDED`], with the value returned, or the status of a medium's failure.
    pub async fn append(
        self: &Rc<Self>,
        lock: KeyLock,
        value: Option<Vec<Buffer>>,
        room: Option<Room>,
    ) -> Result<Turn, Refused> {
        let checksum = checksum(value.iter().flatten().map(|piece| &piece[..])).await;
        let outcome = Outcome::of(1);
        let change = Change::New { lock, room };
        self.enqueue([Append::new(change, (value, checksum), &outcome)]);
        outcome.all_ended().await
    }

    /// Queues appends for the next groups.
    pub(crate) fn enqueue(self: &Rc<Self>, appends: impl IntoIterator<Item = Append>) {
        self.queue.borrow_mut().extend(appends);
        self.start_committing();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use csd_nvme::kv::Key;

    use super::*;
    use crate::media::Memory;

    /// Makes a shard over memory that owns no segment, and a key of it.
    fn shard() -> (Rc<Shard>, EntryKey) {
        let media = Media::Memory(Arc::new(Memory::new(16 << 20)));
        let segments = Arc::new(Segments::new([1; 16], 0, 2 << 20, 8, &[2]));
        (0..8).for_each(|number| segments.give(number));
        let syncer = Rc::new(Syncer::new(media.clone()));
        (Rc::new(Shard::new(0, media, segments, syncer)), (2, Key::new(b"k").unwrap()))
    }

    fn value() -> Option<Vec<Buffer>> {
        Some(vec![Buffer::from_slice(b"value")])
    }

    /// Cleaning has read the record, and before the record's turn comes a host deletes the key. In
    /// a newer segment than the tombstone the record would come back to life: the tombstone goes
    /// with the oldest segment.
    #[test]
    fn a_record_that_was_deleted_before_its_turn_is_not_moved() {
        csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            let (shard, key) = shard();
            shard.append(shard.lock(key).await, value(), None).await.unwrap();
            let from = shard.find(&key).unwrap();
            shard.append(shard.lock(key).await, None, None).await.unwrap();
            let written = |shard: &Shard| shard.owned.borrow()[&from.segment].filled;
            let before = written(&shard);
            let outcome = Outcome::of(1);
            let change = Change::Move { key, from, commit: 1, for_cleaning: true };
            let checksum = crc32c::crc32c(b"value");
            shard.enqueue([Append::new(change, (value(), checksum), &outcome)]);
            outcome.all_ended().await.unwrap();
            assert_eq!(written(&shard), before, "nothing was appended");
            assert_eq!(shard.find(&key), None);
        })
        .unwrap();
    }

    #[test]
    fn a_key_stays_locked_until_a_store_that_nobody_waits_for_is_durable() {
        csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            let (shard, key) = shard();
            let lock = shard.lock(key).await;
            let mut cx = Context::from_waker(Waker::noop());
            {
                let mut store = pin!(shard.append(lock, value(), None));
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
