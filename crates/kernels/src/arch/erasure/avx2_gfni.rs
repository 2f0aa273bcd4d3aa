//! AVX2 with GFNI: 32 bytes a vector, one instruction a product.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::bits256::{load, store, zero};
use super::tables::Tables;
use super::work::run;

run!("avx2,gfni", 32, 1 => 4, 2 => 4, 3 => 4, 4 => 2, 5 => 2, 6 => 2);

fn tables(tables: &Tables) -> *const u64 {
    tables.matrices.as_ptr()
}

#[inline]
#[target_feature(enable = "avx2")]
fn split(vector: __m256i) -> __m256i {
    vector
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn table(matrix: *const u64) -> __m256i {
    // SAFETY: the caller guarantees a matrix.
    _mm256_set1_epi64x(unsafe { *matrix }.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2,gfni")]
fn add(sum: __m256i, vector: __m256i, matrix: __m256i) -> __m256i {
    _mm256_xor_si256(sum, _mm256_gf2p8affine_epi64_epi8::<0>(vector, matrix))
}
