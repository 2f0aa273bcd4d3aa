//! The kv log's on-media structures: segment header, seal, and record header.
//!
//! `docs/internals/format.md` draws them. Invariants: every structure has a checksum over all its
//! bytes and the sequence of its segment, so that bytes of an earlier use of the segment are not
//! taken for this one's; no length is used before its checksum held.

use csd_nvme::kv::Key;
use csd_nvme::layout;

/// Records start at multiples of this.
pub const RECORD_ALIGNMENT: u64 = 64;
/// Group commits start at multiples of this, so that no acknowledged byte is written again.
pub const PAGE_BYTES: u64 = 4096;
/// Offset of the first record in a segment: behind the header's and the seal's page.
pub const RECORDS_OFFSET: u64 = 2 * PAGE_BYTES;

/// Longest value of any drive.
const VALUE_BYTES_MAX: u32 = 16 << 20;

const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"CSEG");
const SEAL_MAGIC: u32 = u32::from_le_bytes(*b"CSEA");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"CREC");

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
        /// 1 when the drive was stopped with this segment open: nothing was written behind
        /// `valid_bytes`, so the segment may be opened again.
        stopped / set_stopped: u32 @ 24,
        /// Segments that the shard owned then, this one included.
        owned / set_owned: u32 @ 28,
    }
}

layout! {
    /// Header of a record; the value follows at once.
    pub struct RecordHeader[64] {
        /// "CREC".
        magic / set_magic: u32 @ 0,
        /// CRC-32C of the 64 bytes with this field zero.
        checksum / set_checksum: u32 @ 4,
        /// Sequence of the segment.
        sequence / set_sequence: u64 @ 8,
        /// Commit number: of two records of a key the higher one counts.
        commit / set_commit: u64 @ 16,
        /// [`KIND_VALUE`] or [`KIND_TOMBSTONE`]; other kinds are for later versions.
        kind / set_kind: u8 @ 24,
        /// Length of the key in bytes.
        key_length / set_key_length: u8 @ 25,
        /// Namespace id.
        nsid / set_nsid: u16 @ 26,
        /// Length of the value in bytes.
        value_bytes / set_value_bytes: u32 @ 28,
        /// Key, zero-padded.
        key / set_key: [16] @ 32,
        /// CRC-32C of the value.
        value_checksum / set_value_checksum: u32 @ 48,
        /// First page of the record's group, in pages from the start of the segment; 0 in records
        /// that were written before this field existed.
        group_page / set_group_page: u32 @ 52,
    }
}

/// A value, inline behind its header.
pub const KIND_VALUE: u8 = 1;
/// The key was deleted.
pub const KIND_TOMBSTONE: u8 = 2;

/// Key of an index entry: namespace, then key, which gives List its order.
pub type EntryKey = (u16, Key);

/// A checked record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Namespace and key.
    pub key: EntryKey,
    /// Commit number.
    pub commit: u64,
    /// Value length in bytes, `None` for a tombstone.
    pub value_bytes: Option<u32>,
    /// CRC-32C of the value.
    pub value_checksum: u32,
    /// First page of its group in the segment, 0 when unknown.
    pub group_page: u32,
}

/// Returns the offset of a record's value, from the offset of the record.
pub const fn value_offset(record_offset: u64) -> u64 {
    record_offset + RecordHeader::SIZE as u64
}

/// Returns the bytes that a record of a value of this length takes in its segment.
pub const fn footprint(value_bytes: u64) -> u64 {
    (RecordHeader::SIZE as u64 + value_bytes).next_multiple_of(RECORD_ALIGNMENT)
}

impl Record {
    /// Returns the bytes that the record takes in its segment.
    pub fn footprint(&self) -> u64 {
        footprint(u64::from(self.value_bytes.unwrap_or(0)))
    }

    /// Encodes the record's header for the segment with this sequence.
    pub fn encode(&self, sequence: u64) -> RecordHeader {
        let (nsid, key) = &self.key;
        let mut header = RecordHeader::zeroed();
        header.set_magic(RECORD_MAGIC).set_sequence(sequence).set_commit(self.commit);
        header.set_kind(if self.value_bytes.is_some() { KIND_VALUE } else { KIND_TOMBSTONE });
        let key_length = u8::try_from(key.as_bytes().len()).expect("a key has at most 16 bytes");
        header.set_key_length(key_length).set_key(key.padded()).set_nsid(*nsid);
        header.set_value_bytes(self.value_bytes.unwrap_or(0));
        header.set_value_checksum(self.value_checksum).set_group_page(self.group_page);
        let checksum = crc32c::crc32c(header.as_bytes());
        header.set_checksum(checksum);
        header
    }

    /// Decodes the header of a record in the segment with this sequence; `None` when it is no valid
    /// header. `room` is the number of bytes from the record's start to the end of the segment.
    pub fn decode(bytes: &[u8], sequence: u64, room: u64) -> Option<Self> {
        let header = RecordHeader::parse(bytes)?;
        let mut unsigned = header;
        unsigned.set_checksum(0);
        if header.magic() != RECORD_MAGIC
            || header.checksum() != crc32c::crc32c(unsigned.as_bytes())
            || header.sequence() != sequence
        {
            return None;
        }
        let key = header.key();
        let key = Key::new(key.get(..usize::from(header.key_length()))?).ok()?;
        let value_bytes = match header.kind() {
            KIND_VALUE => Some(header.value_bytes()),
            KIND_TOMBSTONE => None,
            _ => return None,
        };
        if header.value_bytes() > VALUE_BYTES_MAX {
            return None;
        }
        let record = Self {
            key: (header.nsid(), key),
            commit: header.commit(),
            value_bytes,
            value_checksum: header.value_checksum(),
            group_page: header.group_page(),
        };
        (record.footprint() <= room).then_some(record)
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

    /// Decodes a segment's first bytes on the drive with this identifier.
    pub fn decode(bytes: &[u8], uuid: &[u8; 16]) -> Head {
        let Some(header) = Self::parse(bytes) else { return Head::Free };
        let mut unsigned = header;
        unsigned.set_checksum(0);
        let is_ours = header.uuid() == *uuid;
        let is_header = header.magic() == SEGMENT_MAGIC;
        let holds = is_header && header.checksum() == crc32c::crc32c(unsigned.as_bytes());
        match (holds, is_ours) {
            (true, true) => Head::Used { sequence: header.sequence(), shard: header.shard() },
            // An intact header of another drive is from before this medium was formatted.
            (true, false) => Head::Free,
            (false, _) if is_ours || is_header => Head::Damaged,
            (false, _) => Head::Free,
        }
    }
}

/// State of a segment, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// No header of this drive.
    Free,
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
    /// Encodes the seal of a segment; `stopped` is the number of the shard's segments when the
    /// drive stops.
    pub fn encode(sequence: u64, valid_bytes: u64, stopped: Option<u32>) -> Self {
        let mut seal = Self::zeroed();
        seal.set_magic(SEAL_MAGIC).set_sequence(sequence).set_valid_bytes(valid_bytes);
        seal.set_stopped(stopped.is_some().into()).set_owned(stopped.unwrap_or(0));
        let checksum = crc32c::crc32c(seal.as_bytes());
        seal.set_checksum(checksum);
        seal
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
            // Groups start at pages, the next one too.
            stopped: (seal.stopped() == 1 && seal.valid_bytes().is_multiple_of(PAGE_BYTES))
                .then_some(seal.owned()),
        })
    }
}

/// A checked seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Offset behind the last acknowledged byte.
    pub valid_bytes: u64,
    /// Segments of the shard, when the drive stopped with this one open.
    pub stopped: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let key = Key::new(b"a key").unwrap();
        Record {
            key: (2, key),
            commit: 9,
            value_bytes: Some(100),
            value_checksum: 0xABCD,
            group_page: 3,
        }
    }

    #[test]
    fn records_round_trip_and_every_bit_is_guarded() {
        let header = record().encode(77);
        assert_eq!(Record::decode(header.as_bytes(), 77, 4096), Some(record()));
        assert_eq!(Record::decode(header.as_bytes(), 78, 4096), None, "another life");
        assert_eq!(Record::decode(header.as_bytes(), 77, 191), None, "beyond the segment");
        let decodes = |bytes| {
            let long = Record { value_bytes: Some(bytes), ..record() };
            Record::decode(long.encode(77).as_bytes(), 77, u64::MAX).is_some()
        };
        assert!(decodes(VALUE_BYTES_MAX) && !decodes(VALUE_BYTES_MAX + 1), "beyond any drive's");
        for bit in 0..64 * 8 {
            let mut bytes = *header.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&bytes, 77, 4096), None, "bit {bit}");
        }
    }

    #[test]
    fn tombstones_have_no_value() {
        let tombstone = Record { value_bytes: None, value_checksum: 0, ..record() };
        let header = tombstone.encode(1);
        assert_eq!(Record::decode(header.as_bytes(), 1, 64), Some(tombstone));
        assert_eq!(tombstone.footprint(), 64);
    }

    #[test]
    fn headers_and_seals_belong_to_one_life_of_one_drive() {
        let header = SegmentHeader::encode(&[7; 16], 5, 3);
        let used = Head::Used { sequence: 5, shard: 3 };
        assert_eq!(SegmentHeader::decode(header.as_bytes(), &[7; 16]), used);
        assert_eq!(SegmentHeader::decode(header.as_bytes(), &[8; 16]), Head::Free);
        assert_eq!(SegmentHeader::decode(&[0; 64], &[8; 16]), Head::Free);
        let seal = SegmentSeal::encode(5, 12288, None);
        let open = Seal { valid_bytes: 12288, stopped: None };
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 5, 1 << 20), Some(open));
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 6, 1 << 20), None);
        assert_eq!(SegmentSeal::decode(seal.as_bytes(), 5, 8192), None);
        let seal = SegmentSeal::encode(5, 12288, Some(4));
        let stopped = Seal { valid_bytes: 12288, stopped: Some(4) };
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
