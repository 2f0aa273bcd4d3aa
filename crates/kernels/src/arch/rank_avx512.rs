//! AVX-512: dense lanes in four vectors, sparse lanes in one, filled by masked gathers.

use std::arch::x86_64::*;

use super::{LANES_DENSE, LANES_SPARSE, Walk, walk};
use crate::page_rank::quiet;

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

pub(super) fn sparse(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    // SAFETY: this version is only offered where the features were detected.
    unsafe { sparse_rows(words, vector, sums) }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn sparse_rows(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    walk(words, sums, |sources| row(sources, vector))
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn row(sources: &[[u8; 4]], vector: &[f64]) -> Option<f64> {
    let columns = _mm512_set1_epi64(vector.len().cast_signed() as i64);
    let mut lanes = _mm512_setzero_pd();
    for sources in sources.chunks(LANES_SPARSE) {
        let there = u8::MAX >> (LANES_SPARSE - sources.len());
        // SAFETY: only the lanes of sources that are there are read; no alignment is needed.
        let sources = unsafe { _mm256_maskz_loadu_epi32(there, sources.as_ptr().cast()) };
        let sources = _mm512_cvtepu32_epi64(sources);
        if _mm512_mask_cmplt_epu64_mask(there, sources, columns) != there {
            return None;
        }
        // SAFETY: every source that is there was just found below the vector's length.
        let values = unsafe {
            let zero = _mm512_setzero_pd();
            _mm512_mask_i64gather_pd::<8>(zero, there, sources, vector.as_ptr())
        };
        lanes = _mm512_mask_add_pd(lanes, there, lanes, values);
    }
    // The fold of `fold_sparse`: upper half onto lower, three times.
    let four = _mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd::<1>(lanes));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    Some(quiet(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))))
}
