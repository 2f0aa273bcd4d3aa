//! Vectors of 256 bits, with and without GFNI.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn zero() -> __m256i {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load(from: *const u8) -> __m256i {
    // SAFETY: the caller guarantees 32 bytes.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store(to: *mut u8, vector: __m256i) {
    // SAFETY: the caller guarantees 32 bytes.
    unsafe { _mm256_storeu_si256(to.cast(), vector) }
}
