//! Reference for all other versions of array merge: takes the smaller of the two next elements,
//! compared as its own type.

use super::{Error, Side};
use crate::numeric::Numeric;

/// Merges two sorted arrays; the result has every value once, and -0.0 as 0.0.
///
/// # Errors
/// [`Error`], that of the left input first.
pub fn merge(element: Numeric, left: &[u8], right: &[u8]) -> Result<Vec<u8>, Error> {
    match element {
        Numeric::I32 => typed(element, [left, right], i32::from_le_bytes, i32::to_le_bytes),
        Numeric::I64 => typed(element, [left, right], i64::from_le_bytes, i64::to_le_bytes),
        // Adding 0.0 changes no number except -0.0, which becomes 0.0.
        Numeric::F32 => {
            typed(element, [left, right], f32::from_le_bytes, |x| (x + 0.0).to_le_bytes())
        }
        Numeric::F64 => {
            typed(element, [left, right], f64::from_le_bytes, |x| (x + 0.0).to_le_bytes())
        }
    }
}

#[allow(clippy::eq_op)] // what does not equal itself is NaN
fn typed<T: Copy + PartialOrd, const N: usize>(
    element: Numeric,
    inputs: [&[u8]; 2],
    decode: impl Fn([u8; N]) -> T,
    encode: impl Fn(T) -> [u8; N],
) -> Result<Vec<u8>, Error> {
    let mut sides = [Vec::new(), Vec::new()];
    for (index, bytes) in inputs.into_iter().enumerate() {
        let side = [Side::Left, Side::Right][index];
        element.elements(bytes).map_err(Error::Misaligned)?;
        for (at, bytes) in bytes.as_chunks::<N>().0.iter().enumerate() {
            let value = decode(*bytes);
            let at = at as u64;
            if value != value {
                return Err(Error::Nan { side, at });
            }
            if sides[index].last().is_some_and(|last| *last > value) {
                return Err(Error::NotSorted { side, at });
            }
            sides[index].push(value);
        }
    }
    let [left, right] = sides;
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let (mut merged, mut last) = (Vec::new(), None);
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a <= b => left.next(),
            (Some(_), None) => left.next(),
            _ => right.next(),
        };
        let Some(next) = next else { return Ok(merged) };
        if last != Some(next) {
            merged.extend_from_slice(&encode(next));
            last = Some(next);
        }
    }
}
