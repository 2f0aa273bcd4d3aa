//! AVX2: dense lanes in eight vectors, sparse lanes in two, filled by gathers; a sparse row's tail
//! goes one by one.

use std::arch::x86_64::*;

use super::{LANES_DENSE, LANES_SPARSE, Walk, fold_sparse, portable_row, walk};

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
    walk(words, sums, |sources| row(sources, vector))
}

#[inline]
#[target_feature(enable = "avx2")]
fn row(sources: &[[u8; 4]], vector: &[f64]) -> Option<f64> {
    if sources.len() < 2 * LANES_SPARSE {
        return portable_row(sources, vector);
    }
    let columns = _mm256_set1_epi64x(vector.len().cast_signed() as i64);
    let mut sums = [_mm256_setzero_pd(); 2];
    let (turns, tail) = sources.as_chunks::<LANES_SPARSE>();
    for turn in turns {
        for (sum, four) in sums.iter_mut().zip(turn.as_chunks::<4>().0) {
            // SAFETY: four sources are there; the load needs no alignment.
            let four = _mm256_cvtepu32_epi64(unsafe { _mm_loadu_si128(four.as_ptr().cast()) });
            let below = _mm256_castsi256_pd(_mm256_cmpgt_epi64(columns, four));
            if _mm256_movemask_pd(below) != 0b1111 {
                return None;
            }
            // SAFETY: every source was just found below the vector's length.
            let values = unsafe { _mm256_i64gather_pd::<8>(vector.as_ptr(), four) };
            *sum = _mm256_add_pd(*sum, values);
        }
    }
    let mut lanes = [0.0; LANES_SPARSE];
    // SAFETY: 8 lanes, four each; the stores need no alignment.
    unsafe {
        _mm256_storeu_pd(lanes.as_mut_ptr(), sums[0]);
        _mm256_storeu_pd(lanes[4..].as_mut_ptr(), sums[1]);
    }
    for (lane, source) in lanes.iter_mut().zip(tail) {
        *lane += vector.get(u32::from_le_bytes(*source) as usize)?;
    }
    Some(fold_sparse(lanes))
}
