//! List: the keys of all shards, merged in the order of their indexes.
//!
//! Each shard gives a short page at a time, and its core turns to other commands between two of
//! them. Memory is bounded by sixteen pages. Invariant: a key that exists during a whole listing is
//! returned exactly once, also by several Lists of which each begins at the last key of the one
//! before: the order of keys never changes, and each page begins behind the last key looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::rc::Rc;

use csd_nvme::kv::{Key, KeyList};
use csd_nvme::status::Status;
use csd_reactor::{core_id, yield_now};

use crate::format::SHARDS;
use crate::index::Rank;
use crate::shard::Shard;
use crate::shards::{Shards, owner};

/// Most keys of a page.
const PAGE_KEYS_MAX: usize = 64;
/// Fewest keys of a page.
const PAGE_KEYS_MIN: usize = 4;
/// Most entries that a shard looks at for a page. Others than those returned are tombstones.
const LOOKS_MAX: usize = 256;
/// Bytes of the shortest entry of a list.
const ENTRY_BYTES_MIN: usize = 4;

/// Position of a List in one shard.
struct Cursor {
    shard: usize,
    /// Beginning of the next page, if there may be one.
    next: Option<Bound<Key>>,
    /// Number of keys of the last page that are not merged yet.
    waiting: usize,
}

/// Returns the data of a List.
///
/// # Errors
/// The status to answer with.
pub(crate) async fn list(
    shards: &Shards,
    nsid: u16,
    from: Option<Key>,
    size: u32,
) -> Result<Vec<u8>, Status> {
    let mut list = KeyList::new(size)?;
    let keys_max = size as usize / ENTRY_BYTES_MIN / SHARDS as usize;
    let keys_max = keys_max.clamp(PAGE_KEYS_MIN, PAGE_KEYS_MAX);
    let first = from.map_or(Bound::Unbounded, Bound::Included);
    let cursor = |shard| Cursor { shard, next: Some(first), waiting: 0 };
    let mut cursors: Vec<Cursor> = (0..SHARDS as usize).map(cursor).collect();
    let mut heap: BinaryHeap<Reverse<(Rank, Key, usize)>> = BinaryHeap::new();
    for cursor in &mut cursors {
        cursor.fill(shards, nsid, keys_max, &mut heap).await?;
    }
    while let Some(Reverse((_, key, shard))) = heap.pop() {
        if !list.push(&key) {
            break;
        }
        cursors[shard].waiting -= 1;
        cursors[shard].fill(shards, nsid, keys_max, &mut heap).await?;
    }
    Ok(list.finish())
}

impl Cursor {
    /// Makes sure that the heap has a key of this shard, if there is another one.
    async fn fill(
        &mut self,
        shards: &Shards,
        nsid: u16,
        keys_max: usize,
        heap: &mut BinaryHeap<Reverse<(Rank, Key, usize)>>,
    ) -> Result<(), Status> {
        while let (0, Some(from)) = (self.waiting, self.next) {
            let ask = move |shard: Rc<Shard>| async move {
                shard.list_certain(nsid, from, keys_max, LOOKS_MAX).await
            };
            let page = shards.on_owner(self.shard, ask).await?;
            if owner(self.shard) == core_id() {
                yield_now().await;
            }
            self.next = page.last.map(Bound::Excluded);
            self.waiting = page.keys.len();
            let keys = page.keys.into_iter();
            heap.extend(keys.map(|(rank, key)| Reverse((rank, key, self.shard))));
        }
        Ok(())
    }
}
