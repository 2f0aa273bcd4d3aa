//! The program of fingerprint: stream 0 holds the pieces. The result is their eight sums.

use super::{Parameters, SUMS, Weights};
use crate::arch::erasure::{self, Tables};
use crate::erasure::Code;
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Summing {
    parameters: Parameters,
    code: Code,
    weights: Weights,
    /// Cells of the first step, one after another.
    cells: Vec<u8>,
    /// Number of the current piece in the stream, and of its bytes so far.
    at: (usize, usize),
    /// Tables of the current cell, with its number and that of its piece in the stream.
    tables: Option<((usize, usize), Tables)>,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    let code = parameters.code().map_err(Failure::parameters)?;
    let weights = Weights::new(parameters.seed);
    let cells = vec![0; SUMS * parameters.cell_bytes()];
    Ok(Box::new(Summing { parameters, code, weights, cells, at: (0, 0), tables: None }))
}

impl Program for Summing {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let count = bytes.len();
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.add(rest);
        }
        inputs.consume(0, count);
        output.count_work(count as u64);
        if !inputs.is_over(0) {
            return Ok(Step::after(inputs, 0));
        }
        let (pieces, named) =
            (self.at.0 + usize::from(self.at.1 > 0), self.parameters.pieces.len());
        if pieces < named {
            let reason = format!("{named} pieces were named, and {pieces} are there");
            return Err(Failure::new(Cause::InputType, reason));
        }
        let cells = self.cells.chunks_exact(self.parameters.cell_bytes());
        Ok(Step::Done { result: self.weights.of_sums(cells) })
    }
}

impl Summing {
    /// Adds bytes up to the end of their cell; returns those behind it.
    fn add<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (piece, begun) = self.at;
        let (cell_bytes, piece_bytes) =
            (self.parameters.cell_bytes(), self.parameters.piece_bytes as usize);
        let (cell, from) = (begun / cell_bytes, begun % cell_bytes);
        let room = (cell_bytes - from).min(piece_bytes - begun);
        let (bytes, rest) = bytes.split_at(bytes.len().min(room));
        if self.tables.as_ref().is_none_or(|(of, _)| *of != (piece, cell)) {
            let pieces = &self.parameters.pieces;
            let named = pieces[piece.min(pieces.len() - 1)];
            let (code, number) = (&self.code, named.piece.into());
            let coefficients = self.weights.of_cell(code, named.stripe, number, cell);
            let tables = Tables::new(1, SUMS, |_, row| coefficients[row]);
            self.tables = Some(((piece, cell), tables));
        }
        if let Some((_, tables)) = &self.tables {
            let range = from..from + bytes.len();
            let cells = self.cells.chunks_exact_mut(cell_bytes);
            let mut rooms: Vec<&mut [u8]> = cells.map(|cell| &mut cell[range.clone()]).collect();
            erasure::best().run.add(tables, 0, bytes, &mut rooms);
        }
        let done = begun + bytes.len();
        self.at = if done == piece_bytes { (piece + 1, 0) } else { (piece, done) };
        rest
    }
}

#[cfg(test)]
mod tests {
    use csd_buffer::Buffer;

    use super::super::Piece;
    use super::*;
    use crate::kernel::mix;
    use crate::program::run;

    fn bytes(seed: u64, count: usize) -> Vec<u8> {
        (0..count as u64).map(|at| mix(seed << 32 | at).to_le_bytes()[0]).collect()
    }

    /// Returns the sums of pieces as a drive computes them; the stream arrives in pieces of `cut`
    /// bytes.
    fn sums(parameters: &Parameters, bytes: &[u8], cut: usize) -> Result<u64, Failure> {
        let stream = bytes.chunks(cut).map(Buffer::from_slice).collect();
        Ok(run(start(&parameters.encode())?, vec![stream])?.0)
    }

    /// Returns the parameters of one piece.
    fn one(code: &Code, piece_bytes: usize, stripe: u32, piece: usize) -> Parameters {
        Parameters {
            data: u8::try_from(code.data()).unwrap(),
            parity: u8::try_from(code.parity()).unwrap(),
            piece_bytes: u32::try_from(piece_bytes).unwrap(),
            seed: [0x1234, 77],
            pieces: vec![Piece { stripe, piece: u8::try_from(piece).unwrap() }],
        }
    }

    /// Returns all pieces of a stripe whose data pieces have these lengths.
    fn stripe(code: &Code, seed: u64, lengths: &[usize]) -> Vec<Vec<u8>> {
        let mut pieces: Vec<Vec<u8>> =
            (seed..).zip(lengths).map(|(seed, count)| bytes(seed, *count)).collect();
        pieces.resize(code.data(), Vec::new());
        let slices: Vec<&[u8]> = pieces.iter().map(|piece| &piece[..]).collect();
        let longest = lengths.iter().copied().max().unwrap();
        let mut parity = vec![vec![0; longest]; code.parity()];
        let mut rooms: Vec<&mut [u8]> = parity.iter_mut().map(|room| &mut room[..]).collect();
        code.encode(&slices, &mut rooms).unwrap();
        pieces.extend(parity);
        pieces
    }

    /// Returns the sums of a stripe's pieces, each from a drive of its own.
    fn of_stripe(code: &Code, piece_bytes: usize, number: u32, pieces: &[Vec<u8>]) -> u64 {
        let there = pieces.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        there.fold(0, |sum, (piece, bytes)| {
            sum ^ sums(&one(code, piece_bytes, number, piece), bytes, 5000).unwrap()
        })
    }

    #[test]
    fn sums_of_code_words_add_up_to_zero_and_those_of_others_do_not() {
        for (data, parity, piece_bytes) in
            [(1, 1, 40_000_usize), (4, 2, 33_000), (5, 3, 100), (2, 2, 1)]
        {
            let code = Code::new(data, parity).unwrap();
            let lengths = [&vec![piece_bytes; data - 1][..], &[piece_bytes.div_ceil(3)]].concat();
            for number in [0, 9] {
                let mut pieces = stripe(&code, 1, &lengths);
                let found = of_stripe(&code, piece_bytes, number, &pieces);
                assert_eq!(found, 0, "{data}+{parity}, stripe {number}");
                for piece in 0..pieces.len() {
                    let last = pieces[piece].len() - 1;
                    for at in [0, last / 2, last] {
                        pieces[piece][at] ^= 1;
                        assert_ne!(of_stripe(&code, piece_bytes, number, &pieces), 0);
                        pieces[piece][at] ^= 1;
                    }
                }
                // Damage in two pieces, and two exchanged; of one data piece parity is a copy.
                let mut twice = pieces.clone();
                (twice[0][0], twice[data][0]) = (twice[0][0] ^ 4, twice[data][0] ^ 8);
                assert_ne!(of_stripe(&code, piece_bytes, number, &twice), 0);
                pieces.swap(0, data);
                assert!(
                    data == 1
                        || piece_bytes == 1
                        || of_stripe(&code, piece_bytes, number, &pieces) != 0
                );
            }
        }
    }

    #[test]
    fn pieces_of_several_stripes_add_up_however_the_bytes_arrive() {
        let (code, piece_bytes) = (Code::new(3, 2).unwrap(), 20_000);
        let named = [(4, 1), (0, 4), (9, 2)];
        let pieces: Vec<Vec<u8>> =
            [20_000, 20_000, 777].iter().map(|count| bytes(*count as u64, *count)).collect();
        let apart = named.iter().zip(&pieces).fold(0, |sum, ((stripe, piece), bytes)| {
            sum ^ sums(&one(&code, piece_bytes, *stripe, *piece), bytes, 1 << 20).unwrap()
        });
        let name = |(stripe, piece): (u32, usize)| one(&code, piece_bytes, stripe, piece).pieces[0];
        let pieces_named = named.map(name).to_vec();
        let together = Parameters { pieces: pieces_named, ..one(&code, piece_bytes, 0, 0) };
        for cut in [1, 16_384, 19_999, 20_001, 1 << 20] {
            assert_eq!(sums(&together, &pieces.concat(), cut), Ok(apart), "{cut}");
        }
        let less = sums(&together, &pieces[..2].concat(), 4096).unwrap_err();
        assert_eq!(less.cause, Cause::InputType);
        assert_eq!(less.reason, "3 pieces were named, and 2 are there");
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        // Recorded once: a drive and a host of different versions agree on them.
        let code = Code::new(2, 1).unwrap();
        let (data, weights) = (bytes(3, 20_000), Weights::new([0x1234, 77]));
        let coefficient = |cell: usize, sum: usize| weights.of_cell(&code, 5, 1, cell)[sum];
        let mut cells = vec![vec![0u8; 16 << 10]; SUMS];
        for (at, byte) in data.iter().enumerate() {
            for (sum, cell) in cells.iter_mut().enumerate() {
                let product = crate::erasure::field::multiply(coefficient(at >> 14, sum), *byte);
                cell[at & 0x3FFF] ^= product;
            }
        }
        let expected = weights.of_sums(cells.iter().map(|cell| &cell[..]));
        assert_eq!(sums(&one(&code, 1 << 20, 5, 1), &data, 4096), Ok(expected));
    }
}
