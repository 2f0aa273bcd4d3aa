//! [`Parameters`]: pattern and options of a search.

use super::NAME;
use super::pattern::PATTERN_BYTES_MAX;
use crate::numeric::Malformed;

/// Bytes before the pattern.
const HEAD_BYTES: usize = 8;
const IGNORE_CASE: u8 = 1;
const INVERT: u8 = 2;

/// The part of the selected lines that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The lines.
    Lines,
    /// The lines, and how many others are before each.
    Numbered,
    /// Their number.
    Count,
    /// The knowledge that there is one.
    First,
}

const WANTS: [Wants; 4] = [Wants::Lines, Wants::Numbered, Wants::Count, Wants::First];

/// Parameters of a search.
///
/// | bytes | meaning |
/// |---|---|
/// | 0 | bit 0: upper and lower case are the same; bit 1: lines without a match are selected |
/// | 1 | what is wanted: 0 lines, 1 numbered lines, 2 count, 3 first |
/// | 2..8 | reserved, 0 |
/// | 8.. | the pattern, UTF-8, at most 4096 bytes |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Regular expression.
    pub pattern: String,
    /// True if upper and lower case are the same.
    pub ignore_case: bool,
    /// True if the lines without a match are selected.
    pub invert: bool,
    /// The part of them that is wanted.
    pub wants: Wants,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; HEAD_BYTES];
        data[0] = u8::from(self.ignore_case) * IGNORE_CASE + u8::from(self.invert) * INVERT;
        data[1] = self.wants as u8;
        data.extend_from_slice(self.pattern.as_bytes());
        data
    }

    /// Parses parameters. The pattern may still be none.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let (head, pattern) =
            data.split_first_chunk::<HEAD_BYTES>().ok_or(malformed("fewer than 8 bytes"))?;
        let [flags, wants, reserved @ ..] = *head;
        if flags & !(IGNORE_CASE | INVERT) != 0 || reserved != [0; 6] {
            return Err(malformed("reserved bits are not zero"));
        }
        let wants = WANTS.get(usize::from(wants)).ok_or(malformed("wants something unknown"))?;
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(malformed("the pattern has more than 4096 bytes"));
        }
        let pattern = str::from_utf8(pattern).map_err(|_| malformed("the pattern is no UTF-8"))?;
        Ok(Self {
            pattern: pattern.to_owned(),
            ignore_case: flags & IGNORE_CASE != 0,
            invert: flags & INVERT != 0,
            wants: *wants,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let parameters = Parameters {
            pattern: "ü".to_owned(),
            ignore_case: true,
            invert: true,
            wants: Wants::Count,
        };
        let good = parameters.encode();
        assert_eq!(good, [3, 2, 0, 0, 0, 0, 0, 0, 0xC3, 0xBC]);
        assert_eq!(Parameters::parse(&good), Ok(parameters));
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 4), Err("reserved bits are not zero"));
        assert_eq!(with(7, 1), Err("reserved bits are not zero"));
        assert_eq!(with(1, 4), Err("wants something unknown"));
        assert_eq!(with(9, 0xFF), Err("the pattern is no UTF-8"));
        let reason = |data: &[u8]| Parameters::parse(data).unwrap_err().reason;
        assert_eq!(reason(&good[..7]), "fewer than 8 bytes");
        assert_eq!(reason(&[0; 8 + 4097]), "the pattern has more than 4096 bytes");
    }
}
