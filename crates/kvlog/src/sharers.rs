//! The lists of parts that are current, and the values that have a shared chunk.

use std::ops::Bound;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::yield_now;

use crate::Kv;
use crate::format::SHARDS;
use crate::parts::{POOL, Parts};
use crate::pinned_record::{self, PinnedRecord};
use crate::record::{Content, EntryKey};
use crate::shard::Shard;

/// Entries of an index that are looked at between two yields.
const LOOKS_MAX: usize = 256;

impl Kv {
    /// Returns the keys of the values that have a shared chunk of this pool. Reads all lists; those
    /// that cannot be read are left out.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn sharers(&self, (pool, chunk): EntryKey) -> Result<Vec<EntryKey>, Status> {
        let nsid = pool & !POOL;
        let mut sharers = Vec::new();
        for shard in 0..SHARDS as usize {
            let mut from = Some(Bound::Unbounded);
            while let Some(first) = from {
                let look = move |shard: Rc<Shard>| async move {
                    Ok(look(&shard, (nsid, first), &chunk).await)
                };
                let (found, next) = self.shards.on_owner(shard, look).await?;
                sharers.extend(found);
                from = next;
                yield_now().await;
            }
        }
        Ok(sharers)
    }
}

/// Returns keys of a namespace with this chunk from a page of its index, and where to go on.
async fn look(
    shard: &Rc<Shard>,
    (nsid, from): (u16, Bound<Key>),
    chunk: &Key,
) -> (Vec<EntryKey>, Option<Bound<Key>>) {
    let page = shard.list_of(nsid, from, (LOOKS_MAX, LOOKS_MAX), Content::is_list);
    let mut found = Vec::new();
    for (_, key) in page.keys {
        let parts = parts_of(shard, (nsid, key)).await.ok().flatten();
        if parts.is_some_and(|parts| parts.chunks().any(|key| key == chunk)) {
            found.push((nsid, key));
        }
    }
    (found, page.last.map(Bound::Excluded))
}

/// Reads the list of a key's parts; `None` if its value has none.
///
/// # Errors
/// [`Status::UNRECOVERED_ERROR`] if the list is current and cannot be read.
pub(crate) async fn parts_of(shard: &Rc<Shard>, entry: EntryKey) -> Result<Option<Parts>, Status> {
    loop {
        let found = shard.find_certain(&entry).await?.filter(|at| at.content.is_list());
        let (Some(at), Some(pinned)) = (found, pinned_record::pin(shard, &entry).await?) else {
            return Ok(None);
        };
        let record = PinnedRecord::new(shard.media.clone(), &shard.segments, entry, pinned);
        match record.read_list().await {
            Ok((_, parts)) => return Ok(Some(parts)),
            // Cleaning may have moved it, or a host replaced it.
            Err(_) if shard.find(&entry) != Some(at) => {}
            Err(status) => return Err(status),
        }
    }
}
