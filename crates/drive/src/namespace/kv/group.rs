//! [`Group`]: one group commit in preparation, with the places of its records and the bytes to
//! write.
//!
//! Short records are copied one after another into shared buffers, so a group of many records needs
//! few buffers. Long values are not copied. This module performs no I/O.

use csd_reactor::Buffer;

use super::record::{PAGE_BYTES, RECORD_ALIGNMENT, Record, RecordHeader};
use super::shard::{Append, Change, Location};

/// A group takes no more records when it has reached this many bytes.
const GROUP_BYTES: u64 = 8 << 20;
/// A group takes no more records when it has reached this many buffers.
const BUFFERS_MAX: usize = 144;
/// Records up to this size are copied, longer values are written where they are.
const COPIED_BYTES_MAX: usize = 8 << 10;
/// Size of the buffers that short records share.
const SHARED_BYTES: usize = 32 << 10;

/// A group commit.
pub(super) struct Group {
    /// Segment.
    pub segment: u32,
    /// Sequence of the segment.
    pub sequence: u64,
    /// Offset of its first record in the segment, at the start of a page.
    pub start: u64,
    /// Offset of the end of its last record.
    pub end: u64,
    /// Appends with their places.
    pub placed: Vec<(Append, Location)>,
    /// Bytes of values that hosts store with it.
    pub stored: u64,
    buffers: Vec<Buffer>,
}

impl Group {
    /// Makes an empty group.
    pub(super) fn new(segment: u32, sequence: u64, start: u64) -> Self {
        let (placed, buffers) = (Vec::new(), Vec::new());
        Self { segment, sequence, start, end: start, placed, stored: 0, buffers }
    }

    /// Returns true when it takes no more records.
    pub(super) fn is_full(&self) -> bool {
        self.end - self.start >= GROUP_BYTES || self.buffers.len() >= BUFFERS_MAX
    }

    /// Places an append; `new_commit` draws the commit number of a host's change.
    pub(super) fn place(&mut self, mut append: Append, new_commit: impl FnOnce() -> u64) {
        let value = append.value.take();
        let pieces = value.as_deref().unwrap_or(&[]);
        let checksum = pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece));
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let length = u32::try_from(length).expect("values are at most 16 MiB");
        let commit = match &append.change {
            Change::New { .. } => {
                self.stored += u64::from(length);
                new_commit()
            }
            Change::Move { commit, .. } => *commit,
        };
        let record = Record {
            key: append.key(),
            commit,
            value_bytes: value.as_ref().map(|_| length),
            value_checksum: checksum,
            group_page: u32::try_from(self.start / PAGE_BYTES).expect("a segment has few pages"),
        };
        let location =
            Location { segment: self.segment, offset: self.end, value_bytes: record.value_bytes };
        let footprint = usize::try_from(record.footprint()).expect("a record fits its segment");
        self.push(&record.encode(self.sequence), value.unwrap_or_default(), footprint);
        self.end += record.footprint();
        self.placed.push((append, location));
    }

    /// Returns the bytes from `start` on, filled with zeros to the end of the last page, and the
    /// offset of that end. A segment ends with a page.
    pub(super) fn take_buffers(&mut self) -> (Vec<Buffer>, u64) {
        let padded = self.end.next_multiple_of(PAGE_BYTES);
        let padding = usize::try_from(padded - self.end).expect("less than a page");
        self.shared(padding).fill(0);
        (std::mem::take(&mut self.buffers), padded)
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
