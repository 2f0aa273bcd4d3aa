//! AVX-512 with GFNI: 64 bytes a vector, one instruction a product. All sums of 16 outputs fit in
//! the 32 registers, so sources are read once.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::bits512::{load, store, zero};
use super::tables::Tables;
use super::work::run;

run!(
    "avx512f,avx512bw,gfni", 64,
    1 => 4, 2 => 4, 3 => 4, 4 => 4, 5 => 4, 6 => 4, 7 => 2, 8 => 2,
    9 => 2, 10 => 2, 11 => 2, 12 => 2, 13 => 1, 14 => 1, 15 => 1, 16 => 1,
);

fn tables(tables: &Tables) -> *const u64 {
    tables.matrices.as_ptr()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn split(vector: __m512i) -> __m512i {
    vector
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn table(matrix: *const u64) -> __m512i {
    // SAFETY: the caller guarantees a matrix.
    _mm512_set1_epi64(unsafe { *matrix }.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn add(sum: __m512i, vector: __m512i, matrix: __m512i) -> __m512i {
    _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(vector, matrix))
}
