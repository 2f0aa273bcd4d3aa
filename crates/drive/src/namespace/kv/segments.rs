//! What all shards of a drive share: free segments, commit numbers, counters of use.
//!
//! Touched once per segment or per group commit, never per byte. Invariants: a segment is in the
//! free list or owned by one shard; the last [`RESERVE`] free segments are for cleaning alone, so
//! that a full drive can still be cleaned.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::RECORDS_OFFSET;
use crate::error::Error;

/// Segments kept back for cleaning.
pub const RESERVE: usize = 2;

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
    commit: AtomicU64,
    sequence: AtomicU64,
    cleaning: AtomicBool,
    cleaned: AtomicU64,
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
            commit: AtomicU64::new(1),
            sequence: AtomicU64::new(1),
            cleaning: AtomicBool::new(false),
            cleaned: AtomicU64::new(0),
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

    /// Bytes that records can fill, over all segments but the reserve.
    pub fn capacity_bytes(&self) -> u64 {
        let usable = u64::from(self.count).saturating_sub(RESERVE as u64);
        usable * (self.segment_bytes - RECORDS_OFFSET)
    }

    /// Counters of a namespace.
    pub fn namespace(&self, nsid: u16) -> Option<&KvNamespace> {
        self.namespaces.iter().find(|namespace| namespace.nsid == nsid)
    }

    /// Adds to a namespace's use.
    pub fn add_used(&self, nsid: u16, bytes: u64) {
        if let Some(namespace) = self.namespace(nsid) {
            namespace.used_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Takes from a namespace's use.
    pub fn remove_used(&self, nsid: u16, bytes: u64) {
        if let Some(namespace) = self.namespace(nsid) {
            namespace.used_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// A free segment; for what makes room also one of the reserve. `None` when there is none.
    pub fn take(&self, may_use_reserve: bool) -> Option<u32> {
        let mut free = self.free();
        let kept = if may_use_reserve { 0 } else { RESERVE };
        if free.len() > kept { free.pop_front() } else { None }
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

    /// True when so few segments are free that cleaning should run beside the work.
    pub fn is_low(&self) -> bool {
        self.free_count() < (self.count as usize / 8).max(RESERVE + 2)
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

    /// Begins cleaning; false when it runs already. One shard cleans at a time, because the
    /// reserve is for one.
    pub fn begin_cleaning(&self) -> bool {
        !self.cleaning.swap(true, Relaxed)
    }

    /// Ends cleaning.
    pub fn end_cleaning(&self) {
        self.cleaning.store(false, Relaxed);
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
