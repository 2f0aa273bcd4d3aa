//! NEON: dense lanes in sixteen vectors. Sparse rows use the portable version: NEON has no gather.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::LANES_DENSE;

pub(super) fn dense(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    // SAFETY: this version is only offered where the feature was detected.
    unsafe { dense_lanes(row, vector, lanes) }
}

#[target_feature(enable = "neon")]
fn dense_lanes(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    let mut sums = [vdupq_n_f32(0.0); 16];
    for (index, sum) in sums.iter_mut().enumerate() {
        // SAFETY: index 0 to 15 of 64 lanes; the load needs no alignment.
        *sum = unsafe { vld1q_f32(lanes[index * 4..].as_ptr()) };
    }
    let vector = vector.as_chunks::<LANES_DENSE>().0;
    for (turn, vector) in row.as_chunks::<{ LANES_DENSE * 4 }>().0.iter().zip(vector) {
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: index 0 to 15 of 64 elements each; loads need no alignment.
            let (elements, values) = unsafe {
                (
                    vreinterpretq_f32_u8(vld1q_u8(turn[index * 16..].as_ptr())),
                    vld1q_f32(vector[index * 4..].as_ptr()),
                )
            };
            *sum = vaddq_f32(*sum, vmulq_f32(elements, values));
        }
    }
    for (index, sum) in sums.into_iter().enumerate() {
        // SAFETY: index 0 to 15 of 64 lanes; the store needs no alignment.
        unsafe { vst1q_f32(lanes[index * 4..].as_mut_ptr(), sum) };
    }
}
