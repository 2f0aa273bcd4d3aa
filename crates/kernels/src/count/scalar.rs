//! Reference for all other versions of count: one element after another, compared as its own type.

use crate::Scalar;

/// Returns the number of elements of `bytes` that equal `value`; ignores bytes after the last whole
/// element.
#[must_use]
pub fn count(value: Scalar, bytes: &[u8]) -> u64 {
    match value {
        Scalar::I32(value) => matches(bytes, |element| i32::from_le_bytes(element) == value),
        Scalar::I64(value) => matches(bytes, |element| i64::from_le_bytes(element) == value),
        Scalar::F32(value) => matches(bytes, |element| f32::from_le_bytes(element) == value),
        Scalar::F64(value) => matches(bytes, |element| f64::from_le_bytes(element) == value),
    }
}

fn matches<const N: usize>(bytes: &[u8], equal: impl Fn([u8; N]) -> bool) -> u64 {
    bytes.as_chunks::<N>().0.iter().filter(|element| equal(**element)).count() as u64
}
