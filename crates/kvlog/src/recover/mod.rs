//! Recovery: rebuilds shards and their indexes from the medium.
//!
//! A sealed segment counts up to its seal. The newest segment of a shard counts up to its torn end,
//! and is sealed there before the shard takes new records; one that was sealed because the drive
//! stopped is opened again. If the medium has a mark, the log ends where that says (`by_mark.rs`).
//! Checkpoints are read in place of the records that they list; where one is damaged, the records
//! of its segment are walked.
//!
//! Invariants: no length is used before its checksum held; every acknowledged record is found, or
//! the drive is not opened, because a damaged header that no checkpoint lists may hide the newest
//! value of any key, and cleaning could destroy it for good. Only a read-only medium is opened with
//! damage, to copy its whole records. Of two records of a key the later one in the log counts; in
//! version 1, where a group may have a moved record behind the one that supersedes it, that with
//! the higher commit number.

pub mod by_checkpoints;
pub mod by_mark;
pub mod lost;
mod records;

use std::rc::Rc;

use csd_reactor::Buffer;

use crate::error::{Error, MediaError};
use crate::hint::Hint;
use crate::mark::Position;
use crate::media::Media;
use crate::record::{
    KIND_FINAL_CHECKPOINT, PAGE_BYTES, RECORDS_OFFSET, RecordHeader, SECTOR_BYTES, SegmentRange,
    value_offset,
};
use crate::segment_head::{Head, Seal, SegmentHeader, SegmentSeal};
use crate::segment_tail::SegmentTail;
use crate::segments::Segments;
use crate::shard::{Segment, Shard};
use crate::walk::{Until, Walk};

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
    /// Its hint, if it has a valid one and no seal.
    pub hint: Option<Hint>,
    /// True if a mark, and not the medium, says where it is sealed.
    pub is_cut: bool,
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
        match head(media, segments, number).await? {
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
    same_sequence(&found).into_iter().try_for_each(|text| segments.damaged(text))?;
    // Sequences of this life differ from those of earlier ones that left nothing but records: the
    // header of a segment may be lost in a power cut, or freed, and the records behind it be there.
    segments.skip_sequences(random >> SKIP_BITS);
    Ok(found)
}

/// Returns descriptions of segments with the same sequence, of which one has another's header.
/// `found` is in the order of sequences.
pub fn same_sequence(found: &[Found]) -> Vec<String> {
    let pairs = found.windows(2).filter(|pair| pair[0].sequence == pair[1].sequence);
    let text = |pair: &[Found]| {
        let (one, other) = (pair[0].number, pair[1].number);
        format!("segments {one} and {other} have the same sequence")
    };
    pairs.map(text).collect()
}

/// Reads the first two pages of a segment; `None` when it is free. The inner error is the damage,
/// described.
///
/// # Errors
/// When the medium cannot be read.
pub async fn head(
    media: &Media,
    segments: &Segments,
    number: u32,
) -> Result<Result<Option<Found>, String>, MediaError> {
    let length = usize::try_from(RECORDS_OFFSET).expect("two pages");
    let (result, pages) = media.read(segments.at(number, 0), Buffer::with_room(0, length, 0)).await;
    result?;
    let (head, page) = pages.split_at(usize::try_from(PAGE_BYTES).expect("a page"));
    match SegmentHeader::decode(head, &segments.uuid) {
        Head::Free { ended } => {
            let lost = lost::look(media, segments, (number, ended), page).await?;
            Ok(lost.map_or(Ok(None), Err))
        }
        Head::Damaged => Ok(Err(format!("segment {number}: its header (checksum)"))),
        Head::Used { sequence, shard } => {
            Ok(Found::decode((number, sequence, shard), page, segments).map(Some))
        }
    }
}

impl Found {
    /// Decodes the second page of a segment in use.
    ///
    /// # Errors
    /// The damage, described.
    fn decode(
        (number, sequence, shard): (u32, u64, u32),
        page: &[u8],
        segments: &Segments,
    ) -> Result<Self, String> {
        let bytes = segments.segment_bytes;
        let (seal, hint) = page.split_at(usize::try_from(SECTOR_BYTES).expect("small"));
        let later = [
            SegmentSeal::decode_any(seal, bytes).map(|(of, seal)| (of, seal.drive)),
            Hint::decode_any(hint, bytes).map(|(of, hint)| (of, hint.drive)),
        ];
        let is_ours = |drive: u32| drive > 0 && drive == segments.tag();
        if later.iter().flatten().any(|(of, drive)| *of > sequence && is_ours(*drive)) {
            return Err(format!("segment {number}: its header is older than what follows"));
        }
        let seal = SegmentSeal::decode(seal, sequence, bytes);
        let hint = Hint::decode(hint, sequence, bytes).filter(|_| segments.has_checkpoints());
        if let (Some(seal), Some(hint)) = (seal, hint)
            && hint.durable_bytes > seal.valid_bytes.next_multiple_of(SECTOR_BYTES)
        {
            return Err(format!("segment {number}: its seal is older than its hint"));
        }
        let hint = hint.filter(|_| seal.is_none());
        Ok(Self { number, sequence, shard, seal, hint, is_cut: false })
    }

    /// Makes a walk over the segment's records.
    pub fn walk(&self, media: &Media, segments: &Segments) -> Walk {
        let until = match self.seal {
            Some(seal) => Until::Sealed(seal.valid_bytes),
            None => Until::Open(self.hint),
        };
        // An open segment ends soon behind what its hint says.
        let window_bytes = if self.hint.is_some() { WINDOW_BYTES / 4 } else { WINDOW_BYTES };
        Walk::new(media, segments, (self.number, self.sequence), until, window_bytes)
    }

    /// Returns the range of the newest checkpoint that the seal or the hint names.
    pub fn checkpoint(&self, segments: &Segments) -> Option<SegmentRange> {
        let named = match self.seal {
            Some(seal) => seal.checkpoint,
            None => self.hint.and_then(|hint| hint.checkpoint),
        };
        named.filter(|_| segments.has_checkpoints())
    }
}

/// Compares the segments of one shard, oldest first, with their seals.
///
/// # Errors
/// The damage, in words.
pub fn check_seals(own: &[Found], segments: &Segments) -> Result<(), String> {
    let Some((last, others)) = own.split_last() else { return Ok(()) };
    if let Some(segment) = others.iter().find(|segment| segment.seal.is_none()) {
        // The next one was begun only when this one's seal was durable.
        return Err(format!("segment {}: its seal", segment.number));
    }
    match last.seal.and_then(|seal| seal.stopped) {
        Some(owned) if owned as usize != own.len() => {
            let (shard, found) = (last.shard, own.len());
            let missing = (owned as usize).checked_sub(found);
            match missing.is_some_and(|count| segments.headless.take(count, last.sequence)) {
                true => Ok(()),
                false => Err(format!("shard {shard}: {found} segments where there were {owned}")),
            }
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
        let mut newest = records::Newest::new();
        let own = found.iter().filter(|segment| segment.shard == self.number);
        let own: Vec<Found> = own.copied().collect();
        if let Err(text) = check_seals(&own, &self.segments) {
            self.segments.damaged(text)?;
        }
        for (index, found) in own.iter().enumerate() {
            let is_last = index + 1 == own.len();
            let sealed = found.seal.is_some() && !found.is_cut;
            let segment = Segment { sequence: found.sequence, sealed, ..Segment::default() };
            self.owned.borrow_mut().insert(found.number, segment);
            if let Some(seal) = found.seal.filter(|seal| seal.stopped.is_some())
                && self.goes_on(found, seal.valid_bytes).await?
            {
                let text = format!("segment {}: its seal is older than its records", found.number);
                self.segments.damaged(text)?;
            }
            self.tail.replace(SegmentTail::default());
            let filled = self.recover_records(found, &mut newest).await?;
            let sequence = found.sequence;
            // A segment that a kill left open was sealed behind its last record, within a sector.
            let end = filled.next_multiple_of(SECTOR_BYTES);
            self.ends.recovered(Position { sequence, end, checkpoint: None });
            if let Some(segment) = self.owned.borrow_mut().get_mut(&found.number) {
                segment.filled = filled;
            }
            if self.media.is_read_only() {
                continue;
            }
            match found.seal {
                Some(seal) if is_last && seal.stopped.is_some() => {
                    self.reopen(found, seal).await?;
                    if seal.stopped.is_some_and(|owned| owned as usize != self.owned.borrow().len())
                    {
                        // It counts segments that another shard may take.
                        self.remove_stop_seal().await?;
                    }
                }
                Some(_) if !found.is_cut => {}
                // Directly behind the last whole record, or where the mark says: the rest does not
                // belong to the log.
                _ => {
                    self.read_last_page(found, filled).await;
                    self.seal_closed(found.number, filled).await?;
                }
            }
        }
        newest.into_iter().for_each(|(key, (_, location))| self.apply(key, location));
        Ok(())
    }

    /// Returns true if a record begins a group at the end that the seal of a stop says.
    async fn goes_on(&self, found: &Found, end: u64) -> Result<bool, Error> {
        if !self.segments.has_checkpoints() || value_offset(end) > self.segments.segment_bytes {
            return Ok(false);
        }
        let header = Buffer::with_room(0, RecordHeader::SIZE, 0);
        let (result, header) = self.media.read(self.segments.at(found.number, end), header).await;
        result?;
        let header = RecordHeader::checked(&header, found.sequence);
        Ok(header.is_some_and(|header| header.kind() != KIND_FINAL_CHECKPOINT))
    }

    /// Reads the bytes of the last page before the end, as far as they are in use, so that the
    /// final checkpoint has the place behind them that groups left for it. Without them it has a
    /// page.
    async fn read_last_page(&self, found: &Found, filled: u64) {
        let length = usize::try_from(filled % PAGE_BYTES).expect("less than a page");
        let at = self.segments.at(found.number, filled - length as u64);
        let (result, page) = self.media.read(at, Buffer::with_room(0, length, 0)).await;
        if self.segments.has_checkpoints() && result.is_ok() {
            let mut page = page.to_vec();
            let sector = usize::try_from(SECTOR_BYTES).expect("small");
            page.resize(length.next_multiple_of(sector), 0);
            self.tail.borrow_mut().page = Some(page);
        }
    }

    /// Opens a segment that was sealed because the drive stopped. It stays sealed if the bytes of
    /// its last page are not what they were, since the next group would write them again.
    async fn reopen(&self, found: &Found, seal: Seal) -> Result<(), Error> {
        let length = usize::try_from(seal.valid_bytes % PAGE_BYTES).expect("less than a page");
        let at = self.segments.at(found.number, seal.valid_bytes - length as u64);
        let (result, page) = self.media.read(at, Buffer::with_room(0, length, 0)).await;
        result?;
        if length > 0 && crc32c::crc32c(&page) != seal.tail_checksum {
            let closed = Seal { stopped: None, tail_checksum: 0, ..seal };
            return Ok(self.write_seal(found.number, found.sequence, &closed).await?);
        }
        if let Some(segment) = self.owned.borrow_mut().get_mut(&found.number) {
            segment.sealed = false;
        }
        self.tail.borrow_mut().page = Some(page.to_vec());
        self.open.set(Some(found.number));
        self.has_stop_seal.set(true);
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
