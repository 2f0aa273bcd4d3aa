//! [`Summary`]: counts, exact sum, least and greatest of some elements.

use super::exact::{self, Columns, ExactSum};

/// Size of an encoded summary, bytes: six words of 8 bytes, then the sum.
pub const BYTES: usize = 48 + exact::BYTES;

/// Summary of elements. Summaries combine in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    numbers: u64,
    nans: u64,
    positive_infinities: u64,
    negative_infinities: u64,
    /// Least and greatest, as order keys: see [`order_key`] for floating-point numbers; integers
    /// are keys of their own.
    range: Option<(i64, i64)>,
    sum: ExactSum,
}

impl Summary {
    /// Adds integers.
    pub(super) fn add_integers(&mut self, values: impl Iterator<Item = i64>) {
        let (mut count, mut sum, mut least, mut greatest) = (0u64, 0i128, i64::MAX, i64::MIN);
        for value in values {
            count += 1;
            sum += i128::from(value);
            least = least.min(value);
            greatest = greatest.max(value);
        }
        self.numbers += count;
        self.sum.add_integer(sum);
        if count > 0 {
            self.widen((least, greatest));
        }
    }

    /// Adds floating-point numbers.
    pub(super) fn add_floats(&mut self, values: impl Iterator<Item = f64>) {
        let mut columns = Columns::default();
        let (mut least, mut greatest, mut numbers) = (i64::MAX, i64::MIN, 0);
        for value in values {
            if value.is_nan() {
                self.nans += 1;
                continue;
            }
            let key = order_key(value);
            (least, greatest) = (least.min(key), greatest.max(key));
            numbers += 1;
            if value.is_infinite() {
                let positive = u64::from(value > 0.0);
                self.positive_infinities += positive;
                self.negative_infinities += 1 - positive;
            } else if columns.add(value) {
                self.sum.add_columns(&mut columns);
            }
        }
        self.sum.add_columns(&mut columns);
        self.numbers += numbers;
        if numbers > 0 {
            self.widen((least, greatest));
        }
    }

    fn widen(&mut self, (least, greatest): (i64, i64)) {
        let (low, high) = self.range.unwrap_or((least, greatest));
        self.range = Some((low.min(least), high.max(greatest)));
    }

    /// Adds another summary.
    pub fn combine(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
        self.sum.add(&other.sum);
        if let Some(range) = other.range {
            self.widen(range);
        }
    }

    /// Returns the number of elements that are numbers.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    /// Returns the number of NaN elements.
    #[must_use]
    pub fn nans(&self) -> u64 {
        self.nans
    }

    /// Returns the sum of integers; `None` if it has more than 128 bits.
    #[must_use]
    pub fn integer_sum(&self) -> Option<i128> {
        self.sum.to_integer()
    }

    /// Returns the sum of floating-point numbers.
    #[must_use]
    pub fn float_sum(&self) -> f64 {
        match (self.positive_infinities > 0, self.negative_infinities > 0) {
            (true, true) => f64::NAN,
            (true, false) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => self.sum.to_f64(),
        }
    }

    /// Returns the least and the greatest integer; `None` if there is no number.
    #[must_use]
    pub fn integer_range(&self) -> Option<(i64, i64)> {
        self.range
    }

    /// Returns the least and the greatest floating-point number; `None` if there is no number.
    #[must_use]
    pub fn float_range(&self) -> Option<(f64, f64)> {
        self.range.map(|(least, greatest)| (from_order_key(least), from_order_key(greatest)))
    }

    /// Returns the summary's bytes, little-endian: numbers, NaNs, positive and negative infinities,
    /// least and greatest order key (both 0 without numbers), the sum.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (least, greatest) = self.range.unwrap_or((0, 0));
        let words = [
            self.numbers,
            self.nans,
            self.positive_infinities,
            self.negative_infinities,
            least.cast_unsigned(),
            greatest.cast_unsigned(),
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.sum.encode());
        bytes
    }

    /// Parses a summary's bytes; `None` if they are not [`BYTES`] long.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let (words, sum) = bytes.split_first_chunk::<48>()?;
        let word = |index: usize| u64::from_le_bytes(words.as_chunks().0[index]);
        let range = (word(4).cast_signed(), word(5).cast_signed());
        Some(Self {
            numbers: word(0),
            nans: word(1),
            positive_infinities: word(2),
            negative_infinities: word(3),
            range: (word(0) > 0).then_some(range),
            sum: ExactSum::parse(sum.try_into().ok()?),
        })
    }
}

/// Returns a key in the order of numbers, -0.0 before 0.0.
fn order_key(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ (bits >> 63) & i64::MAX
}

fn from_order_key(key: i64) -> f64 {
    let bits = key ^ (key >> 63) & i64::MAX;
    f64::from_bits(bits.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_numbers_and_convert_back() {
        let ordered = [f64::NEG_INFINITY, -2.0, -f64::MIN_POSITIVE, -0.0, 0.0, 1.0, f64::INFINITY];
        assert!(ordered.windows(2).all(|pair| order_key(pair[0]) < order_key(pair[1])));
        for value in ordered {
            assert_eq!(from_order_key(order_key(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn nan_is_counted_apart_and_infinities_follow_the_standard() {
        let of = |values: &[f64]| {
            let mut summary = Summary::default();
            summary.add_floats(values.iter().copied());
            summary
        };
        let with_nan = of(&[f64::NAN, 2.0, -0.0, f64::NAN]);
        assert_eq!((with_nan.numbers(), with_nan.nans(), with_nan.float_sum()), (2, 2, 2.0));
        assert_eq!(with_nan.float_range(), Some((-0.0, 2.0)));
        assert_eq!(of(&[f64::INFINITY, 1.0]).float_sum(), f64::INFINITY);
        assert_eq!(of(&[f64::NEG_INFINITY, 1.0]).float_sum(), f64::NEG_INFINITY);
        assert!(of(&[f64::INFINITY, f64::NEG_INFINITY]).float_sum().is_nan());
        let none = of(&[f64::NAN]);
        assert_eq!((none.float_range(), none.float_sum().to_bits()), (None, 0));
    }

    #[test]
    fn bytes_round_trip_and_others_are_refused() {
        let mut summary = Summary::default();
        assert_eq!(Summary::parse(&summary.encode()), Some(summary.clone()));
        summary.add_floats([1.5, f64::NAN, f64::INFINITY, -3.0].into_iter());
        let bytes = summary.encode();
        assert_eq!((bytes.len(), Summary::parse(&bytes)), (BYTES, Some(summary)));
        assert_eq!(Summary::parse(&bytes[1..]), None);
    }
}
