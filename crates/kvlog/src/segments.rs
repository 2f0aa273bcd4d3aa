//! [`Segments`]: state that all shards of a drive share: free segments, commit numbers, counters of
//! use.
//!
//! Shards use it once per segment, group commit or command, not per byte. Invariants: a segment is
//! in the free list or owned by one shard; the last free segments are for cleaning, and the one
//! before them for deletes ([`Need`]), so that a full drive can still be emptied.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::vendor::NSID_OBJECTS;
use csd_reactor::Instant;

use crate::control::Control;
use crate::epochs::Epochs;
use crate::error::Error;
use crate::format::{FEATURE_FREED, Superblock, VERSION};
use crate::headless::Headless;
use crate::index::IndexKind;
use crate::parts::{POOL, pool_of};
use crate::record::{Content, PAGE_BYTES, RECORDS_OFFSET, SECTOR_BYTES};

/// Purpose of a new segment. The rarer the purpose, the fewer segments are reserved for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A host stores a value.
    Store,
    /// A host deletes a key. This must not fail on a full drive, because it frees space.
    Delete,
    /// Cleaning moves records. One segment's records fill at most two others, because the end of
    /// the first may be too short for the next record.
    Clean,
}

impl Need {
    /// Returns the number of free segments that are reserved for other purposes.
    fn kept_back(self) -> usize {
        match self {
            Self::Store => 3,
            Self::Delete => 2,
            Self::Clean => 0,
        }
    }
}

/// Bytes of a checkpoint that count for each record: those of an entry with a key of 16 bytes.
const LISTED_BYTES: u64 = 32;

/// A kv namespace's counters.
#[derive(Debug)]
pub struct KvNamespace {
    /// Namespace id.
    pub nsid: u16,
    /// Kind of its indexes.
    pub index: IndexKind,
    /// Bytes of its records in use.
    pub used_bytes: AtomicU64,
    /// Number of its keys.
    pub keys: AtomicU64,
    /// Delete of an absent key is an error (EDNEK).
    pub absent_delete_is_error: AtomicBool,
}

/// State that all shards share.
#[derive(Debug)]
pub struct Segments {
    /// Identifier of the drive.
    pub uuid: [u8; 16],
    /// Start of the log on the medium in bytes.
    pub offset: u64,
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// Number of segments.
    pub count: u32,
    /// Version of the medium's format.
    pub version: u32,
    /// Features that a program must know to read the medium.
    pub features: u64,
    /// kv namespaces.
    pub namespaces: Vec<KvNamespace>,
    /// Pools of the shared chunks of each.
    pub pools: Vec<KvNamespace>,
    /// Lists of parts that are not current any more: replaced, deleted or moved.
    pub(crate) dropped_lists: AtomicU64,
    /// Changes of services that are under way.
    pub(crate) service_changes: AtomicU64,
    /// Epochs of a drive with a volatile cache.
    pub epochs: Option<Arc<Epochs>>,
    /// Number of damaged places that scrubs met, in every pass again.
    pub scrub_damage: AtomicU64,
    /// Settings and counts of checkpoints. Those of a clean stop are written whatever is set.
    pub checkpointing: Control,
    free: Mutex<VecDeque<u32>>,
    // Bytes of all current records, and of those that outstanding Stores will add.
    pub(crate) promised: AtomicU64,
    // Most bytes of memory for the keys of all indexes.
    pub(crate) index_bytes_max: Option<u64>,
    // Memory for all keys, and for those that outstanding Stores will add.
    pub(crate) index_bytes: AtomicU64,
    commit: AtomicU64,
    sequence: AtomicU64,
    cleaning: AtomicBool,
    cleaned: AtomicU64,
    stored: AtomicU64,
    written: AtomicU64,
    shared_groups: AtomicU64,
    closing: AtomicBool,
    salvaging: AtomicBool,
    damage: Mutex<Vec<String>>,
    walked: Mutex<Vec<String>>,
    pub(crate) headless: Headless,
}

impl Segments {
    /// Makes the state of a log whose segments are not surveyed yet.
    pub fn new(uuid: [u8; 16], offset: u64, segment_bytes: u64, count: u32, nsids: &[u16]) -> Self {
        let namespace = |nsid: u16| KvNamespace {
            nsid,
            index: kind_of(nsid, IndexKind::default()),
            used_bytes: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            absent_delete_is_error: AtomicBool::new(false),
        };
        Self {
            uuid,
            offset,
            segment_bytes,
            count,
            version: VERSION,
            features: FEATURE_FREED,
            namespaces: nsids.iter().map(|nsid| namespace(*nsid)).collect(),
            pools: nsids.iter().map(|nsid| namespace(pool_of(*nsid))).collect(),
            dropped_lists: AtomicU64::new(0),
            service_changes: AtomicU64::new(0),
            epochs: None,
            scrub_damage: AtomicU64::new(0),
            checkpointing: Control::default(),
            free: Mutex::default(),
            promised: AtomicU64::new(0),
            index_bytes_max: None,
            index_bytes: AtomicU64::new(0),
            commit: AtomicU64::new(1),
            sequence: AtomicU64::new(1),
            cleaning: AtomicBool::new(false),
            cleaned: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            written: AtomicU64::new(0),
            shared_groups: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            salvaging: AtomicBool::new(false),
            damage: Mutex::default(),
            walked: Mutex::default(),
            headless: Headless::default(),
        }
    }

    /// Sets the kind of the users' indexes, and the most memory for the keys of all indexes.
    #[must_use]
    pub fn with_index(mut self, kind: IndexKind, bytes_max: Option<u64>) -> Self {
        for namespace in &mut self.namespaces {
            namespace.index = kind_of(namespace.nsid, kind);
        }
        Self { index_bytes_max: bytes_max, ..self }
    }

    /// Sets the version of the medium's format, and the features that it needs.
    #[must_use]
    pub fn of_format(self, superblock: &Superblock) -> Self {
        let (version, features) = (superblock.version(), superblock.features_needed());
        Self { version, features, ..self }
    }

    /// Returns a number that tells the drive's seals and hints from those of others that were on
    /// the medium, where freed segments have a header; else 0.
    pub fn tag(&self) -> u32 {
        if self.features & FEATURE_FREED == 0 { 0 } else { crc32c::crc32c(&self.uuid) | 1 }
    }

    /// Returns true if the medium has checkpoints and hints, and groups that begin at sectors.
    pub fn has_checkpoints(&self) -> bool {
        self.version >= 2
    }

    /// Returns the unit at which groups begin, in bytes.
    pub fn group_unit(&self) -> u64 {
        if self.has_checkpoints() { SECTOR_BYTES } else { PAGE_BYTES }
    }

    /// Returns the space that a record takes: its own and that of its entry in a checkpoint.
    pub fn space(&self, content: Content) -> u64 {
        let listed = if self.has_checkpoints() { LISTED_BYTES } else { 0 };
        content.footprint() + listed
    }

    /// Notes a damaged checkpoint: the records of its segment were walked in its place.
    pub fn walked(&self, text: String) {
        let mut walked = self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        if !walked.contains(&text) {
            walked.push(text);
        }
    }

    /// Returns the damaged checkpoints that this start has met.
    pub fn damaged_checkpoints(&self) -> Vec<String> {
        self.walked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes damage a note instead of an error: this medium is not written.
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

    /// Returns the damage that was skipped.
    pub fn damage(&self) -> Vec<String> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the offset on the medium of a byte of a segment.
    pub fn at(&self, segment: u32, offset: u64) -> u64 {
        self.offset + u64::from(segment) * self.segment_bytes + offset
    }

    /// Returns the bytes of records that fit a segment.
    pub fn payload_bytes(&self) -> u64 {
        self.segment_bytes - RECORDS_OFFSET
    }

    /// Returns counters of a namespace, or of a pool.
    pub fn namespace(&self, nsid: u16) -> Option<&KvNamespace> {
        let mut all = self.namespaces.iter().chain(&self.pools);
        all.find(|namespace| namespace.nsid == nsid)
    }

    /// Returns the bytes of the records of a namespace, and of its shared chunks.
    pub fn used_bytes(&self, nsid: u16) -> u64 {
        let used = |nsid| self.namespace(nsid).map_or(0, |it| it.used_bytes.load(Relaxed));
        used(nsid) + used(pool_of(nsid))
    }

    /// Returns true if every change of a namespace is durable when it is answered.
    pub fn is_uncached(&self, nsid: u16) -> bool {
        self.epochs.is_none() || !is_cached(nsid)
    }

    /// Returns the kind of a namespace's indexes.
    pub fn index_kind(&self, nsid: u16) -> IndexKind {
        self.namespace(nsid).map_or(IndexKind::Ordered, |namespace| namespace.index)
    }

    /// Takes a free segment; `None` when those that are left are reserved.
    pub fn take(&self, need: Need) -> Option<u32> {
        let mut free = self.free();
        if free.len() > need.kept_back() { free.pop_front() } else { None }
    }

    /// Frees a segment whose header is durably removed.
    pub fn give(&self, segment: u32) {
        self.free().push_back(segment);
    }

    /// Frees a segment that cleaning emptied.
    pub fn give_cleaned(&self, segment: u32) {
        self.cleaned.fetch_add(1, Relaxed);
        self.give(segment);
    }

    /// Returns the number of segments that cleaning has freed since the drive started.
    pub fn cleaned_count(&self) -> u64 {
        self.cleaned.load(Relaxed)
    }

    /// Returns the number of free segments, the reserve included.
    pub fn free_count(&self) -> usize {
        self.free().len()
    }

    /// Returns true when so few segments are free that the service of cleaning should work. The
    /// fewer are free, the more of a segment is dead when it is cleaned.
    pub fn is_low(&self) -> bool {
        self.free_count() <= Need::Store.kept_back() + 2 + self.count as usize / 128
    }

    /// Counts a group commit: bytes of values that hosts stored, and bytes written for it.
    pub fn count_written(&self, stored: u64, written: u64) {
        self.stored.fetch_add(stored, Relaxed);
        self.written.fetch_add(written, Relaxed);
    }

    /// Counts a checkpoint that is durable, and whose write began then.
    pub fn count_checkpoint(&self, bytes: u64, began: Instant) {
        self.checkpointing.worked(bytes, began);
    }

    /// Returns the number of checkpoints written since the drive started.
    pub fn checkpoint_count(&self) -> u64 {
        self.checkpointing.steps.load(Relaxed)
    }

    /// Counts a group commit of several records.
    pub fn count_shared_group(&self) {
        self.shared_groups.fetch_add(1, Relaxed);
    }

    /// Returns the number of group commits of several records since the drive started.
    pub fn shared_group_count(&self) -> u64 {
        self.shared_groups.load(Relaxed)
    }

    /// Returns the bytes of values that hosts have stored since the drive started.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.load(Relaxed)
    }

    /// Returns the bytes written to the log since the drive started, by hosts' commands and by
    /// cleaning.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Stops the log: from now on no record is appended and no segment freed.
    pub fn close(&self) {
        self.closing.store(true, SeqCst);
    }

    /// Returns true once the drive stops.
    pub fn is_closing(&self) -> bool {
        self.closing.load(SeqCst)
    }

    /// Draws the next commit number.
    pub fn next_commit(&self) -> u64 {
        self.commit.fetch_add(1, Relaxed)
    }

    /// Draws the next segment sequence.
    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Relaxed)
    }

    /// Notes numbers found on the medium, so that later ones are higher.
    pub fn seen(&self, commit: u64, sequence: u64) {
        self.commit.fetch_max(commit.saturating_add(1), Relaxed);
        self.sequence.fetch_max(sequence.saturating_add(1), Relaxed);
    }

    /// Skips this many sequences.
    pub fn skip_sequences(&self, count: u64) {
        let skipped = |sequence: u64| Some(sequence.saturating_add(count));
        let _ = self.sequence.fetch_update(Relaxed, Relaxed, skipped);
    }

    /// Begins cleaning; false when it runs already. One shard cleans at a time, because the reserve
    /// is for one.
    pub fn begin_cleaning(&self) -> bool {
        !self.cleaning.swap(true, SeqCst)
    }

    /// Ends cleaning.
    pub fn end_cleaning(&self) {
        self.cleaning.store(false, SeqCst);
    }

    /// Returns true while a shard cleans.
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.load(SeqCst)
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if changes of this namespace are answered before they are durable, on a drive with
/// a volatile cache. Arrays decide over several drives by the answers for objects, so these are
/// always durable, and lists name shared chunks that are.
pub(crate) fn is_cached(nsid: u16) -> bool {
    u32::from(nsid) != NSID_OBJECTS && nsid & POOL == 0
}

/// Returns the kind of a namespace's indexes. Objects are listed by the prefixes of their keys,
/// which only the order of keys keeps together.
fn kind_of(nsid: u16, of_users: IndexKind) -> IndexKind {
    if u32::from(nsid) == NSID_OBJECTS { IndexKind::Ordered } else { of_users }
}
