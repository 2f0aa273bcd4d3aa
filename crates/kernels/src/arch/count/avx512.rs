//! AVX-512F: 64 bytes per load, four loads per turn; comparisons give bit masks, whose bits are
//! counted.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpeq_epi32_mask, _mm512_cmpeq_epi64_mask,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_epi64,
};

use super::{Functions, portable};

/// Bytes of one turn.
const TURN: usize = 256;

/// The functions of this version.
pub(super) const FUNCTIONS: Functions = Functions { narrow, wide };

fn narrow(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    // SAFETY: this version is only offered where its features were detected.
    unsafe { narrow_all(bytes, mask, bits) }
}

fn wide(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    // SAFETY: this version is only offered where its features were detected.
    unsafe { wide_all(bytes, mask, bits) }
}

#[target_feature(enable = "avx512f,popcnt")]
fn narrow_all(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    let (masks, wanted) =
        (_mm512_set1_epi32(mask.cast_signed()), _mm512_set1_epi32(bits.cast_signed()));
    let (turns, tail) = bytes.as_chunks::<TURN>();
    let mut count = 0;
    for turn in turns {
        let [a, b, c, d] = load(turn).map(|vector| {
            u64::from(_mm512_cmpeq_epi32_mask(_mm512_and_si512(vector, masks), wanted))
        });
        count += u64::from((a | b << 16 | c << 32 | d << 48).count_ones());
    }
    count + portable::narrow(tail, mask, bits)
}

#[target_feature(enable = "avx512f,popcnt")]
fn wide_all(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    let (masks, wanted) =
        (_mm512_set1_epi64(mask.cast_signed()), _mm512_set1_epi64(bits.cast_signed()));
    let (turns, tail) = bytes.as_chunks::<TURN>();
    let mut count = 0;
    for turn in turns {
        let [a, b, c, d] = load(turn).map(|vector| {
            u32::from(_mm512_cmpeq_epi64_mask(_mm512_and_si512(vector, masks), wanted))
        });
        count += u64::from((a | b << 8 | c << 16 | d << 24).count_ones());
    }
    count + portable::wide(tail, mask, bits)
}

#[target_feature(enable = "avx512f")]
fn load(turn: &[u8; TURN]) -> [__m512i; 4] {
    let at = |index: usize| turn[index * 64..].as_ptr().cast::<__m512i>();
    // SAFETY: index 0 to 3, so all 64 bytes lie in the turn; the load needs no alignment.
    unsafe {
        [
            _mm512_loadu_si512(at(0)),
            _mm512_loadu_si512(at(1)),
            _mm512_loadu_si512(at(2)),
            _mm512_loadu_si512(at(3)),
        ]
    }
}
