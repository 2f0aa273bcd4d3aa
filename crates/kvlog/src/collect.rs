//! [`Collector`]: finds shared chunks that no value has any more, and deletes them.
//!
//! A pass marks the chunks of all lists, and then deletes what is not marked: mark and sweep
//! (McCarthy, "Recursive functions of symbolic expressions and their computation by machine, part
//! I", 1960). A pass costs a read of each list; it begins when lists have been replaced or deleted
//! since the last one did, and once after each start of the drive, for what a power cut left.
//!
//! Invariants: a chunk is deleted only in a pass that has read every list, when everything that the
//! pass has seen is durable; a list that cannot be read ends the pass without a deletion, and is
//! named.

use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{random_u64, worked};

use crate::format::SHARDS;
use crate::marks::Marks;
use crate::parts::{list_bytes, pool_of};
use crate::record::{Content, EntryKey};
use crate::service_changes::ServiceChange;
use crate::shard::Shard;
use crate::sharers::parts_of;
use crate::sharing::Sharing;
use crate::{Kv, change};

/// Entries of an index that are looked at in a step.
const LOOKS_MAX: usize = 256;
/// Most bytes of memory for the marks of a pass.
const MARKS_BYTES_MAX: u64 = 64 << 20;

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// Nothing to do now.
    Nothing,
    /// A conversion that began before the pass has to end first.
    Waits,
    /// Lists of so many bytes were read, or chunks of so many bytes were deleted.
    Worked {
        /// The bytes.
        bytes: u64,
    },
}

/// Failure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectFailed {
    /// Status of a read, or of a deletion.
    pub status: Status,
    /// Namespace and key of the value whose list cannot be read.
    pub unreadable: Option<EntryKey>,
}

impl From<Status> for CollectFailed {
    fn from(status: Status) -> Self {
        Self { status, unreadable: None }
    }
}

/// Part of a pass.
#[derive(Clone, Copy, Debug)]
enum Part {
    Mark,
    Sweep,
}

/// A pass under way.
struct Pass {
    marks: Arc<Marks>,
    part: Part,
    // Namespace and shard that are looked at, and where.
    namespace: usize,
    shard: usize,
    from: Bound<Key>,
}

/// Deletes the chunks of a drive that no value has. One core runs it.
pub struct Collector {
    kv: Rc<Kv>,
    sharing: Arc<Sharing>,
    pass: Option<Pass>,
    // Lists that had been dropped when the last pass began; `None` before the first one.
    seen_dropped: Option<u64>,
}

/// A page of an index that was looked at.
struct Looked {
    bytes: u64,
    next: Option<Bound<Key>>,
}

impl Collector {
    /// Makes a collector, which begins with a pass.
    pub fn new(kv: &Rc<Kv>, sharing: &Arc<Sharing>) -> Self {
        let (kv, sharing) = (Rc::clone(kv), Arc::clone(sharing));
        Self { kv, sharing, pass: None, seen_dropped: None }
    }

    /// Takes a step of a pass.
    ///
    /// # Errors
    /// If a list cannot be read, or a deletion fails. The failure ends the pass, and the next step
    /// begins another one.
    pub async fn step(&mut self) -> Result<Collected, CollectFailed> {
        let Some(mut pass) = self.pass.take().or_else(|| self.begin()) else {
            return Ok(Collected::Nothing);
        };
        if self.sharing.has_older_conversions() {
            self.pass = Some(pass);
            return Ok(Collected::Waits);
        }
        let looked = match self.look(&pass).await {
            Ok(looked) => looked,
            Err(failed) => {
                self.seen_dropped = None;
                return Err(failed);
            }
        };
        if self.go_on(&mut pass, looked.next).await? {
            self.pass = Some(pass);
        }
        Ok(Collected::Worked { bytes: looked.bytes })
    }

    /// Begins a pass if chunks may be left that no value has.
    fn begin(&mut self) -> Option<Pass> {
        let segments = &self.kv.segments;
        let dropped = segments.dropped_lists.load(Relaxed);
        let chunks: u64 = segments.pools.iter().map(|pool| pool.keys.load(Relaxed)).sum();
        if self.seen_dropped == Some(dropped) || chunks == 0 {
            return None;
        }
        self.seen_dropped = Some(dropped);
        let marks = Arc::new(Marks::new(chunks, MARKS_BYTES_MAX, random_u64()));
        self.sharing.begin_pass(&marks);
        let from = Bound::Unbounded;
        Some(Pass { marks, part: Part::Mark, namespace: 0, shard: 0, from })
    }

    async fn look(&self, pass: &Pass) -> Result<Looked, CollectFailed> {
        let (from, marks) = (pass.from, Arc::clone(&pass.marks));
        let nsid = self.kv.segments.namespaces[pass.namespace].nsid;
        let part = pass.part;
        let look = move |shard: Rc<Shard>| async move {
            match part {
                Part::Mark => mark(&shard, nsid, from, &marks).await,
                Part::Sweep => sweep(&shard, pool_of(nsid), from, &marks).await,
            }
        };
        self.kv.shards.on_owner(pass.shard, look).await
    }

    /// Turns to the next page; returns false at the end of the pass.
    async fn go_on(&self, pass: &mut Pass, next: Option<Bound<Key>>) -> Result<bool, Status> {
        if let Some(from) = next {
            pass.from = from;
            return Ok(true);
        }
        (pass.from, pass.shard) = (Bound::Unbounded, pass.shard + 1);
        if pass.shard == SHARDS as usize {
            (pass.shard, pass.namespace) = (0, pass.namespace + 1);
        }
        if pass.namespace < self.kv.segments.namespaces.len() {
            return Ok(true);
        }
        match pass.part {
            Part::Sweep => Ok(false),
            Part::Mark => {
                // What replaced a list may be lost in a power cut as long as it is in the cache.
                self.kv.flush().await?;
                (pass.part, pass.namespace) = (Part::Sweep, 0);
                Ok(true)
            }
        }
    }
}

/// Marks the chunks of some lists.
async fn mark(
    shard: &Rc<Shard>,
    nsid: u16,
    from: Bound<Key>,
    marks: &Marks,
) -> Result<Looked, CollectFailed> {
    let page = shard.list_of(nsid, from, (LOOKS_MAX, LOOKS_MAX), Content::is_list);
    let mut bytes = 0;
    for (_, key) in page.keys {
        let unreadable = Some((nsid, key));
        let found = parts_of(shard, (nsid, key)).await;
        let found = found.map_err(|status| CollectFailed { status, unreadable })?;
        let Some(parts) = found else { continue };
        parts.chunks().for_each(|key| marks.add(key));
        bytes += list_bytes(parts.parts.len(), 0) as u64;
    }
    Ok(Looked { bytes, next: page.last.map(Bound::Excluded) })
}

/// Deletes some chunks that are not marked.
async fn sweep(
    shard: &Rc<Shard>,
    pool: u16,
    from: Bound<Key>,
    marks: &Marks,
) -> Result<Looked, CollectFailed> {
    let page = shard.list_of(pool, from, (LOOKS_MAX, LOOKS_MAX), Content::is_value);
    worked(page.keys.len() as u64);
    let mut bytes = 0;
    for (_, key) in page.keys.into_iter().filter(|(_, key)| !marks.has(key)) {
        let lock = shard.lock((pool, key)).await;
        // A conversion marks the chunk before it waits for the lock.
        if marks.has(&key) {
            continue;
        }
        if let Some(at) = shard.find_certain(&(pool, key)).await? {
            let _change = ServiceChange::begin(&shard.segments)?;
            change::delete_locked(shard, lock).await?;
            bytes += at.footprint();
        }
    }
    Ok(Looked { bytes, next: page.last.map(Bound::Excluded) })
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
