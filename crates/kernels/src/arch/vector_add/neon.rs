//! NEON: 16 bytes per vector, four vectors per turn. It has no intrinsic for non-temporal stores.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::{Numeric, scalar};

/// Bytes of a vector.
const VECTOR: usize = 16;
/// Bytes of one turn: four vectors.
const TURN: usize = 4 * VECTOR;

pub(super) fn add(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
    // SAFETY: this version is only offered where the feature was detected.
    unsafe { dispatch(element, left, right, sum) }
}

#[target_feature(enable = "neon")]
fn dispatch(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
    match element {
        Numeric::I32 => turns(left, right, sum, |a, b| {
            let sum = vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
            vreinterpretq_u8_u32(sum)
        }),
        Numeric::I64 => turns(left, right, sum, |a, b| {
            let sum = vaddq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b));
            vreinterpretq_u8_u64(sum)
        }),
        Numeric::F32 => turns(left, right, sum, |a, b| {
            let sum = vaddq_f32(vreinterpretq_f32_u8(a), vreinterpretq_f32_u8(b));
            let quiet = vdupq_n_u32(0x7FC0_0000);
            let sum = vbslq_u32(vceqq_f32(sum, sum), vreinterpretq_u32_f32(sum), quiet);
            vreinterpretq_u8_u32(sum)
        }),
        Numeric::F64 => turns(left, right, sum, |a, b| {
            let sum = vaddq_f64(vreinterpretq_f64_u8(a), vreinterpretq_f64_u8(b));
            let quiet = vdupq_n_u64(0x7FF8 << 48);
            let sum = vbslq_u64(vceqq_f64(sum, sum), vreinterpretq_u64_f64(sum), quiet);
            vreinterpretq_u8_u64(sum)
        }),
    }
    let tail = sum.len() - sum.len() % TURN;
    scalar::add(element, &left[tail..], &right[tail..], &mut sum[tail..]);
}

#[inline]
#[target_feature(enable = "neon")]
fn turns(
    left: &[u8],
    right: &[u8],
    sum: &mut [u8],
    add: impl Fn(uint8x16_t, uint8x16_t) -> uint8x16_t,
) {
    let pairs = left.as_chunks::<TURN>().0.iter().zip(right.as_chunks::<TURN>().0);
    for (sum, (left, right)) in sum.as_chunks_mut::<TURN>().0.iter_mut().zip(pairs) {
        for at in (0..TURN).step_by(VECTOR) {
            // SAFETY: every vector lies in its turn; loads and stores need no alignment.
            unsafe {
                let vector = add(vld1q_u8(left[at..].as_ptr()), vld1q_u8(right[at..].as_ptr()));
                vst1q_u8(sum[at..].as_mut_ptr(), vector);
            }
        }
    }
}
