//! Encode: the parity of bytes that lie in rows of cells.
//!
//! A row is n data cells of equal size, one after another; its k parity cells are written, one
//! after another, by the code of [`crate::erasure`]. So a drive that has a whole block encodes it
//! where it is. The last row may be short: a missing byte counts as zero, and its parity cells have
//! the length of its first cell. The result is the number of rows; work is counted in bytes read.
//!
//! Invariant: the parity of a row depends on the bytes of that row alone.

mod kernel;
mod program;

pub use kernel::KERNEL;

use crate::erasure::{self, Code, DATA_MAX, PARITY_MAX};
use crate::numeric::Malformed;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 8;
/// Name of the kernel.
pub const NAME: &str = "encode";
/// Maximum size of a cell in bytes: a row of 32 of them takes 8 MiB of memory.
pub const CELL_BYTES_MAX: u32 = 256 << 10;
/// Length of encoded parameters in bytes.
const PARAMETER_BYTES: usize = 16;

/// Shape of a row.
///
/// | bytes | meaning |
/// |---|---|
/// | 0 | data cells, 1 to 32 |
/// | 1 | parity cells, 1 to 16 |
/// | 2..4 | reserved, 0 |
/// | 4..8 | size of a cell in bytes, little-endian, 1 to 262,144 |
/// | 8..16 | reserved, 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Number of data cells.
    pub data: u8,
    /// Number of parity cells.
    pub parity: u8,
    /// Size of a cell, bytes.
    pub cell_bytes: u32,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; PARAMETER_BYTES];
        (data[0], data[1]) = (self.data, self.parity);
        data[4..8].copy_from_slice(&self.cell_bytes.to_le_bytes());
        data
    }

    /// Parses parameters.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let bytes: &[u8; PARAMETER_BYTES] =
            bytes.try_into().map_err(|_| malformed("not 16 bytes"))?;
        let [data, parity, reserved @ ..] = *bytes;
        if reserved[..2] != [0; 2] || bytes[8..] != [0; 8] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let cell_bytes = u32::from_le_bytes(*bytes[4..].first_chunk().expect("16 bytes"));
        if !(1..=DATA_MAX).contains(&data.into()) || !(1..=PARITY_MAX).contains(&parity.into()) {
            return Err(malformed("not 1 to 32 data and 1 to 16 parity cells"));
        }
        if !(1..=CELL_BYTES_MAX).contains(&cell_bytes) {
            return Err(malformed("a cell has not 1 to 262144 bytes"));
        }
        Ok(Self { data, parity, cell_bytes })
    }

    /// Returns the size of a whole row, bytes.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        usize::from(self.data) * self.cell_bytes as usize
    }

    /// Makes the code of a row.
    ///
    /// # Errors
    /// [`erasure::Error::Shape`] if there is no such code.
    pub fn code(&self) -> Result<Code, erasure::Error> {
        Code::new(self.data.into(), self.parity.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let parameters = Parameters { data: 32, parity: 16, cell_bytes: 0x0001_F480 };
        let good = parameters.encode();
        assert_eq!(good, [32, 16, 0, 0, 0x80, 0xF4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Parameters::parse(&good), Ok(parameters));
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        for (index, byte) in [(0, 0), (0, 33), (1, 0), (1, 17)] {
            assert_eq!(with(index, byte), Err("not 1 to 32 data and 1 to 16 parity cells"));
        }
        for reserved in [2, 3, 8, 15] {
            assert_eq!(with(reserved, 1), Err("reserved bytes are not zero"));
        }
        assert_eq!(with(6, 4), Err("a cell has not 1 to 262144 bytes"));
        assert_eq!(Parameters::parse(&good[1..]).unwrap_err().reason, "not 16 bytes");
        let empty = Parameters { cell_bytes: 0, ..parameters }.encode();
        assert!(Parameters::parse(&empty).is_err());
    }
}
