//! Fingerprint: eight sums over GF(2^8) of the pieces of an erasure code, by which a host knows
//! that stripes are code words without seeing their bytes.
//!
//! The code is linear, so sums of its pieces with suitable weights obey the same equations as the
//! pieces: homomorphic fingerprinting (Hendricks, Ganger, Reiter, "Verifying distributed
//! erasure-coded data", 2007). It is no rolling hash such as Rabin's.
//!
//! A sum adds up the bytes of a piece, each times a weight that follows from the host's seed, the
//! stripe, the number of the piece and the position of the byte. The weights of a data piece are
//! those of the parity pieces, each times the data piece's coefficient in that parity piece. So the
//! sums of all pieces of a stripe add up to 0 if the stripe is a code word of [`crate::erasure`],
//! and so do those of any stripes in any drives. A shorter piece counts as padded with zeros.
//!
//! Sums are made in two steps. All cells of all pieces are added up, times eight random
//! coefficients each, and eight sums of the bytes of these eight cells are the result. If the
//! weights were random, the sums of pieces that are no code words would be 0 with a probability of
//! 2^-63 at most: 2^-64 in each step ([`Weights`]).
//!
//! Invariant: the result depends neither on the pieces of the stream in which bytes arrive, nor on
//! the order of the pieces.

mod kernel;
mod program;
mod weights;

pub use kernel::KERNEL;
pub use weights::Weights;

use crate::erasure::{self, Code, DATA_MAX, PARITY_MAX};
use crate::numeric::Malformed;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 10;
/// Name of the kernel.
pub const NAME: &str = "fingerprint";
/// Length of a piece, bytes: at most this.
pub const PIECE_BYTES_MAX: u32 = 8 << 20;
/// Maximum number of named pieces, that of the chunks of an execution.
pub const PIECES_MAX: usize = 256;
/// Length of a cell of a piece, bytes.
const CELL_BYTES: usize = 16 << 10;
/// Number of sums.
const SUMS: usize = 8;
/// Length of the parameters before the names of pieces, bytes.
const HEADER_BYTES: usize = 24;
/// Length of the name of a piece, bytes.
const NAME_BYTES: usize = 8;

/// Piece of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the stripe, below 2^31.
    pub stripe: u32,
    /// Number in the stripe: data from 0 on, parity from n on.
    pub piece: u8,
}

/// Parameters: the code, the seed of the weights, and the pieces of the stream, in order.
///
/// | bytes | meaning |
/// |---|---|
/// | 0 | data pieces n of a stripe, 1 to 32 |
/// | 1 | parity pieces k of a stripe, 1 to 16 |
/// | 2..4 | reserved, 0 |
/// | 4..8 | length of every piece but the last, bytes, little-endian, 1 to 8 MiB |
/// | 8..24 | seed, two numbers |
/// | 24.. | 8 bytes for each piece, 1 to 256 of them: stripe (4), number (1), 3 zeros |
///
/// If the stream has more pieces, they are counted as the last one again, so that the kernel can be
/// measured on any number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Number of data pieces of a stripe.
    pub data: u8,
    /// Number of parity pieces of a stripe.
    pub parity: u8,
    /// Length of every piece but the last, bytes.
    pub piece_bytes: u32,
    /// Seed of the weights.
    pub seed: [u64; 2],
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![self.data, self.parity, 0, 0];
        data.extend_from_slice(&self.piece_bytes.to_le_bytes());
        self.seed.iter().for_each(|word| data.extend_from_slice(&word.to_le_bytes()));
        for Piece { stripe, piece } in &self.pieces {
            data.extend_from_slice(&stripe.to_le_bytes());
            data.extend_from_slice(&[*piece, 0, 0, 0]);
        }
        data
    }

    /// Parses parameters.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let (header, names) =
            bytes.split_first_chunk::<HEADER_BYTES>().ok_or(malformed("shorter than 24 bytes"))?;
        let (names, []) = names.as_chunks::<NAME_BYTES>() else {
            return Err(malformed("the name of a piece is cut"));
        };
        let [data, parity, 0, 0, ..] = *header else {
            return Err(malformed("reserved bytes are not zero"));
        };
        if !(1..=DATA_MAX).contains(&data.into()) || !(1..=PARITY_MAX).contains(&parity.into()) {
            return Err(malformed("not 1 to 32 data and 1 to 16 parity pieces"));
        }
        let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("24 bytes"));
        let (piece_bytes, seed) = (word(0) >> 32, [word(8), word(16)]);
        let piece_bytes = u32::try_from(piece_bytes).expect("the upper half of a word");
        if !(1..=PIECE_BYTES_MAX).contains(&piece_bytes) {
            return Err(malformed("a piece has not 1 to 8388608 bytes"));
        }
        if !(1..=PIECES_MAX).contains(&names.len()) {
            return Err(malformed("not 1 to 256 pieces"));
        }
        let mut pieces = Vec::with_capacity(names.len());
        for [a, b, c, d, piece, rest @ ..] in names {
            let (stripe, piece) = (u32::from_le_bytes([*a, *b, *c, *d]), *piece);
            if *rest != [0; 3] || stripe >> 31 != 0 || piece >= data + parity {
                return Err(malformed("a stripe has no such piece"));
            }
            pieces.push(Piece { stripe, piece });
        }
        Ok(Self { data, parity, piece_bytes, seed, pieces })
    }

    /// Makes the code of the stripes.
    fn code(&self) -> Result<Code, erasure::Error> {
        Code::new(self.data.into(), self.parity.into())
    }

    /// Returns the length of a cell, bytes.
    fn cell_bytes(&self) -> usize {
        CELL_BYTES.min(self.piece_bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Parameters {
        let pieces = vec![Piece { stripe: 0x0102, piece: 5 }, Piece { stripe: 7, piece: 0 }];
        Parameters { data: 4, parity: 2, piece_bytes: 0x0001_F480, seed: [1, 2 << 56], pieces }
    }

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let good = sample().encode();
        let header = [4, 2, 0, 0, 0x80, 0xF4, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(good[..16], header);
        assert_eq!(good[16..24], [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(good[24..], [2, 1, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Parameters::parse(&good), Ok(sample()));
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        for (index, byte) in [(0, 0), (0, 33), (1, 0), (1, 17)] {
            assert_eq!(with(index, byte), Err("not 1 to 32 data and 1 to 16 parity pieces"));
        }
        for reserved in [2, 3] {
            assert_eq!(with(reserved, 1), Err("reserved bytes are not zero"));
        }
        for (index, byte) in [(27, 0x80), (28, 6), (29, 1), (39, 1)] {
            assert_eq!(with(index, byte), Err("a stripe has no such piece"), "{index}");
        }
        assert_eq!(with(7, 1), Err("a piece has not 1 to 8388608 bytes"));
        let reason = |data: &[u8]| Parameters::parse(data).unwrap_err().reason;
        assert_eq!(reason(&good[..23]), "shorter than 24 bytes");
        assert_eq!(reason(&good[..24]), "not 1 to 256 pieces");
        assert_eq!(reason(&good[..31]), "the name of a piece is cut");
        let many = Parameters { pieces: vec![sample().pieces[0]; 257], ..sample() };
        assert_eq!(reason(&many.encode()), "not 1 to 256 pieces");
        let empty = Parameters { piece_bytes: 0, ..sample() };
        assert_eq!(reason(&empty.encode()), "a piece has not 1 to 8388608 bytes");
    }
}
