//! [`SegmentTail`]: the end of a shard's open segment, with what is not yet in a checkpoint.
//!
//! Invariant: it changes only when a group is durable. It does no I/O.

use crate::checkpoint::{Checkpoint, ENTRY_BYTES_MAX, Listing};
use crate::hint::Hint;
use crate::record::{PAGE_BYTES, RECORDS_OFFSET, RecordHeader, SECTOR_BYTES, SegmentRange};

/// Number of checkpoints of a segment of short records.
const CHECKPOINTS: u64 = 16;
/// Least bytes of records between two checkpoints.
const BETWEEN_BYTES_MIN: u64 = 32 << 10;

/// Longest list of records for which a checkpoint is held back, bytes. A longer one would keep its
/// core for too long when it is written.
const HELD_LIST_BYTES_MAX: usize = 256 << 10;

/// End of the open segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentTail {
    /// Bytes of the last page before the end of the log, which the next group's write repeats.
    /// `None` when they are not known: the next write begins a page.
    pub(crate) page: Option<Vec<u8>>,
    /// Records that no checkpoint lists.
    pub(crate) listing: Listing,
    /// Last checkpoint.
    pub(crate) checkpoint: Option<SegmentRange>,
    /// Last long group.
    pub(crate) long: Option<SegmentRange>,
    /// True when the hint on the medium does not say all of this.
    pub(crate) hint_due: bool,
    /// True while the next group begins with no checkpoint, although one may be due.
    pub(crate) is_held: bool,
    /// Hint of a segment that a power cut left open. It stays until the seal is durable: it may
    /// name a checkpoint that is damaged.
    pub(crate) kept: Option<Hint>,
}

/// Returns the bytes of a final checkpoint with a list of this length.
pub(crate) fn final_bytes(list_bytes: u64) -> u64 {
    (RecordHeader::SIZE as u64 + list_bytes).next_multiple_of(SECTOR_BYTES)
}

impl SegmentTail {
    /// Makes the tail of a segment without records.
    pub(crate) fn empty() -> Self {
        Self { page: Some(Vec::new()), ..Self::default() }
    }

    /// Takes over what a group has made durable: its records, the last page, a checkpoint with
    /// which it began, and its range if it was announced.
    pub(crate) fn took(
        &mut self,
        listing: Listing,
        page: Vec<u8>,
        checkpoint: Option<SegmentRange>,
        long: Option<SegmentRange>,
    ) {
        self.page = Some(page);
        self.hint_due |= checkpoint.is_some() || long.is_some();
        if checkpoint.is_none() {
            return self.listing.extend(listing);
        }
        (self.checkpoint, self.listing) = (checkpoint, listing);
    }

    /// Returns true when the next group begins with a checkpoint.
    pub(crate) fn checkpoint_is_due(&self, filled: u64, segment_bytes: u64) -> bool {
        let listed = self.checkpoint.map_or(RECORDS_OFFSET, |range| range.end());
        let between = (segment_bytes / CHECKPOINTS).max(BETWEEN_BYTES_MIN);
        let list_bytes = self.listing.bytes.len();
        let is_held = self.is_held && list_bytes <= HELD_LIST_BYTES_MAX;
        list_bytes > 0 && !is_held && filled - listed >= between
    }

    /// Returns the checkpoint with which a group at this offset begins.
    pub(crate) fn next_checkpoint(&self, offset: u64) -> Checkpoint {
        Checkpoint::new(&self.listing.bytes, offset, self.checkpoint, false)
    }

    /// Returns the end of a group at `filled` that has one record of `footprint` bytes, together
    /// with the final checkpoint that must fit behind it.
    pub(crate) fn end_with(&self, footprint: u64, filled: u64, segment_bytes: u64) -> u64 {
        let list = self.listing.bytes.len() as u64;
        let (before, list) = match self.checkpoint_is_due(filled, segment_bytes) {
            true => (self.next_checkpoint(filled).footprint(), 0),
            false => (0, list),
        };
        (filled + before + footprint).next_multiple_of(SECTOR_BYTES)
            + final_bytes(list + ENTRY_BYTES_MAX)
    }

    /// Returns the range of a final checkpoint behind the records.
    pub(crate) fn final_range(&self, valid_bytes: u64) -> SegmentRange {
        let unit = if self.page.is_some() { SECTOR_BYTES } else { PAGE_BYTES };
        let bytes = RecordHeader::SIZE as u64 + self.listing.bytes.len() as u64;
        SegmentRange { offset: valid_bytes.next_multiple_of(unit), bytes }
    }

    /// Returns the hint that says all of this.
    pub(crate) fn hint(&self, durable_bytes: u64, drive: u32) -> Hint {
        let now = Hint { durable_bytes, checkpoint: self.checkpoint, long: self.long, drive };
        self.kept.unwrap_or(now)
    }
}
