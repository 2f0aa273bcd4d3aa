//! AVX2: dense lanes in eight vectors, sparse lanes in two.
//!
//! A turn of a sparse row takes eight values whatever the row's length, and masks those past its
//! end, because a branch on a short row's length is mispredicted. Values are gathered by single
//! loads: gather instructions were slower on the processors measured.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::LANES_DENSE;
use super::sparse::{self, Sums, Values, Walk, walk};
use crate::page_rank::{LANES_SPARSE, quiet};

pub(super) fn dense(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    // SAFETY: this version is only offered where the feature was detected.
    unsafe { dense_lanes(row, vector, lanes) }
}

#[target_feature(enable = "avx2")]
fn dense_lanes(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    let mut sums = [_mm256_setzero_ps(); 8];
    for (index, sum) in sums.iter_mut().enumerate() {
        // SAFETY: index 0 to 7 of 64 lanes; the load needs no alignment.
        *sum = unsafe { _mm256_loadu_ps(lanes[index * 8..].as_ptr()) };
    }
    let vector = vector.as_chunks::<LANES_DENSE>().0;
    for (turn, vector) in row.as_chunks::<{ LANES_DENSE * 4 }>().0.iter().zip(vector) {
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: index 0 to 7 of 64 elements each; loads need no alignment.
            let (elements, values) = unsafe {
                (
                    _mm256_loadu_ps(turn[index * 32..].as_ptr().cast()),
                    _mm256_loadu_ps(vector[index * 8..].as_ptr()),
                )
            };
            *sum = _mm256_add_ps(*sum, _mm256_mul_ps(elements, values));
        }
    }
    for (index, sum) in sums.into_iter().enumerate() {
        // SAFETY: index 0 to 7 of 64 lanes; the store needs no alignment.
        unsafe { _mm256_storeu_ps(lanes[index * 8..].as_mut_ptr(), sum) };
    }
}

pub(super) fn sparse(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    // SAFETY: this version is only offered where the feature was detected.
    let gather = |words: &_, vector: &_, values: &mut _| unsafe { gather(words, vector, values) };
    // SAFETY: as above.
    let block = |words: &_, values: &_, sums: &mut _| unsafe { block(words, values, sums) };
    walk(words, vector, sums, gather, block)
}

#[target_feature(enable = "avx2")]
fn gather(words: &[[u8; 4]], vector: &[f64], values: &mut Values) -> bool {
    sparse::gather(words, vector, values)
}

#[target_feature(enable = "avx2")]
fn block(words: &[[u8; 4]], values: &Values, sums: &mut Sums) -> (usize, usize) {
    sparse::block(words, values, sums, |values, degree| row(values, degree))
}

/// Returns the sum of a row's values; other values may follow them.
#[inline]
#[target_feature(enable = "avx2")]
fn row(values: &[f64], degree: usize) -> f64 {
    /// Masks by number of sources: from position `8 - n` on, n lanes of ones, then zeros.
    static THERE: [i64; 2 * LANES_SPARSE] =
        [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut left = degree;
    let mut lanes = [_mm256_setzero_pd(); 2];
    for turn in values.as_chunks::<LANES_SPARSE>().0 {
        let there: &[i64; LANES_SPARSE] =
            THERE[LANES_SPARSE - left.min(LANES_SPARSE)..].first_chunk().expect("8 are left");
        for (half, lanes) in lanes.iter_mut().enumerate() {
            // SAFETY: half 0 or 1 of 8 lanes; loads need no alignment.
            let (values, there) = unsafe {
                (
                    _mm256_loadu_pd(turn[half * 4..].as_ptr()),
                    _mm256_loadu_pd(there[half * 4..].as_ptr().cast()),
                )
            };
            // Masked lanes add 0.0, which changes no lane: none is ever -0.0.
            *lanes = _mm256_add_pd(*lanes, _mm256_and_pd(values, there));
        }
        if left <= LANES_SPARSE {
            break;
        }
        left -= LANES_SPARSE;
    }
    // The fold of `fold_sparse`: upper half onto lower, three times.
    let four = _mm256_add_pd(lanes[0], lanes[1]);
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    quiet(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two))))
}
