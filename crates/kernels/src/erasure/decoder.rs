//! [`Decoder`]: computes lost pieces from n others, by the inverse of their rows.

use super::{Code, Error, Row, Version, count_inputs, count_outputs, matrix};
use crate::arch::erasure::Tables;

/// Computation of certain pieces from certain others, with its inverted matrix and multiply tables.
///
/// Each wanted piece is a sum of multiples of the sources, so partial sums add up here too.
#[derive(Clone, Debug)]
pub struct Decoder {
    sources: Vec<usize>,
    wanted: Vec<usize>,
    factors: Vec<Row>,
    tables: Tables,
}

impl Decoder {
    pub(super) fn new(code: &Code, sources: &[usize], wanted: &[usize]) -> Result<Self, Error> {
        count_inputs(sources.len(), code.data())?;
        let mut is_named = vec![false; code.pieces()];
        for piece in sources.iter().chain(wanted) {
            match is_named.get_mut(*piece) {
                Some(named) if !*named => *named = true,
                _ => return Err(Error::Piece(*piece)),
            }
        }
        let rows: Vec<_> = sources.iter().map(|piece| matrix::row(code.data(), *piece)).collect();
        let inverse = matrix::invert(&rows).expect("any n rows of the code can be inverted");
        let factors: Vec<Row> = wanted
            .iter()
            .map(|piece| matrix::product(&matrix::row(code.data(), *piece), &inverse))
            .collect();
        let tables = Tables::new(code.data(), wanted.len(), |column, row| factors[row][column]);
        Ok(Self { sources: sources.to_vec(), wanted: wanted.to_vec(), factors, tables })
    }

    /// Returns the numbers of the pieces that are read, in the order in which they are given.
    #[must_use]
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Returns the numbers of the pieces that are computed, in the order of their rooms.
    #[must_use]
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// Returns the factors of all sources in a wanted piece, by its index among the wanted ones: a
    /// [`super::Combiner`] with these factors computes it, as a drive does.
    ///
    /// # Panics
    /// If there is no such piece.
    #[must_use]
    pub fn factors(&self, wanted: usize) -> &[u8] {
        &self.factors[wanted][..self.sources.len()]
    }

    /// Computes the wanted pieces from the sources. A room of any length takes the beginning of its
    /// piece, padded with zeros: a data piece shorter than the stripe's longest needs only the room
    /// for its own bytes.
    ///
    /// # Errors
    /// [`Error`] if a source or a room is missing; nothing is written then.
    pub fn decode(&self, pieces: &[&[u8]], wanted: &mut [&mut [u8]]) -> Result<(), Error> {
        Version::best().decode(self, pieces, wanted)
    }

    /// Adds the products of one source, by its index among the sources, to all wanted pieces, as
    /// [`Code::accumulate`] does for parity. Bytes beyond a room are left out.
    ///
    /// # Errors
    /// [`Error`] if there is no such source or a room is missing; nothing is written then.
    pub fn accumulate(
        &self,
        source: usize,
        piece: &[u8],
        wanted: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        if source >= self.sources.len() {
            return Err(Error::Inputs { given: source + 1, needed: self.sources.len() });
        }
        count_outputs(wanted, self.wanted.len())?;
        Version::best().run.add(&self.tables, source, piece, wanted);
        Ok(())
    }

    pub(super) fn check(&self, given: usize, wanted: &[&mut [u8]]) -> Result<(), Error> {
        count_inputs(given, self.sources.len())?;
        count_outputs(wanted, self.wanted.len())
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }
}

#[cfg(test)]
mod tests {
    use super::super::Combiner;
    use super::*;

    #[test]
    fn the_factors_are_those_that_the_decoder_computes_with() {
        let code = Code::new(3, 2).unwrap();
        let decoder = code.decoder(&[4, 0, 1], &[3, 2]).unwrap();
        let pieces = [[1, 2], [3, 4], [5, 250]];
        let mut decoded = [[0; 2]; 2];
        let [one, two] = &mut decoded;
        decoder.decode(&pieces.each_ref().map(|p| &p[..]), &mut [&mut one[..], two]).unwrap();
        let combiner = Combiner::new(3, 2, |piece, sum| decoder.factors(sum)[piece]).unwrap();
        let mut summed = [[0; 2]; 2];
        let [one, two] = &mut summed;
        for (number, piece) in pieces.iter().enumerate() {
            combiner.add(number, piece, &mut [&mut one[..], two]).unwrap();
        }
        assert_eq!(summed, decoded);
    }

    #[test]
    fn a_decoder_needs_exactly_n_sources_each_named_once() {
        let code = Code::new(3, 2).unwrap();
        assert_eq!(code.decoder(&[0, 1], &[2]).unwrap_err(), Error::Inputs { given: 2, needed: 3 });
        assert_eq!(code.decoder(&[0, 1, 1], &[2]).unwrap_err(), Error::Piece(1));
        assert_eq!(code.decoder(&[0, 1, 5], &[2]).unwrap_err(), Error::Piece(5));
        assert_eq!(code.decoder(&[0, 1, 4], &[4]).unwrap_err(), Error::Piece(4));
        let decoder = code.decoder(&[4, 0, 1], &[3, 2]).unwrap();
        assert_eq!((decoder.sources(), decoder.wanted()), (&[4, 0, 1][..], &[3, 2][..]));
        let mut room = [0; 4];
        assert!(decoder.decode(&[&[1][..]; 3], &mut [&mut room]).is_err());
        assert!(decoder.accumulate(3, &[1], &mut [&mut room]).is_err());
    }
}
