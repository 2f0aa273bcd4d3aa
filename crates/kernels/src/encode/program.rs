//! The program of encode: stream 0 holds the rows; the output gets their parity cells.

use super::Parameters;
use crate::erasure::{Code, DATA_MAX, PARITY_MAX};
use crate::program::{Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Encoding {
    code: Code,
    cell_bytes: usize,
    /// Beginning of a row whose end has not come.
    begun: Vec<u8>,
    parity: Vec<u8>,
    rows: u64,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    let code = parameters.code().map_err(Failure::parameters)?;
    let cell_bytes = parameters.cell_bytes as usize;
    let parity = vec![0; usize::from(parameters.parity) * cell_bytes];
    Ok(Box::new(Encoding { code, cell_bytes, begun: Vec::new(), parity, rows: 0 }))
}

impl Program for Encoding {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        let row_bytes = self.code.data() * self.cell_bytes;
        let shown = inputs.peek(0);
        let used = if self.begun.is_empty() && shown.len() >= row_bytes {
            // Rows that lie in one chunk are not copied.
            let rows = (STEP_BYTES.min(shown.len()) / row_bytes).max(1);
            for row in shown[..rows * row_bytes].chunks_exact(row_bytes) {
                self.encode(row, output);
            }
            rows * row_bytes
        } else {
            let used = shown.len().min(row_bytes - self.begun.len());
            self.begun.extend_from_slice(&shown[..used]);
            used
        };
        inputs.consume(0, used);
        output.count_work(used as u64);
        let is_over = inputs.is_over(0);
        if self.begun.len() == row_bytes || (is_over && !self.begun.is_empty()) {
            let mut row = std::mem::take(&mut self.begun);
            self.encode(&row, output);
            row.clear();
            self.begun = row;
        }
        match is_over {
            true => Ok(Step::Done { result: self.rows }),
            false => Ok(Step::after(inputs, 0)),
        }
    }
}

impl Encoding {
    /// Writes the parity of a row, whose last cells may be short or missing.
    fn encode(&mut self, row: &[u8], output: &mut Output) {
        let longest = row.len().min(self.cell_bytes);
        let mut cells: [&[u8]; DATA_MAX] = [&[]; DATA_MAX];
        for (cell, bytes) in cells.iter_mut().zip(row.chunks(self.cell_bytes)) {
            *cell = bytes;
        }
        let mut rooms: [&mut [u8]; PARITY_MAX] = Default::default();
        for (room, bytes) in rooms.iter_mut().zip(self.parity.chunks_exact_mut(self.cell_bytes)) {
            *room = &mut bytes[..longest];
        }
        let (cells, rooms) = (&cells[..self.code.data()], &mut rooms[..self.code.parity()]);
        self.code.encode(cells, rooms).expect("as many cells and rooms as the code has");
        for room in rooms {
            output.append(room);
        }
        self.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use csd_buffer::Buffer;

    use super::*;
    use crate::erasure::scalar;
    use crate::kernel::mix;
    use crate::program::{Cause, run};

    fn bytes(count: usize) -> Vec<u8> {
        (0..count as u64).map(|index| mix(index).to_le_bytes()[0]).collect()
    }

    /// Returns the parity of all rows by the scalar code.
    fn expected(parameters: Parameters, data: &[u8]) -> (u64, Vec<u8>) {
        let (cell, columns) = (parameters.cell_bytes as usize, usize::from(parameters.data));
        let mut written = Vec::new();
        let rows = data.chunks(parameters.row_bytes());
        let count = rows.len() as u64;
        for row in rows {
            let mut cells: Vec<&[u8]> = row.chunks(cell).collect();
            cells.resize(columns, &[]);
            for parity in 0..parameters.parity.into() {
                written.extend(scalar::parity(&parameters.code().unwrap(), parity, &cells));
            }
        }
        (count, written)
    }

    #[test]
    fn parity_is_that_of_the_scalar_code_however_the_bytes_arrive() {
        for (data, parity, cell_bytes) in [(1, 1, 1), (4, 2, 100), (5, 3, 64), (32, 16, 257)] {
            let parameters = Parameters { data, parity, cell_bytes };
            let row = parameters.row_bytes();
            for length in [0, 1, row - 1, row, row + 1, 3 * row + row / 2, 4 * row] {
                let data = bytes(length);
                for piece in [row.div_ceil(3), row, 2 * row + 1, 4 * row + 1] {
                    let stream = data.chunks(piece).map(Buffer::from_slice).collect();
                    let program = start(&parameters.encode()).unwrap();
                    let found = run(program, vec![stream]).unwrap();
                    assert!(
                        found == expected(parameters, &data),
                        "{parameters:?} {length} {piece}"
                    );
                }
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let refused = start(&[0; 16]).err().unwrap();
        assert_eq!(refused.cause, Cause::Parameters);
    }
}
