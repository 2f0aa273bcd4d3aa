//! [`Tables`]: what the versions multiply by, made once for a matrix.

use crate::erasure::field::multiply;

/// Products of one coefficient with the low and with the high four bits of a byte, 16 each: their
/// exclusive or is the byte's product.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Nibbles(pub(super) [u8; 32]);

/// Multiply tables of a matrix, column by column.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    columns: usize,
    rows: usize,
    /// Tables of 16 entries, for shuffles.
    pub(super) nibbles: Vec<Nibbles>,
    /// Matrices of 8x8 bits as GF2P8AFFINEQB takes them, because 11Dh is not the polynomial of the
    /// multiplication that processors have: byte 7-i has the bits that are added up for bit i.
    #[cfg(target_arch = "x86_64")]
    pub(super) matrices: Vec<u64>,
}

impl Tables {
    /// Makes the tables of a matrix, given its coefficients by column and row.
    pub(crate) fn new(columns: usize, rows: usize, of: impl Fn(usize, usize) -> u8) -> Self {
        assert!(columns <= super::SOURCES_MAX && rows <= super::OUTPUTS_MAX, "too large a matrix");
        let cells = || (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
        let nibbles = cells().map(|(column, row)| nibbles(of(column, row))).collect();
        Self {
            columns,
            rows,
            nibbles,
            #[cfg(target_arch = "x86_64")]
            matrices: cells().map(|(column, row)| bit_matrix(of(column, row))).collect(),
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

fn nibbles(coefficient: u8) -> Nibbles {
    let mut table = [0; 32];
    let (low, high) = table.split_at_mut(16);
    for (nibble, (low, high)) in (0..16).zip(low.iter_mut().zip(high)) {
        *low = multiply(coefficient, nibble);
        *high = multiply(coefficient, nibble << 4);
    }
    Nibbles(table)
}

#[cfg(any(target_arch = "x86_64", test))]
fn bit_matrix(coefficient: u8) -> u64 {
    let mut rows = [0; 8];
    for input in 0..8 {
        let product = multiply(coefficient, 1 << input);
        for (output, row) in rows.iter_mut().rev().enumerate() {
            *row |= (product >> output & 1) << input;
        }
    }
    u64::from_le_bytes(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_give_the_products() {
        for coefficient in 0..=255u8 {
            let Nibbles(nibbles) = super::nibbles(coefficient);
            let rows = bit_matrix(coefficient).to_le_bytes();
            for byte in 0..=255u8 {
                let by_nibbles =
                    nibbles[usize::from(byte & 15)] ^ nibbles[16 + usize::from(byte >> 4)];
                let bit = |output: usize| u8::from((rows[7 - output] & byte).count_ones() % 2 == 1);
                let by_bits = (0..8).fold(0, |sum, output| sum | bit(output) << output);
                assert_eq!(by_nibbles, multiply(coefficient, byte));
                assert_eq!(by_bits, by_nibbles);
            }
        }
    }
}
