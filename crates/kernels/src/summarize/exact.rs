//! [`ExactSum`]: a sum of f64 and i64 values without rounding.
//!
//! A sum is an integer of 2,304 bits in two's complement, in units of 2^-1074, the smallest f64
//! above 0. The largest f64 needs 2,098 bits; the rest takes 2^64 of them. Floating-point values
//! are first added to columns of 32 bits in 64-bit words without carries, as the "small
//! superaccumulator" of R. M. Neal, "Fast exact summation using small and large superaccumulators"
//! (arXiv:1505.05571, 2015). Invariant: equal sums have equal bytes.

/// Number of 64-bit words of a sum.
const WORDS: usize = 36;
/// Size of an encoded sum, bytes.
pub(super) const BYTES: usize = WORDS * 8;
/// Position of the unit 1 in a sum, bits.
const ONE_BIT: usize = 1074;
/// Number of 32-bit columns that f64 values reach.
const COLUMNS: usize = 67;
/// Number of values that columns of 64 bits take before carries are propagated: each adds less than
/// 2^32.
const VALUES_MAX: u32 = 1 << 30;

/// An exact sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactSum([u64; WORDS]);

impl Default for ExactSum {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

/// Columns of 32 bits in 64-bit words: values are added without carries.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    words: [i64; COLUMNS],
    values: u32,
}

impl Default for Columns {
    fn default() -> Self {
        Self { words: [0; COLUMNS], values: 0 }
    }
}

impl Columns {
    /// Adds a finite value. Returns true if the columns must be moved to a sum now.
    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) -> bool {
        const MANTISSA: u64 = (1 << 52) - 1;
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as usize;
        let is_normal = u64::from(exponent != 0);
        let mantissa = bits & MANTISSA | is_normal << 52;
        // The position of the mantissa's lowest bit: subnormal numbers have that of exponent 1.
        let position = exponent.max(1) - 1;
        let wide = u128::from(mantissa) << (position % 32);
        let negative = (bits.cast_signed() >> 63, position / 32);
        let (sign, column) = negative;
        for (offset, word) in self.words[column..].iter_mut().take(3).enumerate() {
            #[allow(clippy::cast_possible_truncation)] // masked to 32 bits
            let digit = (wide >> (32 * offset)) as u32;
            // Adds the digit, or subtracts it when `sign` is -1.
            *word += (i64::from(digit) ^ sign) - sign;
        }
        self.values += 1;
        self.values == VALUES_MAX
    }
}

impl ExactSum {
    /// Adds the values in columns, which are empty then.
    pub(super) fn add_columns(&mut self, columns: &mut Columns) {
        for (column, word) in columns.words.iter().enumerate() {
            self.add_at(column * 32, i128::from(*word));
        }
        *columns = Columns::default();
    }

    /// Adds an integer.
    pub fn add_integer(&mut self, value: i128) {
        self.add_at(ONE_BIT, value);
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.add_words(&other.0);
    }

    /// Adds `value * 2^position`, in units of the lowest bit.
    fn add_at(&mut self, position: usize, value: i128) {
        if value == 0 {
            return;
        }
        let (word, shift) = (position / 64, position % 64);
        let fill = if value < 0 { u64::MAX } else { 0 };
        let bits = value.cast_unsigned();
        #[allow(clippy::cast_possible_truncation)] // the halves of 128 bits
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        let mut words = [0; WORDS];
        words[word] = low;
        words[word + 1] = high;
        words[word + 2..].fill(fill);
        if shift > 0 {
            for index in (word..WORDS).rev() {
                let below = if index > word { words[index - 1] } else { 0 };
                words[index] = words[index] << shift | below >> (64 - shift);
            }
        }
        self.add_words(&words);
    }

    fn add_words(&mut self, words: &[u64; WORDS]) {
        let mut carry = false;
        for (word, other) in self.0.iter_mut().zip(words) {
            let (sum, first) = word.overflowing_add(*other);
            let (sum, second) = sum.overflowing_add(carry.into());
            (*word, carry) = (sum, first || second);
        }
    }

    fn is_negative(&self) -> bool {
        self.0[WORDS - 1] >> 63 == 1
    }

    /// Returns the sum rounded to the nearest f64, ties to even; an infinity if it is too large.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        let mut magnitude = self.0;
        if self.is_negative() {
            let mut carry = true;
            for word in &mut magnitude {
                let (negated, overflow) = (!*word).overflowing_add(carry.into());
                (*word, carry) = (negated, overflow);
            }
        }
        let bits = magnitude_to_bits(&magnitude);
        let value = f64::from_bits(bits);
        if self.is_negative() { -value } else { value }
    }

    /// Returns the sum as an integer; `None` if it is none, or has more than 128 bits.
    #[must_use]
    pub fn to_integer(&self) -> Option<i128> {
        let (word, shift) = (ONE_BIT / 64, ONE_BIT % 64);
        let at = |index: usize| u128::from(self.0[index]);
        let low = at(word) >> shift | at(word + 1) << (64 - shift);
        let value = (low | at(word + 2) << (128 - shift)).cast_signed();
        let mut same = Self::default();
        same.add_integer(value);
        (same == *self).then_some(value)
    }

    /// Returns the sum's bytes.
    #[must_use]
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(&self.0) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// Parses a sum's bytes.
    #[must_use]
    pub(super) fn parse(bytes: &[u8; BYTES]) -> Self {
        let mut words = [0; WORDS];
        for (word, from) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*from);
        }
        Self(words)
    }
}

/// Returns the bits of the f64 nearest to a magnitude in units of 2^-1074.
fn magnitude_to_bits(magnitude: &[u64; WORDS]) -> u64 {
    let bit = |position: usize| magnitude[position / 64] >> (position % 64) & 1;
    let Some(top) = (0..WORDS * 64).rev().find(|position| bit(*position) == 1) else { return 0 };
    if top < 53 {
        // At most 53 bits are a subnormal number or one of the lowest exponents: bits as they are.
        return magnitude[0];
    }
    let shift = top - 52;
    let mantissa = (0..53).fold(0, |mantissa, index| mantissa | bit(shift + index) << index);
    let is_half = bit(shift - 1) == 1;
    let is_above = (0..shift - 1).any(|position| bit(position) == 1);
    let up = u64::from(is_half && (is_above || mantissa & 1 == 1));
    // A mantissa that overflows carries into the exponent.
    let bits = ((shift as u64) << 52) + mantissa + up;
    bits.min(f64::INFINITY.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let (mut sum, mut columns) = (ExactSum::default(), Columns::default());
        values.iter().for_each(|value| assert!(!columns.add(*value)));
        sum.add_columns(&mut columns);
        sum
    }

    #[test]
    fn one_value_is_itself() {
        let least = f64::from_bits(1);
        for value in [0.0, 1.0, -1.5, 0.1, least, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 1e300] {
            assert_eq!(sum(&[value]).to_f64().to_bits(), value.to_bits(), "{value:e}");
            assert_eq!(sum(&[value, -value]), ExactSum::default());
        }
    }

    #[test]
    fn sums_are_rounded_once_to_nearest_even() {
        let ulp = f64::EPSILON;
        let cases: [(&[f64], f64); 8] = [
            (&[1e16, 1.0, -1e16], 1.0),
            (&[1.0, 1e-300, -1.0], 1e-300),
            (&[1.0, ulp / 2.0], 1.0),
            (&[1.0 + ulp, ulp / 2.0], 1.0 + 2.0 * ulp),
            (&[1.0, ulp / 2.0, f64::from_bits(1)], 1.0 + ulp),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
            (&[f64::MAX, f64::MAX, -f64::MAX], f64::MAX),
            (&[-f64::MAX, -f64::MAX, 3.0], f64::NEG_INFINITY),
        ];
        for (values, expected) in cases {
            assert_eq!(sum(values).to_f64(), expected, "{values:?}");
        }
    }

    #[test]
    fn integers_are_exact_and_others_are_none() {
        let mut total = ExactSum::default();
        let values = [i128::from(i64::MAX) << 32, -5, 1 << 90, -(1 << 100)];
        values.iter().for_each(|value| total.add_integer(*value));
        assert_eq!(total.to_integer(), Some(values.iter().sum()));
        assert_eq!(sum(&[0.5, 3.0]).to_integer(), None);
        assert_eq!(sum(&[0.5, 3.5]).to_integer(), Some(4));
        assert_eq!(sum(&[-1e300]).to_integer(), None);
        assert_eq!(ExactSum::parse(&total.encode()), total);
    }
}
