//! Sharing: chunks that several values have are kept once, in the pool of their namespace.
//!
//! A shared chunk is a value of the pool, under a key made from its bytes; a value that has shared
//! chunks is a list of its parts ([`crate::parts`]). So the rules of the log keep both: they are
//! recovered, cleaned, scrubbed and checked as all records are. Nothing counts references: chunks
//! that no list names are found and deleted by [`Collector`](crate::collect::Collector).
//!
//! Invariants: a chunk is compared byte by byte before it is shared, and is durable before a list
//! names it; a chunk that a conversion is about to name is marked before it is looked up, under the
//! lock of its key, so that it is not deleted in between.

use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, worked};

use crate::marks::Marks;
use crate::parts::pool_of;
use crate::record::EntryKey;
use crate::service_changes::ServiceChange;
use crate::shard::{Append, Change, Location, Outcome, Refused, Shard};
use crate::shards::shard_of;
use crate::sum::checksum;
use crate::{Kv, change};

/// State of sharing, which the cores of a drive have together.
#[derive(Debug, Default)]
pub struct Sharing {
    // Number of the pass of the collector, and of the conversions that began in passes of either
    // parity.
    pass: AtomicU64,
    converting: [AtomicU64; 2],
    // Marks of the pass; `None` before the first one.
    marks: Mutex<Option<Arc<Marks>>>,
}

impl Sharing {
    /// Begins a pass: what conversions name from here on is marked in `marks`.
    pub(crate) fn begin_pass(&self, marks: &Arc<Marks>) {
        *self.marks() = Some(Arc::clone(marks));
        self.pass.fetch_add(1, SeqCst);
    }

    /// Returns true while conversions run that began before the pass did.
    pub(crate) fn has_older_conversions(&self) -> bool {
        let pass = self.pass.load(SeqCst);
        self.converting[parity(pass.wrapping_sub(1))].load(SeqCst) > 0
    }

    fn marks(&self) -> MutexGuard<'_, Option<Arc<Marks>>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parity(pass: u64) -> usize {
    usize::from(pass % 2 == 1)
}

/// A conversion of one value. Until it is dropped, the chunks that it has shared stay.
pub struct Conversion {
    sharing: Arc<Sharing>,
    pass: u64,
    marks: Option<Arc<Marks>>,
}

impl Conversion {
    /// Begins a conversion.
    pub fn begin(sharing: &Arc<Sharing>) -> Self {
        // Under the lock, so that pass and marks belong together.
        let marks = sharing.marks();
        let pass = sharing.pass.load(SeqCst);
        sharing.converting[parity(pass)].fetch_add(1, SeqCst);
        Self { sharing: Arc::clone(sharing), pass, marks: marks.clone() }
    }
}

impl Drop for Conversion {
    fn drop(&mut self) {
        self.sharing.converting[parity(self.pass)].fetch_sub(1, SeqCst);
    }
}

/// A value as a service has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Place of its record.
    pub at: Location,
    /// Commit number of the record.
    pub commit: u64,
}

impl Kv {
    /// Puts a chunk into the pool of a namespace, unless it is there. Returns true if the pool has
    /// it, false if another chunk has this key or there is no room.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn share(
        &self,
        conversion: &Conversion,
        nsid: u16,
        (key, chunk): (Key, Buffer),
    ) -> Result<bool, Status> {
        let entry = (pool_of(nsid), key);
        if let Some(marks) = &conversion.marks {
            marks.add(&key);
        }
        let copy = Buffer::from_slice(&chunk);
        let store = move |shard: Rc<Shard>| async move {
            let _change = ServiceChange::begin(&shard.segments)?;
            change::store(&shard, entry, vec![copy], STORE_IF_ABSENT).await.map(drop)
        };
        match self.shards.on_owner(shard_of(&entry), store).await {
            Ok(()) => Ok(true),
            Err(Status::KEY_EXISTS) => self.has_bytes(entry, &chunk).await,
            Err(Status::CAPACITY_EXCEEDED) => Ok(false),
            Err(status) => Err(status),
        }
    }

    /// Reads a value as a whole, with its version; `None` if the key has none.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn version(&self, entry: EntryKey) -> Result<Option<(Version, Buffer)>, Status> {
        let Some(mut value) = self.open(entry.0, entry.1).await? else { return Ok(None) };
        let at = value.record().location();
        let bytes = value.next(value.bytes() as usize, 0, 0).await?;
        let commit = value.record().commit().await?;
        Ok(Some((Version { at, commit }, bytes.unwrap_or_default())))
    }

    /// Returns true if a value has these bytes.
    async fn has_bytes(&self, (nsid, key): EntryKey, bytes: &[u8]) -> Result<bool, Status> {
        let Some(mut value) = self.open(nsid, key).await? else { return Ok(false) };
        if value.bytes() as usize != bytes.len() {
            return Ok(false);
        }
        let same = value.next(bytes.len(), 0, 0).await?;
        worked(bytes.len() as u64);
        Ok(same.is_some_and(|same| same[..] == *bytes))
    }

    /// Puts a list of parts in the place of a value, if that is still this version. The list is
    /// durable, or on a drive with a volatile cache written, when this returns.
    ///
    /// # Errors
    /// [`Status::CAPACITY_EXCEEDED`], or the status of a medium's failure. The value stays.
    pub async fn put_list(
        &self,
        _conversion: &Conversion,
        entry: EntryKey,
        version: Version,
        list: Vec<Buffer>,
    ) -> Result<(), Status> {
        let put = move |shard: Rc<Shard>| async move {
            let _change = ServiceChange::begin(&shard.segments)?;
            let checksum = checksum(list.iter().map(|piece| &piece[..])).await;
            let outcome = Outcome::of(1);
            let Version { at: from, commit } = version;
            let change = Change::Move { key: entry, from, commit, for_cleaning: false };
            let append = Append::new(change, (Some(list), checksum), &outcome);
            shard.enqueue([Append { is_indirect: true, ..append }]);
            outcome.all_ended().await.map(drop).map_err(|Refused { status, .. }| status)
        };
        self.shards.on_owner(shard_of(&entry), put).await
    }
}
