//! [`Weights`]: the coefficients of a fingerprint, eight at a time, one for each sum.
//!
//! They come from a generator for tests and simulations, not from a cipher: a host that draws the
//! seed after the bytes were written need not fear that they were made to fit it.

use crate::erasure::{Code, field::multiply};
use crate::kernel::mix;

/// Bit of the positions of the second step.
const SECOND: u64 = 1 << 63;
/// Bits of the number of a cell in its piece, and of that of a parity piece.
const CELL_BITS: u32 = 10;
const PARITY_BITS: u32 = 4;

/// Weights of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    seed: [u64; 2],
}

impl Weights {
    /// Returns the weights of a seed.
    #[must_use]
    pub fn new(seed: [u64; 2]) -> Self {
        Self { seed }
    }

    fn word(&self, position: u64) -> u64 {
        mix(mix(position ^ self.seed[0]) ^ self.seed[1])
    }

    /// Returns the coefficients of a cell of a piece in the first step.
    pub(super) fn of_cell(&self, code: &Code, stripe: u32, piece: usize, cell: usize) -> [u8; 8] {
        let of_parity = |row: usize| {
            let stripe = u64::from(stripe) << (CELL_BITS + PARITY_BITS);
            self.word(stripe | (row << CELL_BITS | cell) as u64)
        };
        let coefficients = match piece.checked_sub(code.data()) {
            Some(row) => of_parity(row),
            None => (0..code.parity())
                .map(|row| times(of_parity(row), code.coefficient(code.data() + row, piece)))
                .fold(0, |sum, word| sum ^ word),
        };
        coefficients.to_le_bytes()
    }

    /// Returns the sums of the second step, a byte each, of the cells of the first one.
    pub(super) fn of_sums<'a>(&self, cells: impl Iterator<Item = &'a [u8]>) -> u64 {
        let mut sums = 0;
        for (cell, bytes) in (0..).zip(cells) {
            for (at, byte) in (0..).zip(bytes).filter(|(_, byte)| **byte != 0) {
                let at: u64 = at;
                sums ^= times(self.word(SECOND | cell << 32 | at), *byte);
            }
        }
        sums
    }
}

/// Returns the products of eight bytes with one.
fn times(bytes: u64, factor: u8) -> u64 {
    const TOP: u64 = 0x8080_8080_8080_8080;
    let (mut power, mut product) = (bytes, 0);
    for bit in 0..8 {
        if factor >> bit & 1 == 1 {
            product ^= power;
        }
        let carry = power & TOP;
        // Each byte times 2, modulo 11Dh.
        power = ((power ^ carry) << 1) ^ ((carry >> 7) * 0x1D);
    }
    debug_assert_eq!(product.to_le_bytes()[0], multiply(bytes.to_le_bytes()[0], factor));
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_products_are_those_of_the_field() {
        for factor in 0..=255 {
            for start in (0..=248).step_by(8) {
                let bytes: [u8; 8] =
                    std::array::from_fn(|lane| start + u8::try_from(lane).unwrap());
                let products = times(u64::from_le_bytes(bytes), factor).to_le_bytes();
                assert_eq!(products, bytes.map(|byte| multiply(byte, factor)));
            }
        }
    }

    #[test]
    fn positions_have_weights_of_their_own() {
        let (weights, code) = (Weights::new([3, 4]), Code::new(2, 2).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for stripe in [0, 1, 2, (1 << 31) - 1] {
            for (piece, cell) in [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (2, 511)] {
                assert!(seen.insert(weights.of_cell(&code, stripe, piece, cell)));
            }
        }
        let other = Weights::new([3, 5]);
        assert_ne!(other.of_cell(&code, 0, 0, 0), weights.of_cell(&code, 0, 0, 0));
    }
}
