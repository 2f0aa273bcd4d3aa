//! Erasure code: a stripe of n data pieces and k parity pieces, any n of which give all others.
//!
//! The code is a systematic Reed-Solomon code over GF(2^8) modulo 11Dh, by a Cauchy matrix (Blömer
//! et al., "An XOR-based erasure-resilient coding scheme", 1995). Pieces are numbered from 0,
//! data first. Parity piece i is the sum of all data pieces j, each times 1/(i xor j): the matrix
//! of ISA-L's `gf_gen_cauchy1_matrix`, every square part of which can be inverted. Byte b of a
//! parity piece depends only on byte b of each data piece.
//!
//! The pieces of a stripe may differ in length: a shorter one counts as padded with zeros to the
//! longest, and parity has the length of the longest. Multiply tables are made once for each
//! matrix; [`Code::encode`], [`Decoder::decode`] and both `accumulate` allocate nothing. Invariant:
//! every version gives the bytes of [`scalar`], at any length and alignment.

mod combiner;
mod decoder;
pub(crate) mod field;
mod matrix;
pub mod scalar;

pub use combiner::Combiner;
pub use decoder::Decoder;
use std::fmt;

use crate::arch;
use crate::arch::erasure::{OUTPUTS_MAX, SOURCES_MAX, Tables};

/// Greatest number of data pieces.
pub const DATA_MAX: usize = SOURCES_MAX;
/// Greatest number of parity pieces.
pub const PARITY_MAX: usize = OUTPUTS_MAX;

/// Coefficients of all data pieces in one piece.
type Row = [u8; DATA_MAX];

/// Reason why nothing was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no code with these numbers of pieces.
    Shape {
        /// Number of data pieces.
        data: usize,
        /// Number of parity pieces.
        parity: usize,
    },
    /// Another number of pieces was needed as input.
    Inputs {
        /// Number of pieces given.
        given: usize,
        /// Number of pieces needed.
        needed: usize,
    },
    /// Room for another number of pieces was needed.
    Outputs {
        /// Number of pieces with room.
        given: usize,
        /// Number of pieces needed.
        needed: usize,
    },
    /// The stripe has no such piece, or it was named twice.
    Piece(usize),
    /// Parity has less room than the longest data piece has bytes.
    Room {
        /// Room for a parity piece, bytes.
        given: usize,
        /// Length of the longest data piece, bytes.
        needed: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { data, parity } => write!(
                f,
                "no code with {data} data and {parity} parity pieces: it takes 1 to {DATA_MAX} \
                 and 1 to {PARITY_MAX}"
            ),
            Self::Inputs { given, needed } => write!(f, "{given} pieces given, {needed} needed"),
            Self::Outputs { given, needed } => {
                write!(f, "room for {given} pieces given, for {needed} needed")
            }
            Self::Piece(piece) => write!(f, "piece {piece} is not in the stripe, or named twice"),
            Self::Room { given, needed } => {
                write!(f, "{given} bytes of room for parity of {needed} bytes")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Code of a stripe, with its multiply tables.
#[derive(Clone, Debug)]
pub struct Code {
    data: usize,
    parity: usize,
    tables: Tables,
}

impl Code {
    /// Makes the code with these numbers of data and parity pieces.
    ///
    /// # Errors
    /// [`Error::Shape`] if either number is 0 or above its maximum.
    pub fn new(data: usize, parity: usize) -> Result<Self, Error> {
        if !(1..=DATA_MAX).contains(&data) || !(1..=PARITY_MAX).contains(&parity) {
            return Err(Error::Shape { data, parity });
        }
        let tables =
            Tables::new(data, parity, |column, row| matrix::coefficient(data, data + row, column));
        Ok(Self { data, parity, tables })
    }

    /// Returns the number of data pieces.
    #[must_use]
    pub fn data(&self) -> usize {
        self.data
    }

    /// Returns the number of parity pieces.
    #[must_use]
    pub fn parity(&self) -> usize {
        self.parity
    }

    /// Returns the number of pieces of a stripe.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.data + self.parity
    }

    /// Returns the factor of data piece `column` in piece `piece`.
    ///
    /// # Panics
    /// If the stripe has no such pieces.
    #[must_use]
    pub fn coefficient(&self, piece: usize, column: usize) -> u8 {
        assert!(piece < self.pieces() && column < self.data, "no such piece");
        matrix::coefficient(self.data, piece, column)
    }

    /// Computes all parity pieces from all data pieces. Room beyond the longest data piece is
    /// filled with zeros.
    ///
    /// # Errors
    /// [`Error`] if a piece or its room is missing or parity's room is too short; nothing is
    /// written then.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), Error> {
        Version::best().encode(self, data, parity)
    }

    /// Adds the products of one data piece to all parity pieces. Parity of zeros to which every
    /// data piece was added once, in any order, is the stripe's parity; a piece that is added
    /// again is removed.
    ///
    /// # Errors
    /// As [`Code::encode`], and [`Error::Piece`] if there is no such data piece.
    pub fn accumulate(
        &self,
        column: usize,
        piece: &[u8],
        parity: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        Version::best().accumulate(self, column, piece, parity)
    }

    /// Prepares the computation of pieces from `sources`, the numbers of exactly n others.
    ///
    /// # Errors
    /// [`Error::Inputs`] for another number of sources; [`Error::Piece`] for a piece that is not in
    /// the stripe or is named twice, be it as source and wanted.
    pub fn decoder(&self, sources: &[usize], wanted: &[usize]) -> Result<Decoder, Error> {
        Decoder::new(self, sources, wanted)
    }

    fn check_room(&self, longest: usize, parity: &[&mut [u8]]) -> Result<(), Error> {
        count_outputs(parity, self.parity)?;
        match parity.iter().map(|piece| piece.len()).min() {
            Some(given) if given < longest => Err(Error::Room { given, needed: longest }),
            _ => Ok(()),
        }
    }
}

fn count_inputs(given: usize, needed: usize) -> Result<(), Error> {
    if given == needed { Ok(()) } else { Err(Error::Inputs { given, needed }) }
}

fn count_outputs(outputs: &[&mut [u8]], needed: usize) -> Result<(), Error> {
    let given = outputs.len();
    if given == needed { Ok(()) } else { Err(Error::Outputs { given, needed }) }
}

/// Compiled version of the code that this machine can run.
pub type Version = arch::Version<arch::erasure::Functions>;

impl Version {
    /// Returns every version that this machine can run, the one that [`Code`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::erasure::versions()
    }

    fn best() -> Self {
        arch::erasure::best()
    }

    /// Encodes as [`Code::encode`] does.
    ///
    /// # Errors
    /// Those of [`Code::encode`].
    pub fn encode(
        self,
        code: &Code,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        count_inputs(data.len(), code.data)?;
        let longest = data.iter().map(|piece| piece.len()).max().unwrap_or(0);
        code.check_room(longest, parity)?;
        self.run.set(&code.tables, data, parity);
        Ok(())
    }

    /// Adds as [`Code::accumulate`] does.
    ///
    /// # Errors
    /// Those of [`Code::accumulate`].
    pub fn accumulate(
        self,
        code: &Code,
        column: usize,
        piece: &[u8],
        parity: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        if column >= code.data {
            return Err(Error::Piece(column));
        }
        code.check_room(piece.len(), parity)?;
        self.run.add(&code.tables, column, piece, parity);
        Ok(())
    }

    /// Decodes as [`Decoder::decode`] does.
    ///
    /// # Errors
    /// Those of [`Decoder::decode`].
    pub fn decode(
        self,
        decoder: &Decoder,
        pieces: &[&[u8]],
        wanted: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        decoder.check(pieces.len(), wanted)?;
        self.run.set(decoder.tables(), pieces, wanted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_beyond_the_limits_are_refused() {
        for (data, parity) in [(0, 1), (1, 0), (33, 1), (32, 17), (usize::MAX, 1)] {
            let error = Code::new(data, parity).unwrap_err();
            assert_eq!(error, Error::Shape { data, parity });
            assert!(error.to_string().ends_with("it takes 1 to 32 and 1 to 16"));
        }
        assert_eq!(Code::new(32, 16).unwrap().pieces(), 48);
    }

    #[test]
    fn missing_pieces_and_short_rooms_are_refused_before_anything_is_written() {
        let code = Code::new(2, 1).unwrap();
        let mut room = [7; 3];
        let error = code.encode(&[&[1]], &mut [&mut room]).unwrap_err();
        assert_eq!(error.to_string(), "1 pieces given, 2 needed");
        let error = code.encode(&[&[1], &[1; 4]], &mut [&mut room]).unwrap_err();
        assert_eq!(error.to_string(), "3 bytes of room for parity of 4 bytes");
        let error = code.encode(&[&[1], &[1]], &mut []).unwrap_err();
        assert_eq!(error.to_string(), "room for 0 pieces given, for 1 needed");
        assert_eq!(code.accumulate(2, &[1], &mut [&mut room]), Err(Error::Piece(2)));
        assert!(code.accumulate(1, &[1; 4], &mut [&mut room]).is_err());
        assert_eq!(room, [7; 3]);
    }
}
