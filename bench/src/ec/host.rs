//! The host's side: one thread encodes pieces in memory, by this project's code and by libisal.

use std::thread;
use std::time::Instant;

use csd_kernels::erasure::Code;
use csd_kernels::kernel::mix;

use super::shape::{CELL_BYTES, Shape};
use crate::frame::Stop;
use crate::{Error, isal};

/// Bytes of each piece that libisal takes at a time: large codes are faster so.
const SLICE_BYTES: usize = 16 << 10;

/// Shortest time for which each encoder works in a round, seconds: several passes.
pub(super) const ROUND_S: f64 = 0.5;

/// Pieces in memory, with the encoders.
pub(super) struct Host {
    shape: Shape,
    code: Code,
    /// Data in the order in which a drive stores it, which both sides cut in their own way.
    data: Vec<u8>,
    parity: Vec<Vec<u8>>,
    isal: Option<Isal>,
}

/// Passes of an encoder in a round. Other work of the machine only makes a pass longer, so the
/// fastest one counts: the host is shown at its best.
struct Passes {
    fastest_s: f64,
    /// Time without the rests of a host of less power.
    worked_s: f64,
}

impl Default for Passes {
    fn default() -> Self {
        Self { fastest_s: f64::INFINITY, worked_s: 0.0 }
    }
}

impl Passes {
    fn add(&mut self, pass_s: f64, power: f64) {
        self.fastest_s = self.fastest_s.min(pass_s);
        self.worked_s += pass_s * power;
    }
}

struct Isal {
    erasure: isal::Erasure,
    tables: Vec<u8>,
}

impl Host {
    /// Prepares the pieces, and checks that libisal computes the same parity.
    pub(super) fn new(shape: Shape, isal: Option<isal::Erasure>) -> Result<Self, Error> {
        let window = shape.window_cells() * u64::from(CELL_BYTES);
        let piece = usize::try_from(window).expect("at most 64 MiB");
        let (columns, rows) = (usize::from(shape.data()), usize::from(shape.parity()));
        let code = shape.parameters().code();
        let code = code.map_err(|error| Error::Usage(error.to_string()))?;
        let words = 0..(columns * piece / 8) as u64;
        let data: Vec<u8> = words.flat_map(|index| mix(index).to_le_bytes()).collect();
        let isal = isal.map(|erasure| {
            let coefficients = erasure.matrix(columns, rows).split_off(columns * columns);
            Isal { tables: erasure.tables(columns, rows, coefficients), erasure }
        });
        let mut host = Self { shape, code, data, parity: vec![vec![0; piece]; rows], isal };
        host.own(piece);
        let own = host.parity.clone();
        if host.by_isal(piece) && host.parity != own {
            return Err(Error::Server("libisal computes other parity: a bug".to_owned()));
        }
        Ok(host)
    }

    /// Returns the data, as a drive stores it.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the parity of the first row of cells, one cell after the other.
    pub(super) fn first_row(&self) -> Vec<u8> {
        let cell = CELL_BYTES as usize;
        let cells: Vec<&[u8]> = self.data.chunks(cell).take(self.code.data()).collect();
        let mut parity = vec![0; self.code.parity() * cell];
        let mut rooms: Vec<&mut [u8]> = parity.chunks_mut(cell).collect();
        self.code.encode(&cells, &mut rooms).expect("as many cells as the code has");
        parity
    }

    /// Encodes pass after pass, by both encoders in turns, until each has worked for [`ROUND_S`].
    /// Returns the time of an encoding of all blocks at the rate of the fastest pass, seconds: this
    /// project's, and that of libisal if it is measured.
    pub(super) fn round(&mut self, power: f64, stop: &Stop) -> Result<(f64, Option<f64>), Error> {
        let (mut own, mut isal) = (Passes::default(), self.isal.is_some().then(Passes::default));
        while own.worked_s < ROUND_S || isal.as_ref().is_some_and(|isal| isal.worked_s < ROUND_S) {
            stop.check()?;
            own.add(self.timed(power, Self::own), power);
            if let Some(isal) = &mut isal {
                let pass_s = self.timed(power, |host, bytes| {
                    host.by_isal(bytes);
                });
                isal.add(pass_s, power);
            }
        }
        let passes = self.shape.window_passes();
        Ok((own.fastest_s * passes, isal.map(|isal| isal.fastest_s * passes)))
    }

    /// Encodes a window, and rests as a host of that power would work on. Returns the time.
    fn timed(&mut self, power: f64, encode: impl Fn(&mut Self, usize)) -> f64 {
        let cells = usize::try_from(self.shape.window_cells()).expect("at most 64 MiB");
        let begin = Instant::now();
        encode(self, cells * CELL_BYTES as usize);
        if power < 1.0 {
            thread::sleep(begin.elapsed().mul_f64(1.0 / power - 1.0));
        }
        begin.elapsed().as_secs_f64()
    }

    /// Encodes the first `bytes` bytes of every piece.
    fn own(&mut self, bytes: usize) {
        let (pieces, mut rooms) = pieces(&self.data, &mut self.parity, bytes);
        self.code.encode(&pieces, &mut rooms).expect("as many pieces as the code has");
    }

    /// Encodes the same with libisal; returns false if it is not measured.
    fn by_isal(&mut self, bytes: usize) -> bool {
        let Some(isal) = &mut self.isal else { return false };
        let (pieces, mut rooms) = pieces(&self.data, &mut self.parity, bytes);
        isal.erasure.encode(&mut isal.tables, &pieces, &mut rooms, SLICE_BYTES);
        true
    }
}

/// Returns the first `bytes` bytes of every data piece, and room for as much parity.
fn pieces<'a>(
    data: &'a [u8],
    parity: &'a mut [Vec<u8>],
    bytes: usize,
) -> (Vec<&'a [u8]>, Vec<&'a mut [u8]>) {
    let piece = parity.first().map_or(1, Vec::len);
    let rooms = parity.iter_mut().map(|room| &mut room[..bytes]).collect();
    (data.chunks(piece).map(|piece| &piece[..bytes]).collect(), rooms)
}
