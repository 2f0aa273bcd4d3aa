//! Vector add: the sum of two arrays, element by element.
//!
//! Integers wrap. Floating sums are IEEE 754's, rounded to nearest even. A sum that is NaN is the
//! one positive quiet NaN without payload, because processors differ in the payload that survives,
//! and drives and hosts must agree bit for bit. Work is counted in elements of the result.
//!
//! Takes whole elements only, and inputs of one length. Invariant: the sums of pieces, in any
//! order, are the pieces of the whole sum.

mod kernel;
mod program;
pub mod scalar;

pub use crate::numeric::ElementParameters as Parameters;
pub use kernel::KERNEL;

use crate::arch;
use crate::numeric::{Misaligned, Numeric};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 2;
/// Name of the kernel.
pub const NAME: &str = "vector-add";

/// Reason why pieces were refused; nothing is added then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pieces do not hold whole elements.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// The two pieces and the room for their sum differ in length, bytes.
    #[error("{left} and {right} bytes cannot be added into {sum}: make them equal")]
    Lengths {
        /// Length of the left piece.
        left: usize,
        /// Length of the right piece.
        right: usize,
        /// Length of the room for the sum.
        sum: usize,
    },
}

/// Addition in progress.
#[derive(Clone, Copy, Debug)]
pub struct VectorAdd {
    element: Numeric,
    elements: u64,
}

impl VectorAdd {
    /// Starts an addition.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self { element: parameters.element, elements: 0 }
    }

    /// Adds the next pieces into `sum`, which has their length.
    ///
    /// # Errors
    /// [`Error`]; nothing is written then.
    pub fn feed(&mut self, left: &[u8], right: &[u8], sum: &mut [u8]) -> Result<(), Error> {
        if left.len() != right.len() || left.len() != sum.len() {
            let (left, right, sum) = (left.len(), right.len(), sum.len());
            return Err(Error::Lengths { left, right, sum });
        }
        let elements = self.element.elements(left).map_err(Error::Misaligned)?;
        arch::vector_add::add(self.element, left, right, sum);
        self.elements += elements as u64;
        Ok(())
    }

    /// Returns the number of elements of the result so far: the work done.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }
}

/// Compiled version of the kernel that this machine can run.
pub type Version = arch::Version<arch::vector_add::Add>;

impl Version {
    /// Returns every version that this machine can run, the one that [`VectorAdd`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::vector_add::versions()
    }

    /// Adds two arrays into a third.
    ///
    /// # Panics
    /// If the three differ in length, or do not hold whole elements.
    pub fn add(self, element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
        assert!(left.len() == right.len() && left.len() == sum.len(), "different lengths");
        assert!(left.len().is_multiple_of(element.bytes()), "a cut element");
        (self.run)(element, left, right, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_and_work_is_counted() {
        let mut add = VectorAdd::new(Parameters { element: Numeric::I32 });
        let mut sum = [0; 4];
        add.feed(&i32::MAX.to_le_bytes(), &1i32.to_le_bytes(), &mut sum).unwrap();
        assert_eq!(i32::from_le_bytes(sum), i32::MIN);
        assert_eq!(add.elements(), 1);
    }

    #[test]
    fn wrong_pieces_are_refused_and_not_counted() {
        let mut add = VectorAdd::new(Parameters { element: Numeric::I64 });
        let error = add.feed(&[0; 8], &[0; 16], &mut [0; 8]).unwrap_err();
        assert!(error.to_string().starts_with("8 and 16 bytes cannot be added into 8"));
        let error = add.feed(&[0; 9], &[0; 9], &mut [0; 9]).unwrap_err();
        assert_eq!(error.to_string(), "9 bytes do not hold whole elements of type i64");
        assert_eq!(add.elements(), 0);
    }
}
