//! Recovery: from what is on the medium to shards with an index.
//!
//! Trusts no length before its checksum. A sealed segment counts up to its seal; the newest
//! segment of a shard counts up to its first record that is not whole, and is sealed there before
//! the shard takes new records. Invariants: every acknowledged record is found, or the drive is not
//! opened: behind a damaged header there may be the newest value of any key, and what cleaning
//! frees is gone for good. Only a medium that cannot be written is opened with damage, to copy off
//! what is whole. Of two records of a key the higher commit number counts.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_reactor::Buffer;

use super::record::{
    EntryKey, PAGE_BYTES, RECORD_ALIGNMENT, RECORDS_OFFSET, Record, RecordHeader, SegmentHeader,
    SegmentSeal,
};
use super::segments::Segments;
use super::shard::{Location, Segment, Shard};
use crate::error::{Error, MediaError};
use crate::media::Media;

/// A segment in use, as its first two pages tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Segment number.
    pub number: u32,
    /// Its sequence.
    pub sequence: u64,
    /// Its shard.
    pub shard: u32,
    /// Valid bytes if it is sealed.
    pub valid_bytes: Option<u64>,
}

/// Bytes read at once when walking records.
const WINDOW_BYTES: u64 = 64 << 10;

/// Reads every segment's head: those in use are returned, the others become free.
///
/// # Errors
/// When the medium cannot be read, a segment names a shard that does not exist, or its header is
/// damaged.
pub async fn survey(media: &Media, segments: &Segments, shards: u32) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for number in 0..segments.count {
        let length = usize::try_from(RECORDS_OFFSET).expect("two pages");
        let (result, pages) =
            media.read(segments.at(number, 0), Buffer::with_room(0, length, 0)).await;
        result?;
        let Some((sequence, shard)) = SegmentHeader::decode(&pages, &segments.uuid) else {
            // One of this drive that does not hold: a free segment's is zero, or from before.
            if pages[8..24] == segments.uuid {
                segments.damaged(format!("segment {number}: its header (checksum)"))?;
            }
            segments.give(number);
            continue;
        };
        if shard >= shards {
            return Err(Error::Format(format!("segment {number} belongs to shard {shard}")));
        }
        let page = usize::try_from(PAGE_BYTES).expect("a page");
        let valid_bytes = SegmentSeal::decode(&pages[page..], sequence, segments.segment_bytes);
        segments.seen(0, sequence);
        found.push(Found { number, sequence, shard, valid_bytes });
    }
    found.sort_by_key(|segment| segment.sequence);
    Ok(found)
}

/// One step of a walk.
#[derive(Debug)]
pub enum Step {
    /// A record, and its offset.
    Record(u64, Record),
    /// Nothing more was written here.
    End,
    /// At this offset there is neither a record nor the end: damage in a sealed segment, and in an
    /// unsealed one where its last group ends.
    Damage(u64),
}

/// A walk over the records of one segment.
pub struct Walk<'a> {
    media: &'a Media,
    segments: &'a Segments,
    number: u32,
    sequence: u64,
    end: u64,
    at: u64,
    window: Buffer,
    window_at: u64,
}

impl<'a> Walk<'a> {
    /// From the first record to `end`.
    pub fn new(
        media: &'a Media,
        segments: &'a Segments,
        number: u32,
        sequence: u64,
        end: u64,
    ) -> Self {
        let window = Buffer::default();
        Self { media, segments, number, sequence, end, at: RECORDS_OFFSET, window, window_at: 0 }
    }

    /// Offset behind the last record.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next record. A group starts on a page of its own: behind the last record of the one
    /// before there are zeros up to there.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn next(&mut self) -> Result<Step, MediaError> {
        if let Some(record) = self.record_at(self.at).await? {
            return Ok(self.took(self.at, record));
        }
        let page = self.at.next_multiple_of(PAGE_BYTES);
        let mut at = self.at;
        while at < page.min(self.end) {
            if self.header(at).await?.iter().any(|byte| *byte != 0) {
                return Ok(Step::Damage(at));
            }
            at += RECORD_ALIGNMENT;
        }
        if page >= self.end {
            return Ok(Step::End);
        }
        match self.record_at(page).await? {
            Some(record) => Ok(self.took(page, record)),
            None => Ok(Step::Damage(page)),
        }
    }

    /// Passes over damage: to the next page that begins with a record, if there is one.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn pass_over(&mut self) -> Result<(), MediaError> {
        loop {
            self.at = (self.at + 1).next_multiple_of(PAGE_BYTES);
            if self.at >= self.end || self.record_at(self.at).await?.is_some() {
                return Ok(());
            }
        }
    }

    fn took(&mut self, at: u64, record: Record) -> Step {
        self.at = at + record.footprint();
        Step::Record(at, record)
    }

    async fn record_at(&mut self, at: u64) -> Result<Option<Record>, MediaError> {
        if at + RecordHeader::SIZE as u64 > self.end {
            return Ok(None);
        }
        let (sequence, room) = (self.sequence, self.end - at);
        Ok(Record::decode(self.header(at).await?, sequence, room))
    }

    async fn header(&mut self, at: u64) -> Result<&[u8], MediaError> {
        let inside = at >= self.window_at
            && at + RECORD_ALIGNMENT <= self.window_at + self.window.len() as u64;
        if !inside {
            let length = WINDOW_BYTES.min(self.segments.segment_bytes - at);
            let length = usize::try_from(length).expect("a window");
            let buffer = Buffer::with_room(0, length, 0);
            let (result, buffer) = self.media.read(self.segments.at(self.number, at), buffer).await;
            result?;
            self.window = buffer;
            self.window_at = at;
        }
        let start = usize::try_from(at - self.window_at).expect("inside the window");
        Ok(&self.window[start..start + RecordHeader::SIZE])
    }
}

impl Shard {
    /// Builds the index from the shard's segments, oldest first, and closes what was left open.
    ///
    /// # Errors
    /// When the medium fails, or is damaged.
    pub async fn recover(self: &Rc<Self>, found: &[Found]) -> Result<(), Error> {
        let mut newest: BTreeMap<EntryKey, Location> = BTreeMap::new();
        let own: Vec<_> = found.iter().filter(|segment| segment.shard == self.number).collect();
        let last = own.last().map(|segment| segment.number);
        for segment in own {
            let number = segment.number;
            if segment.valid_bytes.is_none() && Some(number) != last {
                // The next one was begun only when this one's seal was durable.
                self.segments.damaged(format!("segment {number}: its seal"))?;
            }
            let filled = self.recover_segment(segment, &mut newest).await?;
            let owned = Segment {
                sequence: segment.sequence,
                filled,
                sealed: segment.valid_bytes.is_some(),
                ..Segment::default()
            };
            self.owned.borrow_mut().insert(number, owned);
            if segment.valid_bytes.is_none() && !self.media.is_read_only() {
                self.seal(number, filled).await?;
            }
        }
        newest.into_iter().for_each(|(key, location)| self.apply(key, location));
        Ok(())
    }

    /// Adds a segment's records; returns the offset behind the last whole one.
    async fn recover_segment(
        &self,
        segment: &Found,
        newest: &mut BTreeMap<EntryKey, Location>,
    ) -> Result<u64, Error> {
        let end = segment.valid_bytes.unwrap_or(self.segments.segment_bytes);
        let (number, sequence) = (segment.number, segment.sequence);
        let mut walk = Walk::new(&self.media, &self.segments, number, sequence, end);
        let mut filled = RECORDS_OFFSET;
        loop {
            let (offset, record) = match walk.next().await? {
                Step::Record(offset, record) => (offset, record),
                Step::Damage(at) if segment.valid_bytes.is_some() => {
                    self.segments.damaged(format!("segment {number}: no record at {at}"))?;
                    walk.pass_over().await?;
                    continue;
                }
                Step::Damage(_) | Step::End => break,
            };
            let location = Location {
                segment: segment.number,
                offset,
                value_bytes: record.value_bytes,
                value_checksum: record.value_checksum,
                commit: record.commit,
            };
            // In an unsealed segment the last group may be torn inside a value.
            let torn = segment.valid_bytes.is_none()
                && record.value_bytes.is_some()
                && self.read_value(&location).await.is_err();
            if torn {
                break;
            }
            filled = offset + record.footprint();
            self.segments.seen(record.commit, segment.sequence);
            let known = newest.get(&record.key).map_or(0, |known| known.commit);
            if record.commit >= known {
                newest.insert(record.key, location);
            }
        }
        Ok(segment.valid_bytes.unwrap_or_else(|| {
            filled.next_multiple_of(PAGE_BYTES).min(self.segments.segment_bytes)
        }))
    }
}
