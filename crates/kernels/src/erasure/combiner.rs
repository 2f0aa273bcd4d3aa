//! [`Combiner`]: sums of products with any factors, for pieces that come one after the other.

use super::{DATA_MAX, Error, PARITY_MAX, Version, count_outputs};
use crate::arch::erasure::Tables;

/// Sums of products of pieces, with their multiply tables.
///
/// Sums of zeros to which every piece was added once, in any order, are complete.
#[derive(Clone, Debug)]
pub struct Combiner {
    pieces: usize,
    sums: usize,
    tables: Tables,
}

impl Combiner {
    /// Makes the tables of `sums` sums of `pieces` pieces; `factor` gives the factor of a piece in
    /// a sum.
    ///
    /// # Errors
    /// [`Error::Shape`] for no pieces, or more pieces or sums than a code has at most.
    pub fn new(
        pieces: usize,
        sums: usize,
        factor: impl Fn(usize, usize) -> u8,
    ) -> Result<Self, Error> {
        if !(1..=DATA_MAX).contains(&pieces) || sums > PARITY_MAX {
            return Err(Error::Shape { data: pieces, parity: sums });
        }
        Ok(Self { pieces, sums, tables: Tables::new(pieces, sums, factor) })
    }

    /// Adds the products of a piece to all sums. Bytes beyond a sum's room are left out.
    ///
    /// # Errors
    /// [`Error`] if there is no such piece or a room is missing; nothing is written then.
    pub fn add(&self, piece: usize, bytes: &[u8], sums: &mut [&mut [u8]]) -> Result<(), Error> {
        if piece >= self.pieces {
            return Err(Error::Piece(piece));
        }
        count_outputs(sums, self.sums)?;
        Version::best().run.add(&self.tables, piece, bytes, sums);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::multiply;
    use super::*;

    fn bytes(seed: u8, count: usize) -> Vec<u8> {
        (0..=u8::MAX).cycle().take(count).map(|at| at.wrapping_mul(31) ^ seed).collect()
    }

    #[test]
    fn sums_are_those_of_the_field_whatever_the_lengths() {
        let pieces = [bytes(1, 1000), bytes(2, 999), bytes(3, 300)];
        let factor = |piece: usize, sum: usize| [[1, 0, 7], [9, 0xFF, 2]][sum][piece];
        let combiner = Combiner::new(3, 2, factor).unwrap();
        let (mut one, mut two) = (vec![0; 1000], vec![0; 500]);
        for (piece, bytes) in pieces.iter().enumerate() {
            combiner.add(piece, bytes, &mut [&mut one, &mut two]).unwrap();
        }
        let expected = |sum: usize, at: usize| {
            let byte = |piece: usize| pieces[piece].get(at).copied().unwrap_or(0);
            (0..3).fold(0, |all, piece| all ^ multiply(factor(piece, sum), byte(piece)))
        };
        assert!(one.iter().enumerate().all(|(at, byte)| *byte == expected(0, at)));
        assert!(two.iter().enumerate().all(|(at, byte)| *byte == expected(1, at)));
    }

    #[test]
    fn other_numbers_than_a_code_has_are_refused() {
        assert!(Combiner::new(0, 1, |_, _| 1).is_err());
        assert!(Combiner::new(33, 1, |_, _| 1).is_err());
        assert!(Combiner::new(1, 17, |_, _| 1).is_err());
        let none = Combiner::new(2, 0, |_, _| 1).unwrap();
        assert_eq!(none.add(1, &[1], &mut []), Ok(()));
        assert_eq!(none.add(2, &[1], &mut []), Err(Error::Piece(2)));
        assert!(none.add(1, &[1], &mut [&mut [0]]).is_err());
    }
}
