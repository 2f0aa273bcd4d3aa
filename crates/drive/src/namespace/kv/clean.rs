//! Cleaning: moves what still counts out of a segment and frees it.
//!
//! Invariants: a moved record keeps its commit number; a tombstone is dropped only with the oldest
//! segment of its shard, because older segments may hold what it deletes; a segment becomes free
//! only when its header is durably gone and nobody reads from it. A reader may take for ever (its
//! host takes nothing): cleaning never waits for one, it takes another segment.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Class, spawn};

use super::record::{EntryKey, PAGE_BYTES, RECORDS_OFFSET};
use super::recover::{Step, Walk};
use super::shard::{Location, Segment, Shard};
use crate::error::Access;

/// What cleaning came to; the greater of two is that of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cleaned {
    /// No segment is worth it.
    Nothing,
    /// Another shard is cleaning, or a read goes on: ask again.
    Busy,
    /// A segment was freed.
    Freed,
}

impl Shard {
    /// The sealed segment that nobody reads with most to gain, if it is worth the copying.
    fn victim(&self) -> Option<u32> {
        self.candidate(|segment| segment.readers == 0)
    }

    /// True when a segment would be worth it once its readers are done.
    fn waits_for_readers(&self) -> bool {
        self.candidate(|segment| segment.readers > 0).is_some()
    }

    /// What records have left dead is a gain. Room behind the last record is one only if what the
    /// segment keeps can join the open segment or another's: else cleaning would move half-full
    /// segments about for ever.
    fn candidate(&self, wanted: impl Fn(&Segment) -> bool) -> Option<u32> {
        let owned = self.owned.borrow();
        let oldest = owned.values().map(|segment| segment.sequence).min()?;
        let capacity = self.segments.segment_bytes - RECORDS_OFFSET;
        let kept = |segment: &Segment| match segment.sequence == oldest {
            true => segment.live - segment.tombstones,
            false => segment.live,
        };
        let open = self.open.get().and_then(|number| owned.get(&number));
        let open_room = open.map_or(0, |open| self.segments.segment_bytes - open.filled);
        let sealed = || owned.iter().filter(|(_, segment)| segment.sealed && wanted(segment));
        let mut least = [u64::MAX; 2];
        for (_, segment) in sealed() {
            least = if kept(segment) < least[0] {
                [kept(segment), least[0]]
            } else {
                [least[0], least[1].min(kept(segment))]
            };
        }
        let two_join = least[0].saturating_add(least[1]) <= capacity;
        let gain = |segment: &Segment| {
            let dead = segment.filled.saturating_sub(RECORDS_OFFSET + kept(segment));
            let joins = kept(segment) <= open_room || (two_join && kept(segment) == least[0]);
            if joins { capacity - kept(segment) } else { dead }
        };
        let best = sealed().max_by_key(|(_, segment)| gain(segment))?;
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
            return Ok(if self.waits_for_readers() { Cleaned::Busy } else { Cleaned::Nothing });
        }
        if !self.segments.begin_cleaning() {
            return Ok(Cleaned::Busy);
        }
        let cleaning = Cleaning(self);
        let cleaned = self.clean_one().await?;
        drop(cleaning);
        Ok(cleaned)
    }

    async fn clean_one(self: &Rc<Self>) -> Result<Cleaned, Status> {
        let Some(number) = self.victim() else { return Ok(Cleaned::Nothing) };
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
            let Step::Record(offset, record) = next else { break };
            self.move_record(record.key, number, offset, is_oldest).await?;
        }
        if self.owned.borrow()[&number].live > 0 {
            // A record that counts was not found by the walk: damaged. Keep the segment.
            return Ok(Cleaned::Nothing);
        }
        if self.owned.borrow()[&number].readers > 0 {
            // Empty now: the next cleaning after the last read frees it.
            return Ok(Cleaned::Busy);
        }
        self.free(number).await?;
        Ok(Cleaned::Freed)
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
        let result = self.append(lock, value, Some(location.commit)).await;
        result.map_err(|refused| refused.status)
    }

    async fn free(&self, number: u32) -> Result<(), Status> {
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
