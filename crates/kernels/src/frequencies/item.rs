//! [`Item`]: the part of a line that is counted.

use super::NAME;
use crate::numeric::Malformed;

/// Length of the parameters, bytes.
const BYTES: usize = 8;

/// Part of a line that is counted.
///
/// | bytes | meaning of the parameters |
/// |---|---|
/// | 0 | 0 lines, 1 words, 2 fields between white space, 3 fields between separators |
/// | 1 | separator, only with 3, not a newline |
/// | 2..4 | reserved, 0 |
/// | 4..8 | number of the field from 1, only with 2 and 3, else 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The line.
    Line,
    /// Each of its words: rows of bytes between white space.
    Word,
    /// The word of this number, from 1. Lines with fewer words have none.
    WordNumber(u32),
    /// The field of this number, from 1, between separators. It may be empty. Lines with fewer
    /// fields have none.
    Field {
        /// Its number.
        number: u32,
        /// The separator; no newline.
        separator: u8,
    },
}

impl Item {
    /// Encodes the parameters of the kernel.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let (kind, separator, number) = match self {
            Self::Line => (0, 0, 0),
            Self::Word => (1, 0, 0),
            Self::WordNumber(number) => (2, 0, number),
            Self::Field { number, separator } => (3, separator, number),
        };
        let mut data = vec![kind, separator, 0, 0];
        data.extend_from_slice(&number.to_le_bytes());
        data
    }

    /// Parses the parameters of the kernel.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let data: &[u8; BYTES] = data.try_into().map_err(|_| malformed("not 8 bytes"))?;
        let [kind, separator, 0, 0, number @ ..] = *data else {
            return Err(malformed("reserved bits are not zero"));
        };
        match (kind, separator, u32::from_le_bytes(number)) {
            (0, 0, 0) => Ok(Self::Line),
            (1, 0, 0) => Ok(Self::Word),
            (2, 0, number @ 1..) => Ok(Self::WordNumber(number)),
            (3, b'\n', _) => Err(malformed("the separator ends lines")),
            (3, separator, number @ 1..) => Ok(Self::Field { number, separator }),
            _ => Err(malformed("counts something unknown")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let field = Item::Field { number: 258, separator: b',' };
        assert_eq!(field.encode(), [3, b',', 0, 0, 2, 1, 0, 0]);
        for item in [Item::Line, Item::Word, Item::WordNumber(1), field] {
            assert_eq!(Item::parse(&item.encode()), Ok(item));
        }
        let reason = |data: [u8; 8]| Item::parse(&data).unwrap_err().reason;
        assert_eq!(reason([0, 0, 1, 0, 0, 0, 0, 0]), "reserved bits are not zero");
        assert_eq!(reason([0, 1, 0, 0, 0, 0, 0, 0]), "counts something unknown");
        assert_eq!(reason([1, 0, 0, 0, 1, 0, 0, 0]), "counts something unknown");
        assert_eq!(reason([2, 0, 0, 0, 0, 0, 0, 0]), "counts something unknown");
        assert_eq!(reason([3, b'\n', 0, 0, 1, 0, 0, 0]), "the separator ends lines");
        assert_eq!(reason([4, 0, 0, 0, 1, 0, 0, 0]), "counts something unknown");
        assert_eq!(Item::parse(&[0; 7]).unwrap_err().reason, "not 8 bytes");
    }
}
