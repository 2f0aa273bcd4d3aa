//! Checkpoints: compact lists of the records of a segment, so that recovery reads those instead of
//! the records.
//!
//! A checkpoint is a record of its own kind, whose value is the list of all records since the
//! checkpoint before, and whose header names that one. It lists only records that were durable
//! before it was written. One among the records begins a group; the final one lies behind the
//! records, where the seal points. Invariants: equal records are listed by equal bytes; no length
//! is used before the checksum of its list held.

use csd_nvme::kv::Key;

use crate::record::{
    Content, EntryKey, KIND_CHECKPOINT, KIND_FINAL_CHECKPOINT, KIND_INDIRECT, KIND_TOMBSTONE,
    KIND_VALUE, RECORD_ALIGNMENT, Record, RecordHeader, SECTOR_BYTES, SegmentRange, footprint,
};

/// Most bytes of an entry: flags, key, nsid, length, gap and commit number.
pub const ENTRY_BYTES_MAX: u64 = 1 + 16 + 2 + 5 + 10 + 10;

/// Bits of the first byte of an entry, above the length of the key less one.
const TOMBSTONE: u8 = 1 << 4;
const OTHER_NSID: u8 = 1 << 5;
const GAP: u8 = 1 << 6;
const INDIRECT: u8 = 1 << 7;
const KEY_LENGTH: u8 = 0x0F;

/// A checked header of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Checkpoint before this one in the segment.
    pub previous: Option<SegmentRange>,
    /// Length of the list in bytes.
    pub list_bytes: u32,
    /// CRC-32C of the list.
    pub list_checksum: u32,
    /// Sector at which it begins.
    pub sector: u32,
    /// True for the one behind the records.
    pub is_final: bool,
}

impl Checkpoint {
    /// Makes the header of a list.
    pub fn new(list: &[u8], offset: u64, previous: Option<SegmentRange>, is_final: bool) -> Self {
        let list_bytes = u32::try_from(list.len()).expect("shorter than a segment");
        let sector = u32::try_from(offset / SECTOR_BYTES).expect("a segment has few sectors");
        let list_checksum = crc32c::crc32c(list);
        Self { previous, list_bytes, list_checksum, sector, is_final }
    }

    /// Returns the bytes that it takes in its segment.
    pub fn footprint(&self) -> u64 {
        footprint(u64::from(self.list_bytes))
    }

    /// Encodes the header for the segment with this sequence.
    pub fn encode(&self, sequence: u64) -> RecordHeader {
        let mut header = RecordHeader::zeroed();
        header.set_kind(if self.is_final { KIND_FINAL_CHECKPOINT } else { KIND_CHECKPOINT });
        let (sector, bytes) = SegmentRange::fields(self.previous);
        header.set_commit(u64::from(bytes) << 32 | u64::from(sector));
        header.set_value_bytes(self.list_bytes).set_value_checksum(self.list_checksum);
        header.set_group(self.sector);
        header.signed(sequence)
    }

    /// Returns the checkpoint of a checked header.
    pub fn of(header: &RecordHeader) -> Self {
        let previous = header.commit().to_le_bytes();
        let field = |at: usize| {
            u32::from_le_bytes(previous[at..at + 4].try_into().expect("four of eight bytes"))
        };
        Self {
            previous: SegmentRange::of(field(0), field(4)),
            list_bytes: header.value_bytes(),
            list_checksum: header.value_checksum(),
            sector: header.group(),
            is_final: header.kind() == KIND_FINAL_CHECKPOINT,
        }
    }

    /// Decodes the checkpoint in a range, header and list; `None` when it is not whole.
    pub fn decode(bytes: &[u8], sequence: u64, range: SegmentRange) -> Option<(Self, &[u8])> {
        let header = RecordHeader::checked(bytes, sequence)?;
        let checkpoint = Self::of(&header);
        let list = bytes.get(RecordHeader::SIZE..)?.get(..checkpoint.list_bytes as usize)?;
        let is_right = matches!(header.kind(), KIND_CHECKPOINT | KIND_FINAL_CHECKPOINT)
            && u64::from(checkpoint.sector) * SECTOR_BYTES == range.offset
            && crc32c::crc32c(list) == checkpoint.list_checksum
            // Pointers lead backwards, so that they end.
            && checkpoint.previous.is_none_or(|previous| previous.end() <= range.offset);
        is_right.then_some((checkpoint, list))
    }
}

/// A header in the log whose checksum held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A record.
    Record(Record),
    /// A checkpoint among the records.
    Checkpoint(Checkpoint),
    /// Another kind, which a later version has written.
    Unknown {
        /// The kind.
        kind: u8,
        /// Bytes that it takes in its segment.
        bytes: u64,
    },
}

impl Decoded {
    /// Decodes the header at some place of the log, in the segment with this sequence; `None` when
    /// it is no valid header. `room` is the number of bytes from its start to the end of the
    /// segment.
    pub fn decode(bytes: &[u8], sequence: u64, room: u64) -> Option<Self> {
        let header = RecordHeader::checked(bytes, sequence)?;
        let whole = |bytes: u64| bytes <= room;
        match header.kind() {
            KIND_VALUE | KIND_TOMBSTONE | KIND_INDIRECT => {
                Record::of(&header, room).map(Self::Record)
            }
            KIND_CHECKPOINT => {
                let checkpoint = Checkpoint::of(&header);
                whole(checkpoint.footprint()).then_some(Self::Checkpoint(checkpoint))
            }
            // It lies behind the records.
            KIND_FINAL_CHECKPOINT => None,
            kind => {
                let bytes = footprint(u64::from(header.value_bytes()));
                whole(bytes).then_some(Self::Unknown { kind, bytes })
            }
        }
    }
}

/// A list of records in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Entries.
    pub bytes: Vec<u8>,
    state: State,
}

/// The record that an entry is relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    // Offset behind the record before.
    end: u64,
    commit: u64,
    nsid: u16,
}

impl Listing {
    /// Makes the continuation of this list, without its entries.
    pub fn rest(&self) -> Self {
        Self { bytes: Vec::new(), state: self.state }
    }

    /// Appends its continuation.
    pub fn extend(&mut self, rest: Self) {
        self.bytes.extend_from_slice(&rest.bytes);
        self.state = rest.state;
    }

    /// Adds a record.
    pub fn add(&mut self, offset: u64, record: &Record) {
        let (nsid, key) = &record.key;
        let key = key.as_bytes();
        let state = &mut self.state;
        let gap = offset.wrapping_sub(state.end) / RECORD_ALIGNMENT;
        let mut flags = u8::try_from(key.len() - 1).expect("a key has 1 to 16 bytes");
        flags |= match record.content {
            Content::Tombstone => TOMBSTONE,
            Content::Value(_) => 0,
            Content::Indirect(_) => INDIRECT,
        };
        flags |= if *nsid == state.nsid { 0 } else { OTHER_NSID };
        flags |= if gap == 0 { 0 } else { GAP };
        self.bytes.push(flags);
        if *nsid != state.nsid {
            self.bytes.extend_from_slice(&nsid.to_le_bytes());
        }
        self.bytes.extend_from_slice(key);
        if record.content.is_value() {
            push_number(&mut self.bytes, record.content.bytes().into());
        }
        if gap != 0 {
            push_number(&mut self.bytes, gap);
        }
        push_number(&mut self.bytes, zigzag(record.commit.wrapping_sub(state.commit)));
        *state = State { end: offset + record.footprint(), commit: record.commit, nsid: *nsid };
    }
}

/// A listed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Offset in the segment.
    pub offset: u64,
    /// Namespace and key.
    pub key: EntryKey,
    /// Commit number.
    pub commit: u64,
    /// Content behind the header.
    pub content: Content,
}

impl Listed {
    /// Returns the record without the checksum of its value and its group, which are not listed.
    pub fn record(&self) -> Record {
        let Self { key, commit, content, .. } = *self;
        Record { key, commit, content, value_checksum: 0, group: 0 }
    }
}

/// The entries of a list whose checksum held. It ends early at an entry that is none.
pub struct Entries<'a> {
    left: &'a [u8],
    state: State,
}

impl<'a> Entries<'a> {
    /// Reads a list.
    pub fn new(list: &'a [u8]) -> Self {
        Self { left: list, state: State::default() }
    }

    /// Returns true when every entry was read.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn entry(&mut self) -> Option<Listed> {
        let flags = self.take(1)?[0];
        if flags & OTHER_NSID != 0 {
            let nsid = self.take(2)?;
            self.state.nsid = u16::from_le_bytes([nsid[0], nsid[1]]);
        }
        let key = Key::new(self.take(usize::from(flags & KEY_LENGTH) + 1)?).ok()?;
        let content = match flags & (TOMBSTONE | INDIRECT) {
            0 => Content::Value(u32::try_from(self.number()?).ok()?),
            INDIRECT => Content::Indirect(u32::try_from(self.number()?).ok().filter(|it| *it > 0)?),
            TOMBSTONE => Content::Tombstone,
            _ => return None,
        };
        let gap = if flags & GAP == 0 { 0 } else { self.number()? };
        let offset = self.state.end.checked_add(gap.checked_mul(RECORD_ALIGNMENT)?)?;
        let commit = self.state.commit.wrapping_add(unzigzag(self.number()?));
        let listed = Listed { offset, key: (self.state.nsid, key), commit, content };
        self.state.end = offset.checked_add(listed.record().footprint())?;
        self.state.commit = commit;
        Some(listed)
    }
}

impl Iterator for Entries<'_> {
    type Item = Listed;

    fn next(&mut self) -> Option<Listed> {
        if self.left.is_empty() {
            return None;
        }
        let before = self.left;
        let entry = self.entry();
        if entry.is_none() {
            self.left = before;
        }
        entry
    }
}

/// Appends a number, seven bits to a byte, the lowest first.
fn push_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(u8::try_from(number & 0x7F).expect("seven bits") | 0x80);
        number >>= 7;
    }
    to.push(u8::try_from(number).expect("seven bits"));
}

/// Makes short numbers of small differences of either sign.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (if difference >> 63 == 1 { u64::MAX } else { 0 })
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (if number & 1 == 1 { u64::MAX } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that no version has.
    const KIND_LATER: u8 = 200;

    fn record(key: &[u8], commit: u64, content: Content) -> Record {
        let key = (2 + u16::from(key.len() == 3), Key::new(key).unwrap());
        Record { key, commit, content, value_checksum: 0, group: 0 }
    }

    #[test]
    fn lists_round_trip() {
        let records = [
            (8192, record(b"a", 100, Content::Value(5))),
            (8320, record(b"ab", 101, Content::Tombstone)),
            (8704, record(b"abc", 7, Content::Indirect(16 << 20))),
            (40 << 20, record(&[255; 16], u64::MAX, Content::Value(0))),
            ((40 << 20) + 64, record(&[0; 16], 1 << 40, Content::Indirect(100))),
        ];
        let mut listing = Listing::default();
        for (offset, record) in &records[..3] {
            listing.add(*offset, record);
        }
        let mut rest = listing.rest();
        for (offset, record) in &records[3..] {
            let before = rest.bytes.len() as u64;
            rest.add(*offset, record);
            assert!(rest.bytes.len() as u64 - before <= ENTRY_BYTES_MAX);
        }
        listing.extend(rest);
        let mut entries = Entries::new(&listing.bytes);
        for (offset, record) in records {
            let listed = entries.next().unwrap();
            assert_eq!((listed.offset, listed.record()), (offset, record));
        }
        assert!(entries.next().is_none() && entries.is_done());
        for length in 1..listing.bytes.len() {
            // Cut off, it ends early and says so, or at an entry.
            assert!(Entries::new(&listing.bytes[..length]).count() < 5);
        }
    }

    #[test]
    fn an_entry_of_a_record_like_the_one_before_takes_its_key_and_three_bytes() {
        let mut listing = Listing::default();
        for number in 0..3 {
            listing
                .add(8192 + number * 192, &record(&[7; 16], 50 + number * 16, Content::Value(100)));
        }
        let two = listing.bytes.len();
        listing.add(8192 + 3 * 192, &record(&[7; 16], 50 + 3 * 16, Content::Value(100)));
        assert_eq!(listing.bytes.len() - two, 16 + 3);
    }

    #[test]
    fn a_kind_that_is_not_known_is_told_apart_from_damage() {
        let mut header = record(b"key", 9, Content::Value(100)).encode(77);
        header.set_kind(KIND_LATER);
        let header = header.signed(77);
        let unknown = Decoded::Unknown { kind: KIND_LATER, bytes: 192 };
        assert_eq!(Decoded::decode(header.as_bytes(), 77, 4096), Some(unknown));
    }

    #[test]
    fn every_flipped_bit_of_a_checkpoint_is_noticed() {
        let mut listing = Listing::default();
        listing.add(8192, &record(b"key", 9, Content::Value(100)));
        let previous = Some(SegmentRange { offset: 8192, bytes: 128 });
        let checkpoint = Checkpoint::new(&listing.bytes, 16384, previous, false);
        let mut bytes = checkpoint.encode(5).as_bytes().to_vec();
        bytes.extend_from_slice(&listing.bytes);
        let range = SegmentRange { offset: 16384, bytes: checkpoint.footprint() };
        let decoded = Checkpoint::decode(&bytes, 5, range);
        assert_eq!(decoded, Some((checkpoint, &listing.bytes[..])));
        assert_eq!(Checkpoint::decode(&bytes, 6, range), None, "another life");
        let elsewhere = SegmentRange { offset: 8192, ..range };
        assert_eq!(Checkpoint::decode(&bytes, 5, elsewhere), None, "another place");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&bytes, 5, range), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
