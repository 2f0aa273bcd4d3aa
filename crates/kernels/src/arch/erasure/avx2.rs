//! AVX2: 32 bytes a vector, two shuffles a product.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::bits256::{load, store, zero};
use super::tables::{Nibbles, Tables};
use super::work::run;

run!("avx2", 32, 1 => 4, 2 => 2, 3 => 2, 4 => 2);

/// Low and high halves of bytes, or the tables for them.
#[derive(Clone, Copy)]
struct Halves {
    low: __m256i,
    high: __m256i,
}

fn tables(tables: &Tables) -> *const Nibbles {
    tables.nibbles.as_ptr()
}

#[inline]
#[target_feature(enable = "avx2")]
fn split(vector: __m256i) -> Halves {
    let mask = _mm256_set1_epi8(15);
    let high = _mm256_and_si256(_mm256_srli_epi64::<4>(vector), mask);
    Halves { low: _mm256_and_si256(vector, mask), high }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn table(nibbles: *const Nibbles) -> Halves {
    let half: *const __m128i = nibbles.cast();
    // SAFETY: the caller guarantees 32 bytes.
    let (low, high) = unsafe { (_mm_loadu_si128(half), _mm_loadu_si128(half.add(1))) };
    let spread = |half| _mm256_broadcastsi128_si256(half);
    Halves { low: spread(low), high: spread(high) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(sum: __m256i, vector: Halves, table: Halves) -> __m256i {
    let low = _mm256_shuffle_epi8(table.low, vector.low);
    let high = _mm256_shuffle_epi8(table.high, vector.high);
    _mm256_xor_si256(sum, _mm256_xor_si256(low, high))
}
