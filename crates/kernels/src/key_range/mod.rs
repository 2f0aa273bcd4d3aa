//! Range: counts the keys of a key-value namespace between two bounds, or copies them out.
//!
//! Reads the entries of a List's data in ascending order of keys: by length, then by bytes. Keys
//! equal to a bound are in the range. Keys in another order are refused. Ends at the first key
//! above the range, so the keys behind it need not be read. Writes the entries of the keys in the
//! range as it read them; the result is their number. Work is counted in keys read.
//!
//! Invariant: the answer does not depend on the pieces that the list was cut into.

mod kernel;
mod program;

pub use kernel::KERNEL;

use crate::numeric::Malformed;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 7;
/// Name of the kernel.
pub const NAME: &str = "range";
/// Length of encoded parameters in bytes.
const PARAMETER_BYTES: usize = 48;
/// Maximum length of a key in bytes.
const KEY_BYTES_MAX: usize = 16;

/// A key of 1 to 16 bytes; orders by length, then by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListKey {
    // Length first: the derived order is that of a list.
    length: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl ListKey {
    /// Returns the key of these bytes; `None` if they are not 1 to 16.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        let length = u8::try_from(key.len()).ok().filter(|length| *length > 0)?;
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { length, bytes })
    }
}

/// Bounds of a range.
///
/// | bytes | meaning |
/// |---|---|
/// | 0 | length of the lower bound, 0 for none |
/// | 1 | length of the upper bound, 0 for none |
/// | 2..8 | reserved, 0 |
/// | 8..16 | maximum number of keys in the range, little-endian; 0 for no limit |
/// | 16..32 | lower bound, then zeros |
/// | 32..48 | upper bound, then zeros |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Lower bound; `None` for none.
    pub lower: Option<ListKey>,
    /// Upper bound; `None` for none.
    pub upper: Option<ListKey>,
    /// Number of keys in the range at which the program ends; 0 for no limit.
    pub keys_max: u64,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; PARAMETER_BYTES];
        data[8..16].copy_from_slice(&self.keys_max.to_le_bytes());
        for (at, bound) in [self.lower, self.upper].into_iter().enumerate() {
            let Some(bound) = bound else { continue };
            data[at] = bound.length;
            data[16 * (at + 1)..][..KEY_BYTES_MAX].copy_from_slice(&bound.bytes);
        }
        data
    }

    /// Parses parameters.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let data: &[u8; PARAMETER_BYTES] =
            data.try_into().map_err(|_| malformed("not 48 bytes"))?;
        let [lower_bytes, upper_bytes, reserved @ ..] = data;
        if reserved[..6] != [0; 6] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let bound = |length: u8, at: usize| {
            let (key, rest) = data[at..at + KEY_BYTES_MAX]
                .split_at_checked(length.into())
                .ok_or(malformed("a bound has more than 16 bytes"))?;
            match rest.iter().all(|byte| *byte == 0) {
                true => Ok(ListKey::new(key)),
                false => Err(malformed("the bytes behind a bound are not zero")),
            }
        };
        let (lower, upper) = (bound(*lower_bytes, 16)?, bound(*upper_bytes, 32)?);
        let keys_max = u64::from_le_bytes(*data[8..].first_chunk().expect("48 bytes"));
        Ok(Self { lower, upper, keys_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let parameters = Parameters {
            lower: ListKey::new(b"ab"),
            upper: ListKey::new(&[0xFF; 16]),
            keys_max: 0x0102,
        };
        let good = parameters.encode();
        assert_eq!(good[..16], [2, 16, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!((&good[16..19], &good[32..]), (&b"ab\0"[..], &[0xFF; 16][..]));
        assert_eq!(Parameters::parse(&good), Ok(parameters));
        assert_eq!(Parameters::parse(&[0; 48]), Ok(Parameters::default()));
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 17), Err("a bound has more than 16 bytes"));
        assert_eq!(with(1, 15), Err("the bytes behind a bound are not zero"));
        assert_eq!(with(18, 1), Err("the bytes behind a bound are not zero"));
        for reserved in 2..8 {
            assert_eq!(with(reserved, 1), Err("reserved bytes are not zero"));
        }
        assert_eq!(Parameters::parse(&good[1..]).unwrap_err().reason, "not 48 bytes");
    }

    #[test]
    fn keys_order_by_length_then_bytes() {
        let key = |bytes: &[u8]| ListKey::new(bytes).expect("a key");
        assert!(key(b"b") < key(b"aa") && key(b"aa") < key(b"ab") && key(b"a") < key(b"a\0"));
        assert!(ListKey::new(b"").is_none() && ListKey::new(&[1; 17]).is_none());
    }
}
