//! Recovery: rebuilds shards and their indexes from the medium.
//!
//! A sealed segment counts up to its seal. The newest segment of a shard counts up to its torn end,
//! and is sealed there before the shard takes new records; one that was sealed because the drive
//! stopped is opened again. Invariants: no length is used before its checksum held; every
//! acknowledged record is found, or the drive is not opened, because a damaged header may hide the
//! newest value of any key, and cleaning could destroy it for good. Only a read-only medium is
//! opened with damage, to copy its whole records. Of two records of a key the higher commit number
//! counts.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_reactor::Buffer;

use super::record::{EntryKey, Head, PAGE_BYTES, RECORDS_OFFSET, Seal, SegmentHeader, SegmentSeal};
use super::segments::Segments;
use super::shard::{Location, Segment, Shard};
use super::walk::{Step, Walk};
use crate::error::Error;
use crate::media::Media;

/// A segment in use, as its first two pages describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Segment number.
    pub number: u32,
    /// Its sequence.
    pub sequence: u64,
    /// Its shard.
    pub shard: u32,
    /// Its seal, if it has one.
    pub seal: Option<Seal>,
}

/// Bytes read at once when recovery or the check walks records.
pub const WINDOW_BYTES: u64 = 64 << 10;

/// Each start skips a random number of sequences below 2^44, so that 2^64 of them last for a
/// million starts, and the sequence of an earlier life recurs less often than a checksum holds by
/// chance.
const SKIP_BITS: u32 = 20;

/// Reads the header and seal of every segment: returns segments in use, and adds the others to the
/// free list. `random` is a random number for this start.
///
/// # Errors
/// When the medium cannot be read, a segment names a shard that does not exist, or its header is
/// damaged.
pub async fn survey(
    media: &Media,
    segments: &Segments,
    shards: u32,
    random: u64,
) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for number in 0..segments.count {
        let length = usize::try_from(RECORDS_OFFSET).expect("two pages");
        let (result, pages) =
            media.read(segments.at(number, 0), Buffer::with_room(0, length, 0)).await;
        result?;
        match Found::decode(number, &pages, segments) {
            Ok(Some(segment)) if segment.shard >= shards => {
                let shard = segment.shard;
                return Err(Error::Format(format!("segment {number} belongs to shard {shard}")));
            }
            Ok(Some(segment)) => {
                segments.seen(0, segment.sequence);
                found.push(segment);
                continue;
            }
            Ok(None) => {}
            Err(text) => segments.damaged(text)?,
        }
        segments.give(number);
    }
    found.sort_by_key(|segment| segment.sequence);
    // Sequences of this life differ from those of earlier ones that left nothing but records: the
    // header of a segment may be lost in a power cut, or freed, and the records behind it be there.
    segments.skip_sequences(random >> SKIP_BITS);
    Ok(found)
}

impl Found {
    /// Decodes the first two pages of a segment; `None` when it is free.
    ///
    /// # Errors
    /// The damage, described.
    pub fn decode(number: u32, pages: &[u8], segments: &Segments) -> Result<Option<Self>, String> {
        let (head, seal) = pages.split_at(usize::try_from(PAGE_BYTES).expect("a page"));
        match SegmentHeader::decode(head, &segments.uuid) {
            Head::Free => Ok(None),
            Head::Damaged => Err(format!("segment {number}: its header (checksum)")),
            Head::Used { sequence, shard } => {
                let seal = SegmentSeal::decode(seal, sequence, segments.segment_bytes);
                Ok(Some(Self { number, sequence, shard, seal }))
            }
        }
    }

    /// Makes a walk over the segment's records.
    pub fn walk(&self, media: &Media, segments: &Segments) -> Walk {
        let valid_bytes = self.seal.map(|seal| seal.valid_bytes);
        Walk::new(media, segments, (self.number, self.sequence), valid_bytes, WINDOW_BYTES)
    }
}

/// Compares the segments of one shard, oldest first, with their seals.
///
/// # Errors
/// The damage, in words.
pub fn check_seals(own: &[Found]) -> Result<(), String> {
    let Some((last, others)) = own.split_last() else { return Ok(()) };
    if let Some(segment) = others.iter().find(|segment| segment.seal.is_none()) {
        // The next one was begun only when this one's seal was durable.
        return Err(format!("segment {}: its seal", segment.number));
    }
    match last.seal.and_then(|seal| seal.stopped) {
        Some(owned) if owned as usize != own.len() => {
            let (shard, found) = (last.shard, own.len());
            Err(format!("shard {shard}: {found} segments where there were {owned}"))
        }
        _ => Ok(()),
    }
}

impl Shard {
    /// Builds the index from the shard's segments, oldest first, and seals a segment that was left
    /// open.
    ///
    /// # Errors
    /// When the medium fails, or is damaged.
    pub async fn recover(self: &Rc<Self>, found: &[Found]) -> Result<(), Error> {
        // Of this shard alone, until its index is built.
        let mut newest: BTreeMap<EntryKey, (u64, Location)> = BTreeMap::new();
        let own = found.iter().filter(|segment| segment.shard == self.number);
        let own: Vec<Found> = own.copied().collect();
        if let Err(text) = check_seals(&own) {
            self.segments.damaged(text)?;
        }
        for (index, found) in own.iter().enumerate() {
            let is_last = index + 1 == own.len();
            let stopped = is_last && found.seal.is_some_and(|seal| seal.stopped.is_some());
            let mut segment = Segment {
                sequence: found.sequence,
                sealed: found.seal.is_some() && !stopped,
                ..Segment::default()
            };
            self.recover_records(found, &mut segment, &mut newest).await?;
            let filled = segment.filled;
            self.owned.borrow_mut().insert(found.number, segment);
            if self.media.is_read_only() {
                continue;
            }
            if stopped {
                self.open.set(Some(found.number));
                self.has_stop_seal.set(true);
            } else if found.seal.is_none() {
                // Directly behind the last whole record: the torn rest of its page does not belong
                // to the log.
                self.seal(found.number, filled).await?;
            }
        }
        newest.into_iter().for_each(|(key, (_, location))| self.apply(key, location));
        Ok(())
    }

    /// Adds a segment's records to the index, and sets how far they fill it.
    async fn recover_records(
        &self,
        found: &Found,
        segment: &mut Segment,
        newest: &mut BTreeMap<EntryKey, (u64, Location)>,
    ) -> Result<(), Error> {
        let mut walk = found.walk(&self.media, &self.segments);
        loop {
            let (offset, record) = match walk.next().await? {
                Step::Record(offset, record) => (offset, record),
                Step::Damage(at) => {
                    let text = format!("segment {}: no record at {at}", found.number);
                    self.segments.damaged(text)?;
                    walk.pass_over().await?;
                    continue;
                }
                Step::End => break,
            };
            let value_bytes = record.value_bytes;
            let location = Location { segment: found.number, offset, value_bytes };
            segment.longest = segment.longest.max(record.footprint());
            self.segments.seen(record.commit, found.sequence);
            let known = newest.get(&record.key).map_or(0, |known| known.0);
            if record.commit >= known {
                newest.insert(record.key, (record.commit, location));
            }
        }
        segment.filled = found.seal.map_or(walk.position(), |seal| seal.valid_bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::media::{Memory, Syncer};

    /// Runs recovery as the fuzz target does, without a core, a clock or a random source.
    #[test]
    fn recovery_runs_outside_of_a_core() {
        let media = Media::Memory(Arc::new(Memory::new(16 << 20)));
        let segments = Arc::new(Segments::new([1; 16], 0, 2 << 20, 8, &[2]));
        let mut cx = Context::from_waker(Waker::noop());
        let found = pin!(survey(&media, &segments, 16, 5)).as_mut().poll(&mut cx);
        let Poll::Ready(Ok(found)) = found else { panic!("memory media never wait") };
        assert!(found.is_empty());
        let syncer = Rc::new(Syncer::new(media.clone()));
        let shard = Rc::new(Shard::new(0, media, segments, syncer));
        assert!(matches!(pin!(shard.recover(&found)).as_mut().poll(&mut cx), Poll::Ready(Ok(()))));
    }
}
