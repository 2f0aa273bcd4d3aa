//! [`Hint`]: how far an open segment's log has come, in a sector of its own behind the seal.
//!
//! A hint is written without a sync of its own: it may be older than the log, or lost. Invariants:
//! everything before [`Hint::durable_bytes`] was durable before the hint was written; the hint of a
//! long group is written before the sync that makes the group durable.

use csd_nvme::layout;

use crate::record::{PAGE_BYTES, RECORDS_OFFSET, SECTOR_BYTES, SegmentRange};

/// Offset of a segment's hint.
pub const HINT_OFFSET: u64 = PAGE_BYTES + SECTOR_BYTES;
/// A group of more bytes is announced by a hint. Behind the end of the log recovery looks for a
/// later group so far.
pub const SHORT_GROUP_BYTES: u64 = 32 << 10;

const HINT_MAGIC: u32 = u32::from_le_bytes(*b"CHNT");

layout! {
    /// Hint of an open segment, at its offset 4,608.
    pub struct SegmentHint[64] {
        /// "CHNT".
        magic / set_magic: u32 @ 0,
        /// CRC-32C of the 64 bytes with this field zero.
        checksum / set_checksum: u32 @ 4,
        /// Sequence of the segment.
        sequence / set_sequence: u64 @ 8,
        /// Offset behind the last durable group.
        durable_bytes / set_durable_bytes: u64 @ 16,
        /// Sector of the last durable checkpoint, 0 when there is none.
        checkpoint_sector / set_checkpoint_sector: u32 @ 24,
        /// Length of that checkpoint in bytes.
        checkpoint_bytes / set_checkpoint_bytes: u32 @ 28,
        /// Sector of the last long group, 0 when there is none.
        long_sector / set_long_sector: u32 @ 32,
        /// Length of that group in bytes.
        long_bytes / set_long_bytes: u32 @ 36,
        /// Tag of the drive, where freed segments have a header; else 0.
        drive / set_drive: u32 @ 40,
    }
}

/// A checked hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Offset behind the last durable group.
    pub durable_bytes: u64,
    /// Last durable checkpoint.
    pub checkpoint: Option<SegmentRange>,
    /// Last group of more than [`SHORT_GROUP_BYTES`], durable or about to be written.
    pub long: Option<SegmentRange>,
    /// Tag of the drive ([`Segments::tag`](crate::segments::Segments::tag)).
    pub drive: u32,
}

impl Hint {
    /// Encodes the hint of the segment with this sequence.
    pub fn encode(&self, sequence: u64) -> SegmentHint {
        let mut hint = SegmentHint::zeroed();
        hint.set_magic(HINT_MAGIC).set_sequence(sequence).set_durable_bytes(self.durable_bytes);
        let (sector, bytes) = SegmentRange::fields(self.checkpoint);
        hint.set_checkpoint_sector(sector).set_checkpoint_bytes(bytes);
        let (sector, bytes) = SegmentRange::fields(self.long);
        hint.set_long_sector(sector).set_long_bytes(bytes).set_drive(self.drive);
        let checksum = crc32c::crc32c(hint.as_bytes());
        hint.set_checksum(checksum);
        hint
    }

    /// Decodes the hint of whatever segment it belongs to: its sequence, and the hint.
    pub fn decode_any(bytes: &[u8], segment_bytes: u64) -> Option<(u64, Self)> {
        let sequence = SegmentHint::parse(bytes)?.sequence();
        Some((sequence, Self::decode(bytes, sequence, segment_bytes)?))
    }

    /// Decodes the hint of the segment with this sequence; `None` when it has none.
    pub fn decode(bytes: &[u8], sequence: u64, segment_bytes: u64) -> Option<Self> {
        let hint = SegmentHint::parse(bytes)?;
        let mut unsigned = hint;
        unsigned.set_checksum(0);
        let durable_bytes = hint.durable_bytes();
        let checkpoint = SegmentRange::of(hint.checkpoint_sector(), hint.checkpoint_bytes());
        let valid = hint.magic() == HINT_MAGIC
            && hint.checksum() == crc32c::crc32c(unsigned.as_bytes())
            && hint.sequence() == sequence
            && (RECORDS_OFFSET..=segment_bytes).contains(&durable_bytes)
            && checkpoint.is_none_or(|range| range.end() <= durable_bytes);
        let long = SegmentRange::of(hint.long_sector(), hint.long_bytes());
        valid.then_some(Self { durable_bytes, checkpoint, long, drive: hint.drive() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_round_trip_and_every_bit_is_guarded() {
        let checkpoint = Some(SegmentRange { offset: 8192, bytes: 640 });
        let long = Some(SegmentRange { offset: 10240, bytes: 40_960 });
        let hint = Hint { durable_bytes: 51_200, checkpoint, long, drive: 7 };
        let mut bytes = *hint.encode(4).as_bytes();
        assert_eq!(Hint::decode(&bytes, 4, 1 << 20), Some(hint));
        assert_eq!(Hint::decode(&bytes, 5, 1 << 20), None, "another life");
        assert_eq!(Hint::decode(&bytes, 4, 51_199), None, "beyond the segment");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Hint::decode(&bytes, 4, 1 << 20), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
