//! AVX-512BW: 64 bytes a vector, two shuffles a product.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::bits512::{load, store, zero};
use super::tables::{Nibbles, Tables};
use super::work::run;

run!(
    "avx512f,avx512bw", 64,
    1 => 4, 2 => 4, 3 => 4, 4 => 4, 5 => 2, 6 => 2, 7 => 2, 8 => 2,
);

/// Low and high halves of bytes, or the tables for them.
#[derive(Clone, Copy)]
struct Halves {
    low: __m512i,
    high: __m512i,
}

fn tables(tables: &Tables) -> *const Nibbles {
    tables.nibbles.as_ptr()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn split(vector: __m512i) -> Halves {
    let mask = _mm512_set1_epi8(15);
    let high = _mm512_and_si512(_mm512_srli_epi64::<4>(vector), mask);
    Halves { low: _mm512_and_si512(vector, mask), high }
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn table(nibbles: *const Nibbles) -> Halves {
    let half: *const __m128i = nibbles.cast();
    // SAFETY: the caller guarantees 32 bytes.
    let (low, high) = unsafe { (_mm_loadu_si128(half), _mm_loadu_si128(half.add(1))) };
    Halves { low: _mm512_broadcast_i32x4(low), high: _mm512_broadcast_i32x4(high) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add(sum: __m512i, vector: Halves, table: Halves) -> __m512i {
    let low = _mm512_shuffle_epi8(table.low, vector.low);
    let high = _mm512_shuffle_epi8(table.high, vector.high);
    _mm512_ternarylogic_epi64::<0x96>(sum, low, high)
}
