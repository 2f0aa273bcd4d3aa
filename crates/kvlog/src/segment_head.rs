//! Headers and seals of segments.
//!
//! `docs/internals/format.md` draws them. Invariant: each lies in a sector of its own, which does
//! not tear, and has a checksum over all its bytes.

use csd_nvme::layout;

use crate::record::{RECORDS_OFFSET, SECTOR_BYTES, SegmentRange};

const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"CSEG");
/// Shard of the header of a freed segment.
const FREED: u32 = u32::MAX;
const SEAL_MAGIC: u32 = u32::from_le_bytes(*b"CSEA");

layout! {
    /// Header of a segment, at its offset 0; a segment without a valid one is free.
    pub struct SegmentHeader[64] {
        /// "CSEG".
        magic / set_magic: u32 @ 0,
        /// CRC-32C of the 64 bytes with this field zero.
        checksum / set_checksum: u32 @ 4,
        /// Identifier of the drive.
        uuid / set_uuid: [16] @ 8,
        /// Sequence of the segment: unique, rising over the drive's life.
        sequence / set_sequence: u64 @ 24,
        /// Shard that owns the segment.
        shard / set_shard: u32 @ 32,
    }
}

layout! {
    /// Seal of a segment, at its offset 4,096: written when it takes no more records.
    pub struct SegmentSeal[64] {
        /// "CSEA".
        magic / set_magic: u32 @ 0,
        /// CRC-32C of the 64 bytes with this field zero.
        checksum / set_checksum: u32 @ 4,
        /// Sequence of the segment.
        sequence / set_sequence: u64 @ 8,
        /// Offset behind the last byte that was acknowledged.
        valid_bytes / set_valid_bytes: u64 @ 16,
        /// 1 when the drive was stopped with this segment open: no record was written behind
        /// `valid_bytes`, so the segment may be opened again.
        stopped / set_stopped: u32 @ 24,
        /// Segments that the shard owned then, this one included.
        owned / set_owned: u32 @ 28,
        /// Sector of the final checkpoint, 0 when there is none.
        checkpoint_sector / set_checkpoint_sector: u32 @ 32,
        /// Length of the final checkpoint in bytes.
        checkpoint_bytes / set_checkpoint_bytes: u32 @ 36,
        /// CRC-32C of the last page's bytes before `valid_bytes`, when the drive was stopped.
        tail_checksum / set_tail_checksum: u32 @ 40,
        /// Tag of the drive, where freed segments have a header; else 0.
        drive / set_drive: u32 @ 44,
    }
}

impl SegmentHeader {
    /// Encodes the header of a segment.
    pub fn encode(uuid: &[u8; 16], sequence: u64, shard: u32) -> Self {
        let mut header = Self::zeroed();
        header.set_magic(SEGMENT_MAGIC).set_uuid(uuid).set_sequence(sequence).set_shard(shard);
        let checksum = crc32c::crc32c(header.as_bytes());
        header.set_checksum(checksum);
        header
    }

    /// Encodes the header of a segment that is freed; its sequence was this.
    pub fn freed(uuid: &[u8; 16], sequence: u64) -> Self {
        Self::encode(uuid, sequence, FREED)
    }

    /// Decodes a segment's first bytes on the drive with this identifier.
    pub fn decode(bytes: &[u8], uuid: &[u8; 16]) -> Head {
        let Some(header) = Self::parse(bytes) else { return Head::Free { ended: 0 } };
        let mut unsigned = header;
        unsigned.set_checksum(0);
        let is_ours = header.uuid() == *uuid;
        let is_header = header.magic() == SEGMENT_MAGIC;
        let holds = is_header && header.checksum() == crc32c::crc32c(unsigned.as_bytes());
        match (holds, is_ours) {
            (true, true) if header.shard() == FREED => Head::Free { ended: header.sequence() },
            (true, true) => Head::Used { sequence: header.sequence(), shard: header.shard() },
            // An intact header of another drive is from before this medium was formatted.
            (true, false) => Head::Free { ended: 0 },
            (false, _) if is_ours || is_header => Head::Damaged,
            (false, _) => Head::Free { ended: 0 },
        }
    }
}

/// State of a segment, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Not in use, as it seems.
    Free {
        /// Sequence of its last use, if its header says so; else 0.
        ended: u64,
    },
    /// In use.
    Used {
        /// Sequence of the segment.
        sequence: u64,
        /// Shard that owns it.
        shard: u32,
    },
    /// There was a header, and its checksum does not hold. A header lies within one sector, so a
    /// power cut cannot leave this.
    Damaged,
}

impl SegmentSeal {
    /// Decodes the seal of whatever segment it belongs to: its sequence, and the seal.
    pub fn decode_any(bytes: &[u8], segment_bytes: u64) -> Option<(u64, Seal)> {
        let sequence = Self::parse(bytes)?.sequence();
        Some((sequence, Self::decode(bytes, sequence, segment_bytes)?))
    }

    /// Decodes the seal of the segment with this sequence; `None` when it is not sealed.
    pub fn decode(bytes: &[u8], sequence: u64, segment_bytes: u64) -> Option<Seal> {
        let seal = Self::parse(bytes)?;
        let mut unsigned = seal;
        unsigned.set_checksum(0);
        let valid = seal.magic() == SEAL_MAGIC
            && seal.checksum() == crc32c::crc32c(unsigned.as_bytes())
            && seal.sequence() == sequence
            && (RECORDS_OFFSET..=segment_bytes).contains(&seal.valid_bytes());
        valid.then(|| Seal {
            valid_bytes: seal.valid_bytes(),
            // Groups start at sectors, the next one too.
            stopped: (seal.stopped() == 1 && seal.valid_bytes().is_multiple_of(SECTOR_BYTES))
                .then_some(seal.owned()),
            checkpoint: SegmentRange::of(seal.checkpoint_sector(), seal.checkpoint_bytes())
                .filter(|range| range.end() <= segment_bytes),
            tail_checksum: seal.tail_checksum(),
            drive: seal.drive(),
        })
    }
}

/// A checked seal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal {
    /// Offset behind the last acknowledged byte.
    pub valid_bytes: u64,
    /// Segments of the shard, when the drive stopped with this one open.
    pub stopped: Option<u32>,
    /// Final checkpoint.
    pub checkpoint: Option<SegmentRange>,
    /// CRC-32C of the last page's bytes before `valid_bytes`, when the drive stopped.
    pub tail_checksum: u32,
    /// Tag of the drive ([`Segments::tag`](crate::segments::Segments::tag)).
    pub drive: u32,
}

impl Seal {
    /// Encodes the seal of the segment with this sequence.
    pub fn encode(&self, sequence: u64) -> SegmentSeal {
        let mut seal = SegmentSeal::zeroed();
        seal.set_magic(SEAL_MAGIC).set_sequence(sequence).set_valid_bytes(self.valid_bytes);
        seal.set_stopped(self.stopped.is_some().into()).set_owned(self.stopped.unwrap_or(0));
        let (sector, bytes) = SegmentRange::fields(self.checkpoint);
        seal.set_checkpoint_sector(sector).set_checkpoint_bytes(bytes);
        seal.set_tail_checksum(self.tail_checksum).set_drive(self.drive);
        let checksum = crc32c::crc32c(seal.as_bytes());
        seal.set_checksum(checksum);
        seal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_seals_belong_to_one_life_of_one_drive() {
        let header = SegmentHeader::encode(&[7; 16], 5, 3);
        let used = Head::Used { sequence: 5, shard: 3 };
        assert_eq!(SegmentHeader::decode(header.as_bytes(), &[7; 16]), used);
        let free = |ended| Head::Free { ended };
        assert_eq!(SegmentHeader::decode(header.as_bytes(), &[8; 16]), free(0));
        assert_eq!(SegmentHeader::decode(&[0; 64], &[8; 16]), free(0));
        let freed = SegmentHeader::freed(&[7; 16], 5);
        assert_eq!(SegmentHeader::decode(freed.as_bytes(), &[7; 16]), free(5));
        let open = Seal { valid_bytes: 12288, ..Seal::default() };
        let seal = open.encode(5);
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 5, 1 << 20), Some(open));
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 6, 1 << 20), None);
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 5, 8192), None);
        let checkpoint = Some(SegmentRange { offset: 12288, bytes: 1024 });
        let stopped = Seal { stopped: Some(4), checkpoint, tail_checksum: 7, ..open };
        let seal = stopped.encode(5);
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 5, 1 << 20), Some(stopped));
    }

    #[test]
    fn every_flipped_bit_of_a_segment_header_is_damage() {
        let header = SegmentHeader::encode(&[7; 16], 5, 3);
        for bit in 0..64 * 8 {
            let mut bytes = *header.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes, &[7; 16]), Head::Damaged, "bit {bit}");
        }
    }
}
