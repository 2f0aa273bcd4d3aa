//! Vectors of 512 bits, with and without GFNI.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn zero() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load(from: *const u8) -> __m512i {
    // SAFETY: the caller guarantees 64 bytes.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store(to: *mut u8, vector: __m512i) {
    // SAFETY: the caller guarantees 64 bytes.
    unsafe { _mm512_storeu_si512(to.cast(), vector) }
}
