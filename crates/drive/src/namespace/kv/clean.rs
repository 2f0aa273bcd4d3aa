//! Cleaning: moves what still counts out of a segment and frees it.
//!
//! Invariants: a moved record keeps its commit number; a tombstone is dropped only with the oldest
//! segment of its shard, because older segments may hold what it deletes; a segment becomes free
//! only when its header is durably gone and nobody reads from it.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Class, spawn};

use super::record::{EntryKey, PAGE_BYTES};
use super::recover::Walk;
use super::shard::{Location, Shard};
use crate::error::Access;

/// What cleaning came to; the greater of two is that of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cleaned {
    /// No segment is worth it.
    Nothing,
    /// Another shard is cleaning: ask again.
    Busy,
    /// A segment was freed.
    Freed,
}

impl Shard {
    /// The sealed segment with most to gain, if it is worth the copying.
    fn victim(&self) -> Option<u32> {
        let owned = self.owned.borrow();
        let oldest = owned.values().map(|segment| segment.sequence).min()?;
        let gain = |segment: &super::shard::Segment| {
            let kept = match segment.sequence == oldest {
                true => segment.live - segment.tombstones,
                false => segment.live,
            };
            self.segments.segment_bytes - kept
        };
        let sealed = owned.iter().filter(|(_, segment)| segment.sealed);
        let best = sealed.max_by_key(|(_, segment)| gain(segment))?;
        let worth = self.segments.segment_bytes / 16 + 2 * PAGE_BYTES;
        (gain(best.1) >= worth).then_some(*best.0)
    }

    /// Cleans beside the work when few segments are free.
    pub fn clean_if_low(self: &Rc<Self>) {
        if self.segments.is_low() && self.victim().is_some() && self.segments.begin_cleaning() {
            let shard = Rc::clone(self);
            drop(spawn(Class::Background, async move {
                let cleaning = Cleaning(&shard);
                // What fails here fails the next store with its own status.
                let _ = shard.clean_one().await;
                drop(cleaning);
            }));
        }
    }

    /// Frees one segment.
    ///
    /// # Errors
    /// The status of a medium's failure.
    pub async fn clean(self: &Rc<Self>) -> Result<Cleaned, Status> {
        if self.victim().is_none() {
            return Ok(Cleaned::Nothing);
        }
        if !self.segments.begin_cleaning() {
            return Ok(Cleaned::Busy);
        }
        let cleaning = Cleaning(self);
        let freed = self.clean_one().await?;
        drop(cleaning);
        Ok(if freed { Cleaned::Freed } else { Cleaned::Nothing })
    }

    async fn clean_one(self: &Rc<Self>) -> Result<bool, Status> {
        let Some(number) = self.victim() else { return Ok(false) };
        let (sequence, filled, is_oldest) = {
            let owned = self.owned.borrow();
            let oldest = owned.values().map(|segment| segment.sequence).min();
            let segment = &owned[&number];
            (segment.sequence, segment.filled, oldest == Some(segment.sequence))
        };
        let media = self.media.clone();
        let mut walk = Walk::new(&media, &self.segments, number, sequence, filled);
        loop {
            let next = walk.next().await.map_err(|error| error.status(Access::Value))?;
            let Some((offset, record)) = next else { break };
            self.move_record(record.key, number, offset, is_oldest).await?;
        }
        if self.owned.borrow()[&number].live > 0 {
            // A record that counts was not found by the walk: damaged. Keep the segment.
            return Ok(false);
        }
        self.free(number).await?;
        Ok(true)
    }

    /// Moves a record if the index still points at it.
    async fn move_record(
        self: &Rc<Self>,
        key: EntryKey,
        segment: u32,
        offset: u64,
        is_oldest: bool,
    ) -> Result<(), Status> {
        let lock = self.lock(key).await;
        let current = self.index.borrow().get(&key).copied();
        let here = |location: &Location| location.segment == segment && location.offset == offset;
        let Some(location) = current.filter(here) else { return Ok(()) };
        if location.value_bytes.is_none() && is_oldest {
            self.index.borrow_mut().remove(&key);
            self.forget(key, &location);
            return Ok(());
        }
        let value = match location.value_bytes {
            Some(_) => Some(vec![self.read_value(&location).await?]),
            None => None,
        };
        let result = self.append(key, value, Some(location.commit)).await;
        drop(lock);
        result.map_err(|refused| refused.status)
    }

    async fn free(&self, number: u32) -> Result<(), Status> {
        while self.owned.borrow()[&number].readers > 0 {
            self.unpinned.notified().await;
        }
        let gone = async {
            self.write_page(self.segments.at(number, 0), &[]).await.0?;
            self.syncer.sync().await
        };
        gone.await.map_err(|error| error.status(Access::Write))?;
        self.owned.borrow_mut().remove(&number);
        self.segments.give_cleaned(number);
        Ok(())
    }
}

/// Ends cleaning also when its task is dropped.
struct Cleaning<'a>(&'a Rc<Shard>);

impl Drop for Cleaning<'_> {
    fn drop(&mut self) {
        self.0.segments.end_cleaning();
    }
}
