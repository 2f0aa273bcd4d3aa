//! AVX2: dense lanes in eight vectors, sparse lanes in two.
//!
//! Values of a sparse row are loaded one by one: gathers were slower on the Xeon with AVX-512 that
//! this was measured on, so there is no AVX-512 version of it. Sources are checked many at a time,
//! before their rows; a turn loads eight values however long the row is, and masks away those past
//! its end, because a branch on a short row's length is mispredicted.

use std::arch::x86_64::*;

use super::{Known, LANES_DENSE, LANES_SPARSE, Walk, checked_row, walk};
use crate::page_rank::quiet;

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
    unsafe { sparse_rows(words, vector, sums) }
}

#[target_feature(enable = "avx2")]
fn sparse_rows(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    let mut known = Known::new(vector.len());
    walk(words, sums, |at, end| {
        if known.covers(words, at, end) {
            // SAFETY: these words, a turn past the row's sources too, were found below the vector's
            // length.
            Some(unsafe { row(&words[at..end + LANES_SPARSE], vector) })
        } else {
            checked_row(&words[at..end], vector)
        }
    })
}

/// The sum of a row, after whose sources a turn of words more is there.
///
/// # Safety
/// All these words must be below the vector's length.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn row(sources: &[[u8; 4]], vector: &[f64]) -> f64 {
    /// From position `8 - n`, as many lanes as there are sources, and then none.
    static THERE: [i64; 2 * LANES_SPARSE] =
        [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut left = sources.len() - LANES_SPARSE;
    let mut lanes = [_mm256_setzero_pd(); 2];
    for turn in sources.as_chunks::<LANES_SPARSE>().0 {
        let there: &[i64; LANES_SPARSE] =
            THERE[LANES_SPARSE - left.min(LANES_SPARSE)..].first_chunk().expect("8 are left");
        // SAFETY: the caller found these words below the vector's length, those past the row too.
        let value =
            |at: usize| unsafe { *vector.get_unchecked(u32::from_le_bytes(turn[at]) as usize) };
        for (half, lanes) in lanes.iter_mut().enumerate() {
            let at = half * 4;
            let values = _mm256_set_pd(value(at + 3), value(at + 2), value(at + 1), value(at));
            // SAFETY: half 0 or 1 of 8 lanes; the load needs no alignment.
            let there = unsafe { _mm256_loadu_pd(there[at..].as_ptr().cast()) };
            // Lanes that are not there add 0.0, which changes none: none is ever -0.0.
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
