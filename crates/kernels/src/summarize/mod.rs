//! Summarize: count, sum, least and greatest element of an array.
//!
//! The sum is exact: of integers it is the integer, of floating-point numbers the exact sum rounded
//! once, to nearest even. So it does not depend on the order of the elements, on chunks, drives or
//! cores. NaN elements are counted and left out of sum, least and greatest. Infinities follow
//! IEEE 754: a sum with one sign of infinity is that infinity, with both signs NaN. -0.0 is less
//! than 0.0; a sum of zero is 0.0. An array without numbers has the sum 0 and neither a least nor a
//! greatest element. Work is counted in elements.

mod exact;
mod kernel;
mod program;
pub mod scalar;
mod summary;

pub use exact::ExactSum;
pub use kernel::KERNEL;
pub use summary::{BYTES, Summary};

use crate::ElementType;
use crate::numeric::{Malformed, Misaligned, PARAMETER_BYTES, sixteen};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 6;
/// Name of the kernel.
pub const NAME: &str = "summarize";

/// Type of the elements to summarize: 16 bytes, the type's code and 15 zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    element: ElementType,
}

impl Parameters {
    /// Makes the parameters for an element type; `None` if it has no order (complex numbers).
    #[must_use]
    pub fn new(element: ElementType) -> Option<Self> {
        (element != ElementType::C64).then_some(Self { element })
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn element(self) -> ElementType {
        self.element
    }

    /// Returns the parameters' bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut data = vec![0; PARAMETER_BYTES];
        data[0] = self.element.code();
        data
    }

    /// Parses the parameters' bytes.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let [code, reserved @ ..] = *sixteen(NAME, data)?;
        if reserved != [0; PARAMETER_BYTES - 1] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let element = ElementType::from_code(code).ok_or(malformed("unknown element type"))?;
        Self::new(element).ok_or(malformed("complex numbers have no order"))
    }
}

/// A summary in progress.
#[derive(Clone, Debug)]
pub struct Summarize {
    element: ElementType,
    summary: Summary,
}

impl Summarize {
    /// Starts a summary of no element.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self { element: parameters.element, summary: Summary::default() }
    }

    /// Adds the elements in `bytes`, at any alignment.
    ///
    /// # Errors
    /// [`Misaligned`] if the last element is cut; nothing is added then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Misaligned> {
        let size = self.element.bytes();
        if !bytes.len().is_multiple_of(size) {
            return Err(Misaligned { element: self.element, bytes: bytes.len() });
        }
        let summary = &mut self.summary;
        match self.element {
            ElementType::I32 => {
                let values = bytes.as_chunks::<4>().0.iter();
                summary.add_integers(values.map(|value| i32::from_le_bytes(*value).into()));
            }
            ElementType::I64 => {
                let values = bytes.as_chunks::<8>().0.iter();
                summary.add_integers(values.map(|value| i64::from_le_bytes(*value)));
            }
            ElementType::F32 => {
                let values = bytes.as_chunks::<4>().0.iter();
                summary.add_floats(values.map(|value| f32::from_le_bytes(*value).into()));
            }
            ElementType::F64 => {
                let values = bytes.as_chunks::<8>().0.iter();
                summary.add_floats(values.map(|value| f64::from_le_bytes(*value)));
            }
            ElementType::Bytes | ElementType::C64 => {
                summary.add_integers(bytes.iter().map(|byte| (*byte).into()));
            }
        }
        Ok(())
    }

    /// Returns the summary of the elements so far.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_these_bytes_and_each_wrong_one_is_named() {
        let good = Parameters::new(ElementType::F32).unwrap().encode();
        assert_eq!(good, [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Parameters::parse(&good).unwrap().element(), ElementType::F32);
        let with = |index: usize, byte: u8| {
            let mut data = good.clone();
            data[index] = byte;
            Parameters::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(0, 7), Err("unknown element type"));
        assert_eq!(with(0, 5), Err("complex numbers have no order"));
        assert_eq!(with(9, 1), Err("reserved bytes are not zero"));
        assert_eq!(Parameters::parse(&good[1..]).unwrap_err().reason, "not 16 bytes");
    }

    #[test]
    fn cut_elements_are_refused_and_not_counted() {
        let mut summarize = Summarize::new(Parameters::new(ElementType::I64).unwrap());
        assert_eq!(summarize.feed(&[0; 9]).unwrap_err().bytes, 9);
        assert_eq!(summarize.summary(), &Summary::default());
    }
}
