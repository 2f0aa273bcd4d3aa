//! [`Manifest`]: the value that stands for a long object, and the keys of its pieces.
//!
//! The layout is a contract: `docs/internals/contracts.md`, "Long objects". Invariant: a manifest
//! that was parsed is of a layout that this version wrote, with a right checksum.

use csd_nvme::kv::Key;

/// Length of a manifest, bytes.
pub const MANIFEST_BYTES: usize = 64;
/// First bytes of the keys of pieces. No text in UTF-8 begins so.
pub const PIECE_MARK: [u8; 4] = *b"\xF5CSD";

const MAGIC: [u8; 8] = *b"\xF5CSDLONG";
const VERSION: u16 = 1;
/// Bytes that the checksum at the end covers.
const CHECKED: usize = MANIFEST_BYTES - 4;

/// Description of a long object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Identifier of this version's pieces, random.
    pub id: [u8; 8],
    /// Length of every piece but the last, bytes.
    pub piece_bytes: u32,
    /// Length of the object, bytes.
    pub bytes: u64,
    /// CRC-32C of the object's bytes.
    pub crc: u32,
}

impl Manifest {
    /// Returns the number of pieces.
    #[must_use]
    pub fn pieces(&self) -> u32 {
        u32::try_from(self.bytes.div_ceil(self.piece_bytes.into())).unwrap_or(u32::MAX)
    }

    /// Returns the length of piece `number` in bytes.
    #[must_use]
    pub fn piece_len(&self, number: u32) -> usize {
        let start = u64::from(number) * u64::from(self.piece_bytes);
        let left = self.bytes.saturating_sub(start).min(self.piece_bytes.into());
        usize::try_from(left).expect("at most a u32")
    }

    /// Returns the key of piece `number`.
    #[must_use]
    pub fn key(&self, number: u32) -> Key {
        piece_key(&self.id, number)
    }

    /// Returns the value that stands for the object.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MANIFEST_BYTES] {
        let mut bytes = [0; MANIFEST_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.piece_bytes.to_le_bytes());
        put(16, &self.bytes.to_le_bytes());
        put(24, &self.id);
        put(32, &self.pieces().to_le_bytes());
        put(36, &self.crc.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses a value; `None` if it is no manifest of this version.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let bytes: &[u8; MANIFEST_BYTES] = value.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| bytes[at..at + 8].try_into().expect("8 bytes");
        let manifest = Self {
            id: long(24),
            piece_bytes: word(12),
            bytes: u64::from_le_bytes(long(16)),
            crc: word(36),
        };
        // Everything else follows from these fields, so it is compared as a whole.
        (manifest.piece_bytes > 0 && manifest.to_bytes() == *bytes).then_some(manifest)
    }
}

/// Returns the key of a piece: mark, identifier, number big-endian.
pub(super) fn piece_key(id: &[u8; 8], number: u32) -> Key {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&PIECE_MARK);
    key[4..12].copy_from_slice(id);
    key[12..].copy_from_slice(&number.to_be_bytes());
    Key::new(&key).expect("16 bytes")
}

/// Returns the identifier in a piece's key.
pub(super) fn piece_id(piece: &Key) -> [u8; 8] {
    piece.padded()[4..12].try_into().expect("8 bytes")
}

/// Returns the number in a piece's key.
pub(super) fn piece_number(piece: &Key) -> u32 {
    u32::from_be_bytes(piece.padded()[12..].try_into().expect("4 bytes"))
}

/// Returns true if `key` has the form of a piece's key.
#[must_use]
pub fn is_piece(key: &Key) -> bool {
    key.as_bytes().len() == 16 && key.as_bytes().starts_with(&PIECE_MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let id = *b"\x01\x23\x45\x67\x89\xAB\xCD\xEF";
        Manifest { id, piece_bytes: 4 << 20, bytes: (10 << 20) + 7, crc: 0x1234_5678 }
    }

    /// Returns the bytes of a golden file.
    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn the_golden_manifest_is_written_and_read() {
        let golden = bytes(include_str!("../../../../docs/internals/golden/long/manifest.hex"));
        assert_eq!(sample().to_bytes()[..], golden);
        assert_eq!(Manifest::parse(&golden), Some(sample()));
        assert_eq!(sample().pieces(), 3);
        assert_eq!(
            [0, 1, 2, 3].map(|n| sample().piece_len(n)),
            [4 << 20, 4 << 20, (2 << 20) + 7, 0]
        );
        let key = bytes(include_str!("../../../../docs/internals/golden/long/piece_key.hex"));
        assert_eq!(sample().key(2).as_bytes(), key);
        assert!(is_piece(&sample().key(2)) && !is_piece(&Key::new(b"x").unwrap()));
    }

    #[test]
    fn other_values_are_no_manifest() {
        let golden = sample().to_bytes();
        for byte in 0..MANIFEST_BYTES {
            let mut flipped = golden;
            flipped[byte] ^= 0x40;
            assert_eq!(Manifest::parse(&flipped), None, "byte {byte}");
        }
        assert_eq!(Manifest::parse(&golden[..63]), None);
        assert_eq!(Manifest::parse(&[&golden[..], &[0]].concat()), None);
        assert_eq!(Manifest::parse(&[]), None);
    }
}
