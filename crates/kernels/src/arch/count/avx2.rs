//! AVX2: 32 bytes per load, four loads per turn; equal lanes (-1) are subtracted from lane
//! counters.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256, _mm256_cmpeq_epi32,
    _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_sub_epi32, _mm256_sub_epi64,
};

use super::{Functions, portable};

/// Bytes of one turn.
const TURN: usize = 128;
/// Bytes between sums of the 32-bit counters: a lane counts at most a 32nd of them.
const BLOCK: usize = 1 << 30;

/// The functions of this version.
pub(super) const FUNCTIONS: Functions = Functions { narrow, wide };

fn narrow(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    // SAFETY: this version is only offered where AVX2 was detected.
    bytes.chunks(BLOCK).map(|block| unsafe { narrow_block(block, mask, bits) }).sum()
}

fn wide(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    // SAFETY: this version is only offered where AVX2 was detected.
    unsafe { wide_all(bytes, mask, bits) }
}

#[target_feature(enable = "avx2")]
fn narrow_block(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    let (masks, wanted) =
        (_mm256_set1_epi32(mask.cast_signed()), _mm256_set1_epi32(bits.cast_signed()));
    let mut counts = [_mm256_setzero_si256(); 4];
    let (turns, tail) = bytes.as_chunks::<TURN>();
    for turn in turns {
        for (count, vector) in counts.iter_mut().zip(load(turn)) {
            let equal = _mm256_cmpeq_epi32(_mm256_and_si256(vector, masks), wanted);
            *count = _mm256_sub_epi32(*count, equal);
        }
    }
    let [a, b, c, d] = counts;
    let sum = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
    let lanes = store(sum);
    let lanes = lanes.as_chunks::<4>().0.iter().map(|lane| u64::from(u32::from_le_bytes(*lane)));
    lanes.sum::<u64>() + portable::narrow(tail, mask, bits)
}

#[target_feature(enable = "avx2")]
fn wide_all(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    let (masks, wanted) =
        (_mm256_set1_epi64x(mask.cast_signed()), _mm256_set1_epi64x(bits.cast_signed()));
    let mut counts = [_mm256_setzero_si256(); 4];
    let (turns, tail) = bytes.as_chunks::<TURN>();
    for turn in turns {
        for (count, vector) in counts.iter_mut().zip(load(turn)) {
            let equal = _mm256_cmpeq_epi64(_mm256_and_si256(vector, masks), wanted);
            *count = _mm256_sub_epi64(*count, equal);
        }
    }
    let [a, b, c, d] = counts;
    let sum = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    let lanes = store(sum);
    let lanes = lanes.as_chunks::<8>().0.iter().map(|lane| u64::from_le_bytes(*lane));
    lanes.sum::<u64>() + portable::wide(tail, mask, bits)
}

#[target_feature(enable = "avx2")]
fn load(turn: &[u8; TURN]) -> [__m256i; 4] {
    let at = |index: usize| turn[index * 32..].as_ptr().cast::<__m256i>();
    // SAFETY: index 0 to 3, so all 32 bytes lie in the turn; the load needs no alignment.
    unsafe {
        [
            _mm256_loadu_si256(at(0)),
            _mm256_loadu_si256(at(1)),
            _mm256_loadu_si256(at(2)),
            _mm256_loadu_si256(at(3)),
        ]
    }
}

#[target_feature(enable = "avx2")]
fn store(vector: __m256i) -> [u8; 32] {
    let mut bytes = [0; 32];
    // SAFETY: 32 bytes are written to an array of 32; the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) };
    bytes
}
