//! AVX-512: dense lanes in four vectors. Sparse rows gain nothing from it over AVX2.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::LANES_DENSE;

pub(super) fn dense(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    // SAFETY: this version is only offered where the feature was detected.
    unsafe { dense_lanes(row, vector, lanes) }
}

#[target_feature(enable = "avx512f")]
fn dense_lanes(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    let mut sums = [_mm512_setzero_ps(); 4];
    for (index, sum) in sums.iter_mut().enumerate() {
        // SAFETY: index 0 to 3 of 64 lanes; the load needs no alignment.
        *sum = unsafe { _mm512_loadu_ps(lanes[index * 16..].as_ptr()) };
    }
    let vector = vector.as_chunks::<LANES_DENSE>().0;
    for (turn, vector) in row.as_chunks::<{ LANES_DENSE * 4 }>().0.iter().zip(vector) {
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: index 0 to 3 of 64 elements each; loads need no alignment.
            let (elements, values) = unsafe {
                (
                    _mm512_loadu_ps(turn[index * 64..].as_ptr().cast()),
                    _mm512_loadu_ps(vector[index * 16..].as_ptr()),
                )
            };
            *sum = _mm512_add_ps(*sum, _mm512_mul_ps(elements, values));
        }
    }
    for (index, sum) in sums.into_iter().enumerate() {
        // SAFETY: index 0 to 3 of 64 lanes; the store needs no alignment.
        unsafe { _mm512_storeu_ps(lanes[index * 16..].as_mut_ptr(), sum) };
    }
}
