//! [`Shape`]: the size of an encoding.

use std::fmt;

use csd_kernels::encode::Parameters;
use csd_kernels::erasure::{DATA_MAX, PARITY_MAX};

use crate::Error;

/// Size of a cell of the drive's rows, bytes: any whole number of MB has whole cells.
pub const CELL_BYTES: u32 = 8000;
/// Most bytes of data in memory on either side; more are encoded in passes over the same bytes.
pub const WINDOW_BYTES: u64 = 64 << 20;
/// Most bytes of a block.
const BLOCK_BYTES_MAX: u64 = 16_000_000_000;

/// An (n, k) encoding with n = 2 k, as in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    parity: u8,
    block_bytes: u64,
}

impl Shape {
    /// Returns the shape with so many blocks, data and parity together, of this size.
    ///
    /// # Errors
    /// [`Error::Usage`] if two thirds of the blocks cannot be data, there are more than the code
    /// takes, or a block is not whole cells.
    pub fn new(blocks: u64, block_bytes: u64) -> Result<Self, Error> {
        let parity = u8::try_from(blocks / 3).unwrap_or(u8::MAX);
        let (data_max, parity_max) = (DATA_MAX, PARITY_MAX);
        if !blocks.is_multiple_of(3) || !(1..=parity_max).contains(&parity.into()) {
            let most = data_max + parity_max;
            return Err(Error::Usage(format!(
                "{blocks} blocks: a third of them is parity, so their number is a multiple of 3, \
                 3 to {most}"
            )));
        }
        if !block_bytes.is_multiple_of(CELL_BYTES.into())
            || !(1..=BLOCK_BYTES_MAX).contains(&block_bytes)
        {
            return Err(Error::Usage(format!(
                "a block of {block_bytes} bytes: it has a multiple of {CELL_BYTES} bytes, at most \
                 16 GB"
            )));
        }
        Ok(Self { parity, block_bytes })
    }

    /// Returns the number of data blocks, n.
    pub fn data(&self) -> u8 {
        2 * self.parity
    }

    /// Returns the number of parity blocks, k.
    pub fn parity(&self) -> u8 {
        self.parity
    }

    /// Returns the number of blocks after encoding, n + k.
    pub fn blocks(&self) -> u8 {
        3 * self.parity
    }

    /// Returns the size of a block, bytes.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the size of a block, MB.
    pub fn block_mb(&self) -> f64 {
        self.block_bytes as f64 / 1e6
    }

    /// Returns the size of all data blocks, bytes.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.data()) * self.block_bytes
    }

    /// Returns the name of its kernel in profiles.
    pub fn kernel(&self) -> String {
        format!("rs-{}-{}", self.data(), self.parity)
    }

    /// Returns the parameters of the drive's program.
    pub fn parameters(&self) -> Parameters {
        Parameters { data: self.data(), parity: self.parity, cell_bytes: CELL_BYTES }
    }

    /// Returns the number of cells of a block that are in memory at a time.
    pub(super) fn window_cells(&self) -> u64 {
        let row_bytes = u64::from(self.data()) * u64::from(CELL_BYTES);
        (self.block_bytes / u64::from(CELL_BYTES)).min(WINDOW_BYTES / row_bytes)
    }

    /// Returns the number of windows that a block has; the last one may be a part.
    pub(super) fn window_passes(&self) -> f64 {
        self.block_bytes as f64 / (self.window_cells() * u64::from(CELL_BYTES)) as f64
    }

    /// Returns the size of all data that are in memory at a time, bytes.
    pub(super) fn window_bytes(&self) -> usize {
        usize::try_from(self.window_cells()).expect("at most 64 MiB")
            * self.parameters().row_bytes()
    }

    /// Returns the number of cells of each pass over the memory.
    pub(super) fn passes(&self) -> impl Iterator<Item = u64> {
        let (cells, window) = (self.block_bytes / u64::from(CELL_BYTES), self.window_cells());
        let rest = Some(cells % window).filter(|rest| *rest > 0);
        std::iter::repeat_n(window, usize::try_from(cells / window).expect("a few thousand"))
            .chain(rest)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks of {} MB", self.blocks(), self.block_mb())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_the_block_and_fit_the_memory() {
        for (blocks, block_mb) in [(24, 128), (48, 64), (3, 1), (12, 1)] {
            let shape = Shape::new(blocks, block_mb * 1_000_000).unwrap();
            let cells: u64 = shape.passes().sum();
            assert_eq!(cells * u64::from(CELL_BYTES), shape.block_bytes(), "{shape}");
            let (most, passes) = (shape.passes().max().unwrap(), shape.window_passes());
            assert!((passes * most as f64 - cells as f64).abs() < 1e-6 * cells as f64);
            assert_eq!(most, shape.window_cells());
            assert!(shape.window_bytes() as u64 <= WINDOW_BYTES);
        }
        let shape = Shape::new(24, 128_000_000).unwrap();
        assert_eq!((shape.data(), shape.parity(), shape.blocks()), (16, 8, 24));
        assert_eq!(
            (shape.kernel(), shape.to_string()),
            ("rs-16-8".to_owned(), "24 blocks of 128 MB".to_owned())
        );
        assert_eq!(shape.data_bytes(), 2_048_000_000);
    }

    #[test]
    fn sizes_that_the_code_does_not_take_are_refused() {
        for (blocks, block_bytes, why) in [
            (0, 8000, "a multiple of 3, 3 to 48"),
            (10, 8000, "a multiple of 3, 3 to 48"),
            (51, 8000, "a multiple of 3, 3 to 48"),
            (u64::MAX, 8000, "a multiple of 3, 3 to 48"),
            (12, 0, "a multiple of 8000 bytes"),
            (12, 8001, "a multiple of 8000 bytes"),
            (12, 16_000_008_000, "at most 16 GB"),
        ] {
            let error = Shape::new(blocks, block_bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
