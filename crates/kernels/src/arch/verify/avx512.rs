//! AVX-512 with VPCLMULQDQ: folds 256 bytes of a page per turn.
//!
//! To fold 128 bits over a distance of D bits, the low half is multiplied by x^(D+31) and the high
//! half by x^(D-33), both modulo the polynomial and reflected; the products, D bits further on,
//! have the same remainder. The instruction of SSE4.2 takes the last 128 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{POLYNOMIAL, functions, sse42};

functions!();

/// Bytes of one turn: four vectors.
const TURN: usize = 256;

/// Returns the factors for a distance in bits: for the low half and for the high half.
const fn factors(distance: u32) -> [i64; 2] {
    [power(distance + 31) as i64, power(distance - 33) as i64]
}

const TURN_FACTORS: [i64; 2] = factors(2048);
const VECTOR_FACTORS: [i64; 2] = factors(512);
const LANE_FACTORS: [i64; 2] = factors(128);

/// Returns x to this power modulo the polynomial, reflected: a shift to the right multiplies by x.
const fn power(exponent: u32) -> u32 {
    let mut value = 1 << 31;
    let mut step = 0;
    while step < exponent {
        value = (value >> 1) ^ (POLYNOMIAL * (value & 1));
        step += 1;
    }
    value
}

/// Returns the states of several pages of one length after all their bytes.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
fn states<const N: usize>(pages: [&[u8]; N], before: [u32; N]) -> [u32; N] {
    let turns = pages.map(|page| page.as_chunks::<TURN>());
    let count = turns[0].0.len();
    if count == 0 {
        return std::array::from_fn(|page| sse42::update(before[page], pages[page]));
    }
    let mut sums: [[__m512i; 4]; N] = std::array::from_fn(|page| {
        let [first, rest @ ..] = load(&turns[page].0[0]);
        let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(before[page].cast_signed()));
        let [b, c, d] = rest;
        [_mm512_xor_si512(first, state), b, c, d]
    });
    let factors = spread(TURN_FACTORS);
    for turn in 1..count {
        for (sums, (turns, _)) in sums.iter_mut().zip(&turns) {
            for (sum, next) in sums.iter_mut().zip(load(&turns[turn])) {
                *sum = fold(*sum, factors, next);
            }
        }
    }
    std::array::from_fn(|page| finish(sums[page], turns[page].1))
}

/// Returns the state after a page's folded turns and its tail.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
fn finish(sums: [__m512i; 4], tail: &[u8]) -> u32 {
    let factors = spread(VECTOR_FACTORS);
    let [a, b, c, d] = sums;
    let mut sum = fold(fold(fold(a, factors, b), factors, c), factors, d);
    let (vectors, tail) = tail.as_chunks::<64>();
    for vector in vectors {
        // SAFETY: the array is a vector long; the load needs no alignment.
        sum = fold(sum, factors, unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) });
    }
    let factors = _mm_set_epi64x(LANE_FACTORS[1], LANE_FACTORS[0]);
    let mut lane = _mm512_castsi512_si128(sum);
    for next in [
        _mm512_extracti32x4_epi32::<1>(sum),
        _mm512_extracti32x4_epi32::<2>(sum),
        _mm512_extracti32x4_epi32::<3>(sum),
    ] {
        let low = _mm_clmulepi64_si128::<0x00>(lane, factors);
        let high = _mm_clmulepi64_si128::<0x11>(lane, factors);
        lane = _mm_xor_si128(_mm_xor_si128(low, high), next);
    }
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(lane).cast_unsigned());
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(lane, lane)).cast_unsigned();
    let state = u32::try_from(_mm_crc32_u64(state, high)).expect("the instruction gives 32 bits");
    sse42::update(state, tail)
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(sum: __m512i, factors: __m512i, next: __m512i) -> __m512i {
    let low = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let high = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    // 96h: exclusive or of all three.
    _mm512_ternarylogic_epi64::<0x96>(low, high, next)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn spread([low, high]: [i64; 2]) -> __m512i {
    _mm512_set_epi64(high, low, high, low, high, low, high, low)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(turn: &[u8; TURN]) -> [__m512i; 4] {
    let at = |index: usize| turn[index * 64..].as_ptr().cast();
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
