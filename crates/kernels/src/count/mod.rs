//! Count: counts the elements that equal a value.
//!
//! Equality is IEEE 754's: -0.0 equals 0.0, NaN equals nothing. Input is little-endian bytes of
//! whole elements at any alignment, so a drive counts in the buffer it read into and a host in the
//! buffer it received into. Work is counted in elements.
//!
//! Takes whole elements only: a piece must not end within one. Invariant: the counts of pieces,
//! merged in any order, are the count of the whole.

mod kernel;
mod parameters;
mod program;
pub mod scalar;

pub use crate::numeric::Misaligned;
pub use kernel::KERNEL;
pub use parameters::Parameters;

use crate::arch::{self, count::Pattern};
use crate::{ElementType, Scalar};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 1;
/// Name of the kernel.
pub const NAME: &str = "count";

/// Count in progress.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    element: ElementType,
    pattern: Pattern,
    elements: u64,
    result: u64,
}

impl Count {
    /// Starts a count.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        let value = parameters.value;
        Self { element: value.element(), pattern: pattern(value), elements: 0, result: 0 }
    }

    /// Counts the next bytes.
    ///
    /// # Errors
    /// [`Misaligned`] when they do not hold whole elements; nothing is counted then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Misaligned> {
        let size = self.element.bytes();
        if !bytes.len().is_multiple_of(size) {
            return Err(Misaligned { element: self.element, bytes: bytes.len() });
        }
        self.elements += (bytes.len() / size) as u64;
        self.result += arch::count::count(&self.pattern, bytes);
        Ok(())
    }

    /// Returns the number of elements seen: the work done.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the number of bytes seen.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.elements * self.element.bytes() as u64
    }

    /// Returns the number of elements that equal the value.
    #[must_use]
    pub fn result(&self) -> u64 {
        self.result
    }

    /// Adds the result of another count of the same value.
    ///
    /// # Panics
    /// If `other` counts another value: an error of the caller, because the sum would have no
    /// meaning.
    pub fn merge(&mut self, other: &Self) {
        assert!(
            (self.element, self.pattern) == (other.element, other.pattern),
            "counts of different values were merged"
        );
        self.elements += other.elements;
        self.result += other.result;
    }
}

/// Counts the elements of `bytes` that equal `value`, by the fastest version that this machine
/// runs. Ignores bytes after the last whole element; [`Count::feed`] refuses them.
#[must_use]
pub fn count(value: Scalar, bytes: &[u8]) -> u64 {
    arch::count::count(&pattern(value), bytes)
}

/// Compiled version of the kernel that this machine can run.
pub type Version = arch::Version<arch::count::Functions>;

impl Version {
    /// Returns every version that this machine can run, the one that [`count`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::count::versions()
    }

    /// Counts as [`count`] does.
    #[must_use]
    pub fn count(self, value: Scalar, bytes: &[u8]) -> u64 {
        self.run.count(&pattern(value), bytes)
    }
}

/// Converts equality with a value into a comparison of bits.
///
/// IEEE equality with a number is equality of bits, except that the two zeros are equal, so the
/// sign of a zero is masked. NaN equals nothing, so its pattern matches no element: it has bits
/// outside of its mask.
fn pattern(value: Scalar) -> Pattern {
    let (mask, bits) = match value {
        _ if value.is_nan() => (0, 1),
        Scalar::F32(0.0) => (u64::from(u32::MAX >> 1), 0),
        Scalar::F64(0.0) => (u64::MAX >> 1, 0),
        _ => (u64::MAX, value.to_bits()),
    };
    match value.element().bytes() {
        4 => {
            let low = |wide: u64| u32::try_from(wide & 0xFFFF_FFFF).expect("masked to 32 bits");
            Pattern::Narrow { mask: low(mask), bits: low(bits) }
        }
        _ => Pattern::Wide { mask, bits },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn zeros_are_equal_and_nan_equals_nothing() {
        let data = bytes_of(&[0.0, -0.0, f32::NAN, 1.0, f32::MIN_POSITIVE / 2.0, 0.0]);
        assert_eq!(count(Scalar::F32(0.0), &data), 3);
        assert_eq!(count(Scalar::F32(-0.0), &data), 3);
        assert_eq!(count(Scalar::F32(f32::NAN), &data), 0);
        assert_eq!(count(Scalar::F64(f64::NAN), &[255; 16]), 0);
        assert_eq!(count(Scalar::I32(0), &data), 2);
    }

    #[test]
    fn pieces_merge_to_the_whole_and_work_is_counted() {
        let data: Vec<u8> = (0..1000i64).flat_map(|i| (i % 7).to_le_bytes()).collect();
        let parameters = Parameters { value: Scalar::I64(3) };
        let (mut whole, mut rest) = (Count::new(parameters), Count::new(parameters));
        whole.feed(&data[..2000]).unwrap();
        rest.feed(&data[2000..]).unwrap();
        whole.merge(&rest);
        assert_eq!((whole.result(), whole.elements(), whole.bytes()), (143, 1000, 8000));
    }

    #[test]
    fn cut_elements_are_refused_and_not_counted() {
        let mut count = Count::new(Parameters { value: Scalar::I32(0) });
        let error = count.feed(&[0; 7]).unwrap_err();
        assert_eq!(error.to_string(), "7 bytes do not hold whole elements of type i32");
        assert_eq!((count.elements(), count.result()), (0, 0));
    }

    #[test]
    #[should_panic(expected = "different values")]
    fn counts_of_different_values_do_not_merge() {
        let one = Count::new(Parameters { value: Scalar::I32(1) });
        Count::new(Parameters { value: Scalar::I32(2) }).merge(&one);
    }
}
