//! [`Group`]: one group commit in preparation, with the places of its records and the bytes to
//! write.
//!
//! A group begins at a sector (in version 1 at a page), and is written in whole pages: the bytes
//! before it in its page are written again as they are. Short records are copied one after another
//! into shared buffers, so a group of many records needs few buffers. Long values are not copied.
//! This module performs no I/O.

use std::collections::BTreeSet;

use csd_reactor::{Buffer, worked};

use crate::checkpoint::{Checkpoint, ENTRY_BYTES_MAX, Listing};
use crate::hint::SHORT_GROUP_BYTES;
use crate::record::{
    Content, EntryKey, PAGE_BYTES, RECORD_ALIGNMENT, Record, RecordHeader, SegmentRange,
};
use crate::segment_tail::{SegmentTail, final_bytes};
use crate::segments::Segments;
use crate::shard::{Append, Change, Location};

/// A group takes no more records when it has reached this many bytes.
const GROUP_BYTES: u64 = 8 << 20;
/// A group takes no more records when it has reached this many buffers.
const BUFFERS_MAX: usize = 144;
/// A group takes no more records when so many bytes of it have been copied, which is done at once.
const COPIED_BYTES: u64 = 1 << 20;
/// Records up to this size are copied, longer values are written where they are.
const COPIED_BYTES_MAX: usize = 8 << 10;
/// Size of the buffers that short records share.
const SHARED_BYTES: usize = 32 << 10;

/// A group commit.
pub(crate) struct Group {
    /// Segment.
    pub segment: u32,
    /// Sequence of the segment.
    pub sequence: u64,
    /// Offset of its first record in the segment, at the start of a sector.
    pub start: u64,
    /// Offset of the end of its last record.
    pub end: u64,
    /// Appends with their places.
    pub placed: Vec<(Append, Location)>,
    /// Moves of records that a host's change in this group supersedes: they are not written.
    pub superseded: Vec<Append>,
    /// Bytes of values that hosts store with it.
    pub stored: u64,
    /// Checkpoint with which it begins.
    pub checkpoint: Option<SegmentRange>,
    /// List of its records, for the next checkpoint.
    pub listing: Listing,
    // Bytes of the page before its start, which are written again as they are.
    repeated: u64,
    // Bytes of the list that the next checkpoint begins with.
    listed: u64,
    changed: BTreeSet<EntryKey>,
    segment_bytes: u64,
    unit: u64,
    has_checkpoints: bool,
    // Bytes of records that were copied.
    copied: u64,
    buffers: Vec<Buffer>,
}

impl Group {
    /// Makes an empty group at `start`, the end of the log.
    pub(crate) fn new(
        segments: &Segments,
        (segment, sequence, start): (u32, u64, u64),
        tail: &SegmentTail,
    ) -> Self {
        let page = tail.page.as_deref().unwrap_or(&[]);
        let mut group = Self {
            segment,
            sequence,
            start,
            end: start,
            placed: Vec::new(),
            superseded: Vec::new(),
            stored: 0,
            checkpoint: None,
            listing: tail.listing.rest(),
            repeated: page.len() as u64,
            listed: tail.listing.bytes.len() as u64,
            changed: BTreeSet::new(),
            segment_bytes: segments.segment_bytes,
            unit: segments.group_unit(),
            has_checkpoints: segments.has_checkpoints(),
            copied: 0,
            buffers: Vec::new(),
        };
        group.shared(page.len()).copy_from_slice(page);
        if group.has_checkpoints && tail.checkpoint_is_due(start, segments.segment_bytes) {
            group.push_checkpoint(&tail.next_checkpoint(start), &tail.listing.bytes);
        }
        group
    }

    fn push_checkpoint(&mut self, checkpoint: &Checkpoint, list: &[u8]) {
        let header = checkpoint.encode(self.sequence);
        let footprint = usize::try_from(checkpoint.footprint()).expect("it fits its segment");
        self.push(&header, vec![Buffer::from_slice(list)], footprint);
        self.checkpoint = Some(SegmentRange { offset: self.end, bytes: checkpoint.footprint() });
        self.end += checkpoint.footprint();
        (self.listing, self.listed) = (Listing::default(), 0);
    }

    /// Returns true when it takes no more records.
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start >= GROUP_BYTES
            || self.copied >= COPIED_BYTES
            || self.buffers.len() >= BUFFERS_MAX
    }

    /// Returns true when one more record fits the segment, with the final checkpoint behind it.
    pub(crate) fn fits(&self, append: &Append) -> bool {
        let end = (self.end + append.footprint()).next_multiple_of(self.unit);
        let list = self.listed + self.listing.bytes.len() as u64 + ENTRY_BYTES_MAX;
        end + if self.has_checkpoints { final_bytes(list) } else { 0 } <= self.segment_bytes
    }

    /// Returns true when a host's change of this key is in the group.
    pub(crate) fn changes(&self, key: &EntryKey) -> bool {
        self.changed.contains(key)
    }

    /// Returns its range if it must be announced.
    pub(crate) fn long(&self) -> Option<SegmentRange> {
        let bytes = self.filled() - self.start;
        let is_long = self.has_checkpoints && bytes > SHORT_GROUP_BYTES;
        is_long.then_some(SegmentRange { offset: self.start, bytes })
    }

    /// Returns the offset at which the next group begins.
    pub(crate) fn filled(&self) -> u64 {
        self.end.next_multiple_of(self.unit)
    }

    /// Places an append; `new_commit` draws the commit number of a host's change.
    pub(crate) fn place(&mut self, mut append: Append, new_commit: impl FnOnce() -> u64) {
        let value = append.value.take();
        let pieces = value.as_deref().unwrap_or(&[]);
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let length = u32::try_from(length).expect("values are at most 16 MiB");
        let commit = match &append.change {
            Change::New { .. } => {
                self.stored += u64::from(length);
                self.changed.insert(append.key());
                new_commit()
            }
            Change::Move { commit, .. } => *commit,
        };
        let record = Record {
            key: append.key(),
            commit,
            content: match &value {
                None => Content::Tombstone,
                Some(_) if append.is_indirect => Content::Indirect(length),
                Some(_) => Content::Value(length),
            },
            value_checksum: append.checksum,
            group: u32::try_from(self.start / self.unit).expect("a segment has few sectors"),
        };
        let location =
            Location { segment: self.segment, offset: self.end, content: record.content };
        let footprint = usize::try_from(record.footprint()).expect("a record fits its segment");
        self.push(&record.encode(self.sequence), value.unwrap_or_default(), footprint);
        if self.has_checkpoints {
            self.listing.add(self.end, &record);
        }
        self.end += record.footprint();
        self.placed.push((append, location));
    }

    /// Returns the offset of its first page, and what is written from there on: whole pages, the
    /// bytes before the group's start as they are, zeros behind its end.
    pub(crate) fn take_buffers(&mut self) -> (u64, Vec<Buffer>) {
        let padded = self.end.next_multiple_of(PAGE_BYTES);
        let padding = usize::try_from(padded - self.end).expect("less than a page");
        self.shared(padding).fill(0);
        (self.start - self.repeated, std::mem::take(&mut self.buffers))
    }

    fn push(&mut self, header: &RecordHeader, value: Vec<Buffer>, footprint: usize) {
        let length: usize = value.iter().map(|piece| piece.len()).sum();
        let padding = footprint - RecordHeader::SIZE - length;
        debug_assert!((padding as u64) < RECORD_ALIGNMENT);
        if footprint > COPIED_BYTES_MAX {
            self.shared(RecordHeader::SIZE).copy_from_slice(header.as_bytes());
            self.buffers.extend(value);
            self.shared(padding).fill(0);
            return;
        }
        self.copied += footprint as u64;
        worked(footprint as u64);
        let record = self.shared(footprint);
        let (head, mut rest) = record.split_at_mut(RecordHeader::SIZE);
        head.copy_from_slice(header.as_bytes());
        for piece in &value {
            let (to, after) = rest.split_at_mut(piece.len());
            to.copy_from_slice(piece);
            rest = after;
        }
        rest.fill(0);
    }

    /// Returns the next `bytes` bytes to write, in the last buffer if they fit there.
    fn shared(&mut self, bytes: usize) -> &mut [u8] {
        if bytes == 0 {
            return &mut [];
        }
        if self.buffers.last().is_none_or(|last| last.tailroom() < bytes) {
            self.buffers.push(Buffer::with_room(0, 0, SHARED_BYTES));
        }
        self.buffers.last_mut().expect("just made").append(bytes)
    }
}

/// Returns the first `length` bytes of the last page of what is written.
pub(crate) fn last_page(buffers: &[Buffer], length: u64) -> Vec<u8> {
    let page = usize::try_from(PAGE_BYTES).expect("a page");
    let mut pieces: Vec<&[u8]> = Vec::new();
    let mut missing = page;
    for buffer in buffers.iter().rev() {
        let piece = &buffer[buffer.len() - buffer.len().min(missing)..];
        missing -= piece.len();
        pieces.push(piece);
    }
    let mut bytes = pieces.into_iter().rev().collect::<Vec<_>>().concat();
    bytes.truncate(usize::try_from(length).expect("less than a page"));
    bytes
}
