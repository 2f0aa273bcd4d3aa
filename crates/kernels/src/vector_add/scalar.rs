//! Reference for all other versions of vector add: one element after another.

use crate::numeric::Numeric;

/// Adds two arrays of whole elements into a third, up to the length of the shortest.
pub fn add(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
    match element {
        Numeric::I32 => each(left, right, sum, |a, b| {
            i32::from_le_bytes(a).wrapping_add(i32::from_le_bytes(b)).to_le_bytes()
        }),
        Numeric::I64 => each(left, right, sum, |a, b| {
            i64::from_le_bytes(a).wrapping_add(i64::from_le_bytes(b)).to_le_bytes()
        }),
        Numeric::F32 => each(left, right, sum, |a, b| {
            let sum = f32::from_le_bytes(a) + f32::from_le_bytes(b);
            if sum.is_nan() { 0x7FC0_0000u32.to_le_bytes() } else { sum.to_le_bytes() }
        }),
        Numeric::F64 => each(left, right, sum, |a, b| {
            let sum = f64::from_le_bytes(a) + f64::from_le_bytes(b);
            if sum.is_nan() { (0x7FF8u64 << 48).to_le_bytes() } else { sum.to_le_bytes() }
        }),
    }
}

// Inlined, because the portable version is this loop over blocks, which compilers vectorise.
#[inline(always)]
fn each<const N: usize>(
    left: &[u8],
    right: &[u8],
    sum: &mut [u8],
    add: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let pairs = left.as_chunks::<N>().0.iter().zip(right.as_chunks::<N>().0);
    for (sum, (left, right)) in sum.as_chunks_mut::<N>().0.iter_mut().zip(pairs) {
        *sum = add(*left, *right);
    }
}
