//! State that all shards of a drive share: free segments, commit numbers, counters of use.
//!
//! Shards touch it once per segment, group commit or command, never per byte. Invariants: a segment
//! is in the free list or owned by one shard; the last free segments are for cleaning, and the one
//! before them for deletes ([`Need`]), so that a full drive can still be emptied; the records of
//! all keys together never exceed [`Segments::capacity_bytes`].

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::RECORDS_OFFSET;
use crate::error::Error;
use crate::format::SHARDS;

/// Purpose of a new segment. The rarer the purpose, the fewer segments stay back for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A host stores a value.
    Store,
    /// A host deletes a key: this must not fail on a full drive, because it makes room.
    Delete,
    /// Cleaning moves records. One segment's records fill at most two others, because the end of
    /// the first may be too short for the next record.
    Clean,
}

impl Need {
    /// Free segments that stay back.
    fn kept_back(self) -> usize {
        match self {
            Self::Store => 3,
            Self::Delete => 2,
            Self::Clean => 0,
        }
    }
}

/// Segments whose room is not announced: the open one of each shard, those that [`Need`] keeps
/// back, and two for cleaning to choose from.
const UNANNOUNCED: u64 = SHARDS as u64 + 3 + 2;
/// One segment of this many is not announced either: padding of groups and ends of segments that
/// were too short for the next record.
const PADDING_SHARE: u64 = 50;

/// A kv namespace's counters.
#[derive(Debug)]
pub struct KvNamespace {
    /// Namespace id.
    pub nsid: u16,
    /// Bytes of its records in use.
    pub used_bytes: AtomicU64,
    /// Delete of an absent key is an error (EDNEK).
    pub absent_delete_is_error: AtomicBool,
}

/// Segments, numbers and counters.
#[derive(Debug)]
pub struct Segments {
    /// Identifier of the drive.
    pub uuid: [u8; 16],
    /// Where the log starts on the medium, in bytes.
    pub offset: u64,
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// Number of segments.
    pub count: u32,
    /// kv namespaces.
    pub namespaces: Vec<KvNamespace>,
    free: Mutex<VecDeque<u32>>,
    // Bytes of all records that keys have, and of those that stores under way will add.
    promised: AtomicU64,
    commit: AtomicU64,
    sequence: AtomicU64,
    cleaning: AtomicBool,
    cleaned: AtomicU64,
    stored: AtomicU64,
    written: AtomicU64,
    closing: AtomicBool,
    salvaging: AtomicBool,
    damage: Mutex<Vec<String>>,
}

impl Segments {
    /// A log in which every segment is still to be classified.
    pub fn new(uuid: [u8; 16], offset: u64, segment_bytes: u64, count: u32, nsids: &[u16]) -> Self {
        let namespace = |nsid: &u16| KvNamespace {
            nsid: *nsid,
            used_bytes: AtomicU64::new(0),
            absent_delete_is_error: AtomicBool::new(false),
        };
        Self {
            uuid,
            offset,
            segment_bytes,
            count,
            namespaces: nsids.iter().map(namespace).collect(),
            free: Mutex::default(),
            promised: AtomicU64::new(0),
            commit: AtomicU64::new(1),
            sequence: AtomicU64::new(1),
            cleaning: AtomicBool::new(false),
            cleaned: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            written: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            salvaging: AtomicBool::new(false),
            damage: Mutex::default(),
        }
    }

    /// Damage is noted from now on, and refused no more: nothing is written to this medium.
    pub fn salvage(&self) {
        self.salvaging.store(true, Relaxed);
    }

    /// Notes damage of the log.
    ///
    /// # Errors
    /// [`Error::Damaged`], unless the log is only to be salvaged.
    pub fn damaged(&self, text: String) -> Result<(), Error> {
        if !self.salvaging.load(Relaxed) {
            return Err(Error::Damaged(text));
        }
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Ok(())
    }

    /// The damage that was passed over.
    pub fn damage(&self) -> Vec<String> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Offset on the medium of a byte of a segment.
    pub fn at(&self, segment: u32, offset: u64) -> u64 {
        self.offset + u64::from(segment) * self.segment_bytes + offset
    }

    /// Bytes of records that a segment has room for.
    pub fn payload_bytes(&self) -> u64 {
        self.segment_bytes - RECORDS_OFFSET
    }

    /// Bytes of records that the drive promises to keep, over all namespaces.
    pub fn capacity_bytes(&self) -> u64 {
        let count = u64::from(self.count);
        count.saturating_sub(UNANNOUNCED + count / PADDING_SHARE) * self.payload_bytes()
    }

    /// Counters of a namespace.
    pub fn namespace(&self, nsid: u16) -> Option<&KvNamespace> {
        self.namespaces.iter().find(|namespace| namespace.nsid == nsid)
    }

    /// Counts a key's new record.
    pub fn add_used(&self, nsid: u16, bytes: u64) {
        self.promised.fetch_add(bytes, Relaxed);
        if let Some(namespace) = self.namespace(nsid) {
            namespace.used_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Counts a record that its key no longer has.
    pub fn remove_used(&self, nsid: u16, bytes: u64) {
        self.promised.fetch_sub(bytes, Relaxed);
        if let Some(namespace) = self.namespace(nsid) {
            namespace.used_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// Promises room for `bytes` more bytes of records; `None` when the drive is full.
    pub fn promise(self: &Arc<Self>, bytes: u64) -> Option<Room> {
        let capacity = self.capacity_bytes();
        let more = |promised: u64| promised.checked_add(bytes).filter(|sum| *sum <= capacity);
        let fits = bytes == 0 || self.promised.fetch_update(Relaxed, Relaxed, more).is_ok();
        fits.then(|| Room { segments: Arc::clone(self), bytes })
    }

    /// A free segment; `None` when those that are left are kept back.
    pub fn take(&self, need: Need) -> Option<u32> {
        let mut free = self.free();
        if free.len() > need.kept_back() { free.pop_front() } else { None }
    }

    /// Gives a segment back whose header is durably gone.
    pub fn give(&self, segment: u32) {
        self.free().push_back(segment);
    }

    /// Gives a segment back that cleaning emptied.
    pub fn give_cleaned(&self, segment: u32) {
        self.cleaned.fetch_add(1, Relaxed);
        self.give(segment);
    }

    /// Segments that cleaning has freed since the drive started.
    pub fn cleaned_count(&self) -> u64 {
        self.cleaned.load(Relaxed)
    }

    /// Number of free segments, the reserve included.
    pub fn free_count(&self) -> usize {
        self.free().len()
    }

    /// True when so few segments are free that cleaning should run in the background. The fewer
    /// they are, the more of a segment is dead when it is cleaned.
    pub fn is_low(&self) -> bool {
        self.free_count() <= Need::Store.kept_back() + 2 + self.count as usize / 128
    }

    /// Counts a group commit: bytes of values that hosts stored, and bytes written for it.
    pub fn count_written(&self, stored: u64, written: u64) {
        self.stored.fetch_add(stored, Relaxed);
        self.written.fetch_add(written, Relaxed);
    }

    /// Bytes of values that hosts have stored since the drive started.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.load(Relaxed)
    }

    /// Bytes written to the log since the drive started, by hosts' commands and by cleaning.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// From now on no record is appended and no segment freed: the drive stops.
    pub fn close(&self) {
        self.closing.store(true, SeqCst);
    }

    /// True once the drive stops.
    pub fn is_closing(&self) -> bool {
        self.closing.load(SeqCst)
    }

    /// The next commit number.
    pub fn next_commit(&self) -> u64 {
        self.commit.fetch_add(1, Relaxed)
    }

    /// The next segment sequence.
    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Relaxed)
    }

    /// Notes numbers found on the medium: later ones are higher.
    pub fn seen(&self, commit: u64, sequence: u64) {
        self.commit.fetch_max(commit.saturating_add(1), Relaxed);
        self.sequence.fetch_max(sequence.saturating_add(1), Relaxed);
    }

    /// Passes over this many sequences.
    pub fn skip_sequences(&self, count: u64) {
        let skipped = |sequence: u64| Some(sequence.saturating_add(count));
        let _ = self.sequence.fetch_update(Relaxed, Relaxed, skipped);
    }

    /// Begins cleaning; false when it runs already. One shard cleans at a time, because the
    /// reserve is for one.
    pub fn begin_cleaning(&self) -> bool {
        !self.cleaning.swap(true, SeqCst)
    }

    /// Ends cleaning.
    pub fn end_cleaning(&self) {
        self.cleaning.store(false, SeqCst);
    }

    /// True while a shard cleans.
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.load(SeqCst)
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that is promised to a store under way. Dropping it takes the promise back; a store that
/// has become durable drops it when its record is counted.
#[derive(Debug)]
pub struct Room {
    segments: Arc<Segments>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.segments.promised.fetch_sub(self.bytes, Relaxed);
    }
}
