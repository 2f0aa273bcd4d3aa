//! Page lists: values that hold the checksums of the pages of pieces, version 1; and the task of
//! the program `pages`, which compares pages with them ([`Task`]).
//!
//! A list names pieces of one object on the drive that holds the list. It is a 32-byte header,
//! 16-byte records of pieces, the CRC-32C of each page of each piece, in order, and the CRC-32C of
//! all bytes before. A page is short at the end of its piece. The key of a list has
//! [`KEY_BYTES`] bytes, one fewer than those of the pieces. `docs/internals/contracts.md` lists
//! the layout. This is its only parser. A list may have hundreds of thousands of pieces, so a
//! reader goes through them ([`List::next`]), and parses off a core that serves others.
//! Invariants: a list has at least one piece, pieces have at least one byte, and there is a sum
//! for every page.

mod place;
mod task;

use csd_buffer::{ITEM, worked};

use crate::kv::Key;
use crate::vendor::location::LocationKind;
use crate::wire::layout;

pub use place::Place;
pub use task::{Task, TaskRecord};

/// Program identifier (PID).
pub const PROGRAM_ID: u64 = 11;
/// Name of the program.
pub const NAME: &str = "pages";
/// First four bytes of a list: "CSDP".
pub const MAGIC: u32 = u32::from_le_bytes(*b"CSDP");
/// Version of this layout.
pub const VERSION: u16 = 1;
/// Limits of the size of a page, bytes: powers of two.
pub const PAGE_BYTES: std::ops::RangeInclusive<u32> = 4096..=8 << 20;
/// Maximum length of a piece, bytes.
pub const PIECE_BYTES_MAX: u32 = 16 << 20;
/// Result of a comparison that found no page that differs, in dword 0.
pub const NONE: u32 = u32::MAX;

/// Length of the key of a list, bytes: the object's identifier, and a number in 3 bytes.
pub const KEY_BYTES: usize = 15;
/// Maximum number of lists of an object on a drive.
pub const LISTS_MAX: u32 = 1 << 24;

const SUM_BYTES: usize = 4;

/// Returns the key of a list of an object.
///
/// # Panics
/// If the number is not below [`LISTS_MAX`].
#[must_use]
pub fn list_key(object: &[u8; 12], number: u32) -> Key {
    assert!(number < LISTS_MAX, "a number of 3 bytes");
    let key = [&object[..], &number.to_be_bytes()[1..]].concat();
    Key::new(&key).expect("fifteen bytes are a key")
}

layout! {
    /// Header of a list.
    pub struct Header[32] {
        /// [`MAGIC`].
        magic / set_magic: u32 @ 0,
        /// [`VERSION`].
        version / set_version: u16 @ 4,
        /// [`LocationKind`].
        kind / set_kind: u8 @ 6,
        /// Reserved, 0.
        reserved / set_reserved: u8 @ 7,
        /// Namespace of the pieces.
        nsid / set_nsid: u32 @ 8,
        /// Size of a page, bytes.
        page_bytes / set_page_bytes: u32 @ 12,
        /// Number of pieces.
        pieces / set_pieces: u32 @ 16,
        /// Identifier of the object.
        object / set_object: [12] @ 20,
    }
}

layout! {
    /// One piece of a list.
    pub struct PieceRecord[16] {
        /// Values: number in the key. Blocks: first byte in the namespace.
        start / set_start: u64 @ 0,
        /// Length, bytes.
        bytes / set_bytes: u32 @ 8,
        /// Reserved, 0.
        reserved / set_reserved: u32 @ 12,
    }
}

/// Error in a list or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed page list: {0}")]
pub struct Malformed(pub &'static str);

/// A piece of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Values: number in the key. Blocks: first byte in the namespace.
    pub start: u64,
    /// Length, bytes.
    pub bytes: u32,
}

/// A checked list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Kind of the pieces' locations.
    pub kind: LocationKind,
    /// Namespace of the pieces.
    pub nsid: u32,
    /// Size of a page, bytes.
    pub page_bytes: u32,
    /// Identifier of the object; the first 12 bytes of its values' keys.
    pub object: [u8; 12],
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// CRC-32C of the pages of all pieces, in order.
    pub sums: Vec<u32>,
}

impl List {
    /// Returns the bytes of the list of so many pieces and pages.
    #[must_use]
    pub fn encoded_bytes(pieces: usize, pages: usize) -> usize {
        Header::SIZE + pieces * PieceRecord::SIZE + (pages + 1) * SUM_BYTES
    }

    /// Returns true if a value may be a list: it begins as one.
    #[must_use]
    pub fn is_likely(value: &[u8]) -> bool {
        Header::parse(value).is_some_and(|header| header.magic() == MAGIC)
    }

    /// Parses a list.
    ///
    /// # Errors
    /// [`Malformed`] with the reason; no bytes cause a panic.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let (body, crc) = data.split_last_chunk().ok_or(Malformed("it is too short"))?;
        let header = header_of(body)?;
        worked(2 * data.len() as u64);
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(Malformed("wrong checksum"));
        }
        let (front, sums) = Front::of(&header, body)?;
        let (sums, []) = sums.as_chunks::<SUM_BYTES>() else {
            return Err(Malformed("a checksum is cut"));
        };
        let sums = sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        let Front { kind, nsid, page_bytes, object, pieces } = front;
        let list = Self { kind, nsid, page_bytes, object, pieces, sums };
        let pages: usize = list.pieces.iter().map(|piece| list.pages(piece)).sum();
        match pages == list.sums.len() {
            true => Ok(list),
            false => Err(Malformed("not one checksum for each page")),
        }
    }

    /// Returns the list's bytes.
    ///
    /// # Panics
    /// If there are 2^32 pieces: the caller's bug.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut header = Header::zeroed();
        header.set_magic(MAGIC).set_version(VERSION).set_kind(self.kind.0).set_nsid(self.nsid);
        header.set_page_bytes(self.page_bytes).set_object(&self.object);
        header.set_pieces(u32::try_from(self.pieces.len()).expect("a list is short"));
        let mut data = Vec::with_capacity(Self::encoded_bytes(self.pieces.len(), self.sums.len()));
        data.extend_from_slice(header.as_bytes());
        for Piece { start, bytes } in &self.pieces {
            let mut record = PieceRecord::zeroed();
            record.set_start(*start).set_bytes(*bytes);
            data.extend_from_slice(record.as_bytes());
        }
        self.sums.iter().for_each(|sum| data.extend_from_slice(&sum.to_le_bytes()));
        let crc = crc32c::crc32c(&data);
        data.extend_from_slice(&crc.to_le_bytes());
        data
    }

    /// Returns the number of pages of a piece.
    fn pages(&self, piece: &Piece) -> usize {
        worked(ITEM);
        piece.bytes.div_ceil(self.page_bytes) as usize
    }
}

/// A list without its checksums: what it is of. The checksum over all is not compared; a drive
/// compares the value before it returns a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Kind of the pieces' locations.
    pub kind: LocationKind,
    /// Namespace of the pieces.
    pub nsid: u32,
    /// Size of a page, bytes.
    pub page_bytes: u32,
    /// Identifier of the object.
    pub object: [u8; 12],
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl Front {
    /// Returns the length of the front of a list that begins with these bytes; `None` if it is no
    /// list.
    #[must_use]
    pub fn bytes(data: &[u8]) -> Option<u64> {
        let header = header_of(data).ok()?;
        Some(Header::SIZE as u64 + u64::from(header.pieces()) * PieceRecord::SIZE as u64)
    }

    /// Parses the front of a list, whatever follows it.
    ///
    /// # Errors
    /// As [`List::parse`].
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        Self::of(&header_of(data)?, data).map(|(front, _)| front)
    }

    /// Returns the front of a list with this header, and the bytes behind it.
    fn of<'a>(header: &Header, data: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (kind, page_bytes) = (LocationKind(header.kind()), header.page_bytes());
        if header.reserved() != 0 || !matches!(kind, LocationKind::VALUE | LocationKind::BLOCKS) {
            return Err(Malformed("unknown kind of pieces"));
        }
        if !page_bytes.is_power_of_two() || !PAGE_BYTES.contains(&page_bytes) {
            return Err(Malformed("a page is no power of two from 4096 to 8388608 bytes"));
        }
        let end = usize::try_from(header.pieces()).ok().and_then(|pieces| {
            let end = pieces.checked_mul(PieceRecord::SIZE)?;
            (pieces > 0).then_some(end)
        });
        let rest = &data[Header::SIZE..];
        let (records, rest) =
            end.and_then(|end| rest.split_at_checked(end)).ok_or(Malformed("it is cut off"))?;
        worked(records.len() as u64);
        let mut pieces = Vec::with_capacity(records.len() / PieceRecord::SIZE);
        for record in records.chunks_exact(PieceRecord::SIZE).filter_map(PieceRecord::parse) {
            let piece = Piece { start: record.start(), bytes: record.bytes() };
            if record.reserved() != 0 || !(1..=PIECE_BYTES_MAX).contains(&piece.bytes) {
                return Err(Malformed("impossible piece"));
            }
            let is_number = kind == LocationKind::BLOCKS || u32::try_from(piece.start).is_ok();
            if !is_number || piece.start.checked_add(piece.bytes.into()).is_none() {
                return Err(Malformed("impossible place of a piece"));
            }
            pieces.push(piece);
        }
        let (nsid, object) = (header.nsid(), header.object());
        Ok((Self { kind, nsid, page_bytes, object, pieces }, rest))
    }
}

/// Returns the header of a list of this version.
fn header_of(data: &[u8]) -> Result<Header, Malformed> {
    let header = Header::parse(data).ok_or(Malformed("it is shorter than its header"))?;
    if header.magic() != MAGIC {
        return Err(Malformed("wrong magic number"));
    }
    match header.version() {
        VERSION => Ok(header),
        _ => Err(Malformed("version is not 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> List {
        let pieces = vec![Piece { start: 8192, bytes: 8193 }, Piece { start: 1 << 40, bytes: 1 }];
        let (kind, sums) = (LocationKind::BLOCKS, vec![1, 2, 3, 0x0102_0304]);
        List { kind, nsid: 1, page_bytes: 4096, object: [7; 12], pieces, sums }
    }

    #[test]
    fn lists_have_these_bytes_and_come_back() {
        let data = sample().encode();
        assert_eq!(data.len(), List::encoded_bytes(2, 4));
        assert_eq!(data[..12], [b'C', b'S', b'D', b'P', 1, 0, 2, 0, 1, 0, 0, 0]);
        assert_eq!(data[12..20], [0, 16, 0, 0, 2, 0, 0, 0]);
        assert_eq!(data[32..48], [0, 32, 0, 0, 0, 0, 0, 0, 1, 32, 0, 0, 0, 0, 0, 0]);
        assert_eq!(data[76..80], [4, 3, 2, 1]);
        assert_eq!(List::parse(&data), Ok(sample()));
        assert!(List::is_likely(&data) && !List::is_likely(&data[1..]));
        let list = sample();
        assert_eq!(list.piece(0), Some((list.pieces[0], &[1, 2, 3][..])));
        assert_eq!(list.piece(1), Some((list.pieces[1], &[0x0102_0304][..])));
        assert_eq!(list.piece(2), None);
    }

    #[test]
    fn the_front_of_a_list_says_which_pieces_it_names() {
        let (data, list) = (sample().encode(), sample());
        let end = usize::try_from(Front::bytes(&data[..Header::SIZE]).unwrap()).unwrap();
        assert_eq!(end, Header::SIZE + 2 * PieceRecord::SIZE);
        let List { kind, nsid, page_bytes, object, pieces, .. } = list;
        let front = Front { kind, nsid, page_bytes, object, pieces };
        for bytes in [&data[..end], &data[..]] {
            assert_eq!(Front::parse(bytes), Ok(front.clone()));
        }
        for length in 0..end {
            assert!(Front::parse(&data[..length]).is_err(), "cut to {length}");
        }
        assert_eq!(Front::bytes(&data[1..]), None);
    }

    #[test]
    fn every_flipped_bit_and_every_prefix_is_refused() {
        let data = sample().encode();
        for length in 0..data.len() {
            assert!(List::parse(&data[..length]).is_err(), "cut to {length}");
        }
        for bit in 0..data.len() * 8 {
            let mut changed = data.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(List::parse(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn hostile_fields_under_a_right_checksum_are_named_or_come_back() {
        let data = sample().encode();
        for index in 0..data.len() - SUM_BYTES {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut changed = data[..data.len() - SUM_BYTES].to_vec();
                changed[index] = value;
                let crc = crc32c::crc32c(&changed);
                changed.extend_from_slice(&crc.to_le_bytes());
                if let Ok(list) = List::parse(&changed) {
                    assert_eq!(list.encode(), changed, "byte {index} = {value}");
                }
            }
        }
        let wrong = |change: fn(&mut List)| {
            let mut list = sample();
            change(&mut list);
            List::parse(&list.encode()).unwrap_err().0
        };
        assert_eq!(wrong(|list| list.kind = LocationKind(3)), "unknown kind of pieces");
        assert_eq!(wrong(|list| list.kind = LocationKind::VALUE), "impossible place of a piece");
        assert_eq!(wrong(|list| list.pieces[0].bytes = 0), "impossible piece");
        assert_eq!(wrong(|list| list.pieces[1].start = u64::MAX), "impossible place of a piece");
        assert_eq!(wrong(|list| list.sums.truncate(3)), "not one checksum for each page");
        assert_eq!(wrong(|list| list.pieces.clear()), "it is cut off");
        let page = "a page is no power of two from 4096 to 8388608 bytes";
        assert_eq!(wrong(|list| list.page_bytes = 2048), page);
        assert_eq!(wrong(|list| list.page_bytes = 4097), page);
    }
}
