//! The kv log's records: their headers, and units of places in a segment.
//!
//! `docs/internals/format.md` draws them. Invariants: a header has a checksum over all its bytes
//! and the sequence of its segment, so that bytes of an earlier use of the segment are not taken
//! for this one's; no length is used before its checksum held.

use csd_nvme::kv::Key;
use csd_nvme::layout;

/// Records start at multiples of this.
pub const RECORD_ALIGNMENT: u64 = 64;
/// Unit of writes. In version 1 group commits start at multiples of this.
pub const PAGE_BYTES: u64 = 4096;
/// Group commits start at multiples of this from version 2 on: a write tears at sectors, so no
/// acknowledged sector gets other bytes.
pub const SECTOR_BYTES: u64 = 512;
/// Offset of the first record in a segment: behind the header's and the seal's page.
pub const RECORDS_OFFSET: u64 = 2 * PAGE_BYTES;

/// Longest value of any drive.
const VALUE_BYTES_MAX: u32 = 16 << 20;

const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"CREC");

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
        /// [`KIND_VALUE`], [`KIND_TOMBSTONE`], [`KIND_INDIRECT`], [`KIND_CHECKPOINT`] or
        /// [`KIND_FINAL_CHECKPOINT`]; other kinds are for later versions.
        kind / set_kind: u8 @ 24,
        /// Length of the key in bytes.
        key_length / set_key_length: u8 @ 25,
        /// Namespace id.
        nsid / set_nsid: u16 @ 26,
        /// Length of the bytes behind the header, of every kind.
        value_bytes / set_value_bytes: u32 @ 28,
        /// Key, zero-padded.
        key / set_key: [16] @ 32,
        /// CRC-32C of the value.
        value_checksum / set_value_checksum: u32 @ 48,
        /// Start of the record's group, in pages (version 1) or sectors (from version 2 on) from
        /// the start of the segment; 0 in records from before this field existed.
        group / set_group: u32 @ 52,
    }
}

/// A value, inline behind its header.
pub const KIND_VALUE: u8 = 1;
/// The key was deleted.
pub const KIND_TOMBSTONE: u8 = 2;
/// A value of which parts are stored elsewhere: behind the header is a list of them
/// ([`crate::parts`]).
pub const KIND_INDIRECT: u8 = 3;
/// A list of the records since the checkpoint before, at the start of a group.
pub const KIND_CHECKPOINT: u8 = 4;
/// The last checkpoint of a segment, behind its records, where only the seal leads.
pub const KIND_FINAL_CHECKPOINT: u8 = 5;

/// Key of an index entry: namespace, then key, which gives List its order.
pub type EntryKey = (u16, Key);

/// Content of a record, with the length of what is behind its header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The key was deleted; nothing is behind the header.
    Tombstone,
    /// The value.
    Value(u32),
    /// A list of the value's parts.
    Indirect(u32),
}

impl Content {
    /// Returns the length of what is behind the header in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Tombstone => 0,
            Self::Value(bytes) | Self::Indirect(bytes) => bytes,
        }
    }

    /// Returns true if the key has a value.
    pub const fn is_value(self) -> bool {
        !matches!(self, Self::Tombstone)
    }

    /// Returns true for a list of parts.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Indirect(_))
    }

    /// Returns the bytes that a record takes in its segment.
    pub const fn footprint(self) -> u64 {
        footprint(self.bytes() as u64)
    }

    /// Returns the kind of the record.
    const fn kind(self) -> u8 {
        match self {
            Self::Tombstone => KIND_TOMBSTONE,
            Self::Value(_) => KIND_VALUE,
            Self::Indirect(_) => KIND_INDIRECT,
        }
    }
}

/// A checked record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Namespace and key.
    pub key: EntryKey,
    /// Commit number.
    pub commit: u64,
    /// Content behind the header.
    pub content: Content,
    /// CRC-32C of that.
    pub value_checksum: u32,
    /// Start of its group, in pages (version 1) or sectors; 0 when unknown.
    pub group: u32,
}

/// A range of bytes of a segment that begins at a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRange {
    /// Offset in the segment.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl SegmentRange {
    /// Makes a range from its fields on the medium; `None` for zeros.
    pub fn of(sector: u32, bytes: u32) -> Option<Self> {
        let range = Self { offset: u64::from(sector) * SECTOR_BYTES, bytes: u64::from(bytes) };
        (sector > 0 && bytes as usize >= RecordHeader::SIZE).then_some(range)
    }

    /// Returns the fields on the medium.
    pub fn fields(range: Option<Self>) -> (u32, u32) {
        let field = |number: u64| u32::try_from(number).expect("a segment is shorter than 4 GiB");
        range.map_or((0, 0), |range| (field(range.offset / SECTOR_BYTES), field(range.bytes)))
    }

    /// Returns the offset behind it.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
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
        self.content.footprint()
    }

    /// Encodes the record's header for the segment with this sequence.
    pub fn encode(&self, sequence: u64) -> RecordHeader {
        let (nsid, key) = &self.key;
        let mut header = RecordHeader::zeroed();
        header.set_commit(self.commit);
        header.set_kind(self.content.kind());
        let key_length = u8::try_from(key.as_bytes().len()).expect("a key has at most 16 bytes");
        header.set_key_length(key_length).set_key(key.padded()).set_nsid(*nsid);
        header.set_value_bytes(self.content.bytes());
        header.set_value_checksum(self.value_checksum).set_group(self.group);
        header.signed(sequence)
    }

    /// Decodes the header of a record in the segment with this sequence; `None` when it is no valid
    /// header of a record. `room` is the number of bytes from its start to the end of the segment.
    pub fn decode(bytes: &[u8], sequence: u64, room: u64) -> Option<Self> {
        Self::of(&RecordHeader::checked(bytes, sequence)?, room)
    }

    /// Returns the record of a checked header; `None` when it is no valid header of a record, or
    /// the record is longer than `room`.
    pub fn of(header: &RecordHeader, room: u64) -> Option<Self> {
        let bytes = header.value_bytes();
        let content = match header.kind() {
            KIND_TOMBSTONE => Content::Tombstone,
            KIND_VALUE => Content::Value(bytes),
            // A list of parts is never empty.
            KIND_INDIRECT if bytes > 0 => Content::Indirect(bytes),
            _ => return None,
        };
        let key = header.key();
        let key = Key::new(key.get(..usize::from(header.key_length()))?).ok()?;
        if bytes > VALUE_BYTES_MAX {
            return None;
        }
        let record = Self {
            key: (header.nsid(), key),
            commit: header.commit(),
            content,
            value_checksum: header.value_checksum(),
            group: header.group(),
        };
        (record.footprint() <= room).then_some(record)
    }
}

impl RecordHeader {
    /// Decodes a header of any kind; `None` when its checksum or its sequence does not match.
    pub fn checked(bytes: &[u8], sequence: u64) -> Option<Self> {
        let header = Self::parse(bytes)?;
        let mut unsigned = header;
        unsigned.set_checksum(0);
        let holds = header.magic() == RECORD_MAGIC
            && header.checksum() == crc32c::crc32c(unsigned.as_bytes())
            && header.sequence() == sequence;
        holds.then_some(header)
    }

    /// Sets what headers of all kinds have, and signs the header. It is the last change.
    pub fn signed(mut self, sequence: u64) -> Self {
        self.set_magic(RECORD_MAGIC).set_sequence(sequence).set_checksum(0);
        let checksum = crc32c::crc32c(self.as_bytes());
        self.set_checksum(checksum);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let key = Key::new(b"a key").unwrap();
        Record {
            key: (2, key),
            commit: 9,
            content: Content::Value(100),
            value_checksum: 0xABCD,
            group: 3,
        }
    }

    #[test]
    fn records_round_trip_and_every_bit_is_guarded() {
        let header = record().encode(77);
        assert_eq!(Record::decode(header.as_bytes(), 77, 4096), Some(record()));
        assert_eq!(Record::decode(header.as_bytes(), 78, 4096), None, "another life");
        assert_eq!(Record::decode(header.as_bytes(), 77, 191), None, "beyond the segment");
        let decodes = |bytes| {
            let long = Record { content: Content::Value(bytes), ..record() };
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
        let tombstone = Record { content: Content::Tombstone, value_checksum: 0, ..record() };
        let header = tombstone.encode(1);
        assert_eq!(Record::decode(header.as_bytes(), 1, 64), Some(tombstone));
        assert_eq!(tombstone.footprint(), 64);
    }
}
