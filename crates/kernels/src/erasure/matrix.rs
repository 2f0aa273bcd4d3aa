//! Matrices over the field: the rows of the code, and their inversion.

use super::field::{inverse, multiply};
use super::{DATA_MAX, Row};

/// Returns the factor of data piece `column` in piece `piece` of a code with `data` data pieces:
/// 1/(piece xor column) for parity (ISA-L's `gf_gen_cauchy1_matrix`), the identity for data.
pub(super) fn coefficient(data: usize, piece: usize, column: usize) -> u8 {
    if piece < data {
        return u8::from(piece == column);
    }
    let [difference, ..] = (piece ^ column).to_le_bytes();
    inverse(difference).expect("the number of a parity piece is not that of a data piece")
}

/// Returns the row of a piece.
pub(super) fn row(data: usize, piece: usize) -> Row {
    let mut row = [0; DATA_MAX];
    for (column, cell) in row[..data].iter_mut().enumerate() {
        *cell = coefficient(data, piece, column);
    }
    row
}

/// Inverts the square matrix of the first `rows.len()` columns by Gauss-Jordan elimination; `None`
/// if it is singular.
pub(super) fn invert(rows: &[Row]) -> Option<Vec<Row>> {
    let size = rows.len();
    let mut left = rows.to_vec();
    let mut right: Vec<Row> = (0..size).map(|index| row(size, index)).collect();
    for column in 0..size {
        let pivot = (column..size).find(|index| left[*index][column] != 0)?;
        left.swap(column, pivot);
        right.swap(column, pivot);
        let factor = inverse(left[column][column])?;
        scale(&mut left[column], factor);
        scale(&mut right[column], factor);
        let (of_left, of_right) = (left[column], right[column]);
        for other in (0..size).filter(|other| *other != column) {
            let factor = left[other][column];
            add_multiple(&mut left[other], &of_left, factor);
            add_multiple(&mut right[other], &of_right, factor);
        }
    }
    Some(right)
}

/// Returns the product of a row and a square matrix.
pub(super) fn product(row: &Row, matrix: &[Row]) -> Row {
    let mut sum = [0; DATA_MAX];
    for (factor, other) in row.iter().zip(matrix) {
        add_multiple(&mut sum, other, *factor);
    }
    sum
}

fn scale(row: &mut Row, factor: u8) {
    for cell in row {
        *cell = multiply(*cell, factor);
    }
}

fn add_multiple(row: &mut Row, other: &Row, factor: u8) {
    for (cell, other) in row.iter_mut().zip(other) {
        *cell ^= multiply(*other, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_the_known_one() {
        // Rows of `gf_gen_cauchy1_matrix` of libisal 2.30.
        let of = |data: usize, piece: usize| row(data, piece)[..data].to_vec();
        assert_eq!(of(4, 4), [0x47, 0xA7, 0x7A, 0xBA]);
        assert_eq!(of(4, 5), [0xA7, 0x47, 0xBA, 0x7A]);
        assert_eq!(of(4, 2), [0, 0, 1, 0]);
        assert_eq!(of(8, 8), [0xAD, 0x9D, 0xDD, 0x98, 0x3D, 0xAA, 0x5D, 0x96]);
        assert_eq!(of(8, 9), [0x9D, 0xAD, 0x98, 0xDD, 0xAA, 0x3D, 0x96, 0x5D]);
        assert_eq!(of(32, 32)[..8], [0x6C, 0xED, 0x39, 0x51, 0x60, 0x56, 0x2C, 0x8A]);
        assert_eq!(of(32, 47)[28..], [0x2E, 0x6F, 0x89, 0x48]);
    }

    #[test]
    fn sampled_square_parts_of_the_largest_code_are_not_singular() {
        let mut state = 1u64;
        let mut next = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for _ in 0..400 {
            let size = 1 + next(16);
            let mut pick = |from: usize, count: usize| {
                let mut all: Vec<usize> = (from..from + count).collect();
                (0..size).map(|_| all.swap_remove(next(all.len()))).collect::<Vec<_>>()
            };
            let (rows, columns) = (pick(32, 16), pick(0, 32));
            let mut minor = vec![[0; DATA_MAX]; size];
            for (row, piece) in minor.iter_mut().zip(&rows) {
                for (cell, column) in row.iter_mut().zip(&columns) {
                    *cell = coefficient(32, *piece, *column);
                }
            }
            let inverted = invert(&minor).expect("every square part of a Cauchy matrix inverts");
            for (index, row) in minor.iter().enumerate() {
                assert_eq!(product(row, &inverted)[..size], self::row(size, index)[..size]);
            }
        }
    }

    #[test]
    fn a_singular_matrix_is_found() {
        let mut rows = vec![row(4, 4), row(4, 5)];
        assert!(invert(&rows).is_some());
        rows[1] = rows[0];
        assert_eq!(invert(&rows), None);
    }
}
