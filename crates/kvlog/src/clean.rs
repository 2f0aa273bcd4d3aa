//! Cleaning (garbage collection): moves the current records out of a segment and frees it.
//!
//! A log never overwrites, so the space of superseded records comes back only in whole segments.
//! This is the cleaning of a log-structured file system (Rosenblum and Ousterhout, "The design and
//! implementation of a log-structured file system", 1992). The choice is their greedy policy: the
//! segment that gives back most, if that is worth the copying. A segment's age, the other term of
//! their cost-benefit policy, does not count.
//!
//! Records are moved in batches, each one group commit, so that they lie close together afterwards.
//! Invariants: a moved record keeps its commit number; a tombstone is dropped only with the oldest
//! segment of its shard, because older segments may hold the record that it deletes; a segment
//! becomes free only when what replaced its records is durable, its header is durably removed, and
//! it has no reader. A reader may take arbitrarily long, if its host takes no data: cleaning does
//! not wait for one, it chooses another segment.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::error::{Access, MediaError};
use crate::record::{EntryKey, PAGE_BYTES, RECORDS_OFFSET};
use crate::segment_head::SegmentHeader;
use crate::shard::{Append, Change, Location, Outcome, Segment, Shard};
use crate::walk::{Step, Until, Walk};

/// Bytes of records that are moved at once. Stores of the shard wait for as long as it takes to
/// write them. A longer value is moved alone.
const BATCH_BYTES: u64 = 256 << 10;
/// Bytes read at once from a segment that is cleaned.
const WINDOW_BYTES: u64 = 256 << 10;
/// Divisor of the smallest share of a segment that cleaning it must give back.
const WORTH_SHARE: u64 = 64;

/// Outcome of one cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaned {
    /// No segment is worth it.
    Nothing,
    /// Another shard is cleaning, or a segment has readers: ask again.
    Busy,
    /// A segment was cleaned.
    Done {
        /// Bytes of the records that were current in it before.
        bytes: u64,
    },
}

/// A segment that is worth cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Bytes of space that cleaning it gives back.
    pub gain: u64,
    /// Its number.
    pub segment: u32,
}

/// A record that is moved: its key, where it is, its commit number and checksum, and its bytes if
/// they were read.
type Moved = (EntryKey, Location, (u64, u32), Option<Vec<Buffer>>);

/// Records that are moved together.
#[derive(Default)]
struct Batch {
    records: Vec<Moved>,
    bytes: u64,
}

impl Shard {
    /// Returns the sealed segment without readers that gives back most, if it is worth the copying.
    pub fn candidate(&self) -> Option<Candidate> {
        self.best(|segment| segment.readers == 0)
    }

    /// Returns true when a segment would be worth cleaning once its readers are done.
    pub fn waits_for_readers(&self) -> bool {
        self.best(|segment| segment.readers > 0).is_some()
    }

    fn best(&self, wanted: impl Fn(&Segment) -> bool) -> Option<Candidate> {
        let oldest = self.oldest()?;
        let owned = self.owned.borrow();
        let open = self.open.get().and_then(|number| owned.get(&number));
        let open_room = open.map_or(0, |open| self.segments.segment_bytes - open.filled);
        let tombstones: u64 = owned.values().map(|segment| segment.tombstones).sum();
        // One whose seal could not be written gets it before anything else is written.
        let closing = self.closing.get().map(|(number, _)| number);
        let usable = |(at, segment): &(&u32, &Segment)| {
            segment.sealed && !segment.damaged && closing != Some(**at) && wanted(segment)
        };
        let candidates = owned.iter().filter(usable).map(|(at, segment)| {
            let is_oldest = segment.sequence == oldest;
            let gain = gain(segment, is_oldest, open_room, self.segments.payload_bytes());
            // Cleaning the oldest segment also brings the turn of the other tombstones closer.
            let closer = if is_oldest { tombstones / owned.len() as u64 } else { 0 };
            Candidate { gain: gain.max(closer), segment: *at }
        });
        let worth = self.segments.payload_bytes() / WORTH_SHARE;
        candidates.max().filter(|candidate| candidate.gain >= worth)
    }

    /// Frees the best segment. The caller makes sure that no other shard cleans.
    ///
    /// # Errors
    /// The status of a medium's failure.
    pub async fn clean(self: &Rc<Self>) -> Result<Cleaned, Status> {
        let Some(Candidate { segment: number, .. }) = self.candidate() else {
            return Ok(if self.waits_for_readers() { Cleaned::Busy } else { Cleaned::Nothing });
        };
        let bytes = self.owned.borrow()[&number].live;
        if bytes > 0 {
            self.empty(number).await?;
        }
        if self.segments.is_closing() {
            return Ok(Cleaned::Nothing);
        }
        let (live, readers) = {
            let owned = self.owned.borrow();
            (owned[&number].live, owned[&number].readers)
        };
        if live > 0 {
            if let Some(segment) = self.owned.borrow_mut().get_mut(&number) {
                segment.damaged = true;
            }
            return Ok(Cleaned::Busy);
        }
        if readers > 0 {
            // The segment is empty now: a cleaning after the last read frees it.
            return Ok(Cleaned::Busy);
        }
        self.free(number).await.map_err(|error| error.status(Access::Write))?;
        Ok(Cleaned::Done { bytes })
    }

    /// Moves every current record of a segment whose value is intact.
    async fn empty(self: &Rc<Self>, number: u32) -> Result<(), Status> {
        let (sequence, filled) = {
            let segment = &self.owned.borrow()[&number];
            (segment.sequence, segment.filled)
        };
        let is_oldest = self.oldest() == Some(sequence);
        let place = (number, sequence);
        let until = Until::Sealed(filled);
        let mut walk = Walk::new(&self.media, &self.segments, place, until, WINDOW_BYTES);
        let mut batch = Batch::default();
        loop {
            // Records behind a place that cannot be read stay, and the segment with them.
            let (offset, record) = match walk.next().await {
                Ok(Step::Record(offset, record)) => (offset, record),
                Ok(Step::Checkpoint(..)) => continue,
                _ => break,
            };
            let Some(from) = self.current_at(&record.key, number, offset) else { continue };
            if !from.content.is_value() && is_oldest {
                self.bury(record.key, &from);
                continue;
            }
            let value = match from.content.is_value() {
                false => None,
                true => match walk.value(offset, &record).await {
                    Ok(Some(value)) => Some(vec![value]),
                    // The record stays where it is, and reading it fails.
                    Ok(None) | Err(_) => continue,
                },
            };
            if batch.bytes > 0 && batch.bytes + from.footprint() > BATCH_BYTES {
                self.move_all(std::mem::take(&mut batch)).await?;
            }
            if self.segments.is_closing() {
                return Ok(());
            }
            batch.bytes += from.footprint();
            let known = (record.commit, record.value_checksum);
            batch.records.push((record.key, from, known, value));
        }
        self.move_all(batch).await
    }

    /// Returns the sequence of the oldest segment.
    fn oldest(&self) -> Option<u64> {
        self.owned.borrow().values().map(|segment| segment.sequence).min()
    }

    fn current_at(&self, key: &EntryKey, segment: u32, offset: u64) -> Option<Location> {
        let current = self.newest(key)?;
        (current.segment == segment && current.offset == offset).then_some(current)
    }

    async fn move_all(self: &Rc<Self>, batch: Batch) -> Result<(), Status> {
        if self.segments.is_closing() {
            return Ok(());
        }
        let outcome = Outcome::of(batch.records.len());
        self.enqueue(batch.records.into_iter().map(|(key, from, (commit, checksum), value)| {
            let change = Change::Move { key, from, commit, for_cleaning: true };
            let is_indirect = from.content.is_list();
            Append { is_indirect, ..Append::new(change, (value, checksum), &outcome) }
        }));
        outcome.all_ended().await.map(drop).map_err(|refused| refused.status)
    }

    /// Frees a segment without current records and readers.
    ///
    /// # Errors
    /// When the medium fails: the segment may be free there, and a later call tries again.
    pub(crate) async fn free(&self, number: u32) -> Result<(), MediaError> {
        // Records that were moved, and those that superseded others here.
        self.close_written().await?;
        self.remove_stop_seal().await?;
        if let Some(segment) = self.owned.borrow_mut().get_mut(&number) {
            segment.freeing = true;
        }
        let header = match self.segments.tag() {
            0 => Vec::new(),
            _ => {
                let sequence = self.owned.borrow()[&number].sequence;
                SegmentHeader::freed(&self.segments.uuid, sequence).as_bytes().to_vec()
            }
        };
        self.write_pages(self.segments.at(number, 0), &header).await?;
        self.syncer.sync().await?;
        self.owned.borrow_mut().remove(&number);
        self.segments.give_cleaned(number);
        Ok(())
    }
}

/// Returns the bytes of space that cleaning a segment gives back, at least or most likely.
///
/// Moved records take `kept` bytes of space, and the end of the open segment is lost when the next
/// record is too long for it. That loss is at most the longest record. Where records are alike, the
/// loss equals that at this segment's own end, so the gain is the dead bytes before its end.
fn gain(segment: &Segment, is_oldest: bool, open_room: u64, payload: u64) -> u64 {
    let kept = segment.live - if is_oldest { segment.tombstones } else { 0 };
    let dead = segment.filled.saturating_sub(RECORDS_OFFSET + kept);
    // Batches are padded to whole pages.
    let moved = kept + (kept / BATCH_BYTES + 1) * PAGE_BYTES;
    let lost = if moved <= open_room { 0 } else { open_room.min(segment.longest) };
    let surely = payload.saturating_sub(moved + lost);
    if kept == 0 { payload } else { surely.max(dead) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u64 = 2 << 20;

    fn segment(filled: u64, live: u64, longest: u64) -> Segment {
        Segment { filled: RECORDS_OFFSET + filled, live, longest, ..Segment::default() }
    }

    #[test]
    fn a_segment_gives_back_its_dead_bytes_and_its_end_only_if_the_rest_fits_elsewhere() {
        // Full of alike records, a quarter of them dead.
        let full = segment(PAYLOAD, PAYLOAD / 4 * 3, PAYLOAD / 4);
        assert_eq!(gain(&full, false, 0, PAYLOAD), PAYLOAD / 4);
        // Cut off early: its records fit the open segment, so all of its space is freed.
        let short = segment(PAYLOAD / 8, PAYLOAD / 8, 4096);
        let padding = (PAYLOAD / 8 / BATCH_BYTES + 1) * PAGE_BYTES;
        assert_eq!(gain(&short, false, PAYLOAD / 2, PAYLOAD), PAYLOAD / 8 * 7 - padding);
        // One long record: moved, it would leave as much unused space behind it elsewhere.
        let long = segment(PAYLOAD / 3 * 2, PAYLOAD / 3 * 2, PAYLOAD / 3 * 2);
        assert!(gain(&long, false, PAYLOAD / 2, PAYLOAD) < PAYLOAD / 64);
        assert_eq!(gain(&segment(PAYLOAD, 0, 4096), false, 0, PAYLOAD), PAYLOAD, "nothing to move");
    }

    #[test]
    fn tombstones_count_as_dead_in_the_oldest_segment_only() {
        let mut graves = segment(PAYLOAD, PAYLOAD, 64);
        graves.tombstones = PAYLOAD;
        assert_eq!(gain(&graves, true, 0, PAYLOAD), PAYLOAD);
        assert_eq!(gain(&graves, false, 0, PAYLOAD), 0);
    }
}
