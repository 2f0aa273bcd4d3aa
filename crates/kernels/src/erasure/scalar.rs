//! Reference: byte by byte, by the field's own product, without tables of a matrix.

use super::{Code, field};

/// Returns parity piece `parity`, counted from 0, whose length is that of the longest data piece.
#[must_use]
pub fn parity(code: &Code, parity: usize, data: &[&[u8]]) -> Vec<u8> {
    let longest = data.iter().map(|piece| piece.len()).max().unwrap_or(0);
    let mut sum = vec![0; longest];
    for (column, piece) in data.iter().enumerate() {
        let factor = code.coefficient(code.data() + parity, column);
        for (sum, byte) in sum.iter_mut().zip(*piece) {
            *sum ^= field::multiply(factor, *byte);
        }
    }
    sum
}
