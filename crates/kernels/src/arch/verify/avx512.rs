//! AVX-512 with VPCLMULQDQ: folds 256 bytes of a page per turn.
//!
//! To fold 128 bits over a distance of D bits, the low half is multiplied by x^(D+31) and the high
//! half by x^(D-33), both modulo the polynomial and reflected; the products, D bits further on,
//! have the same remainder. The instruction of SSE4.2 takes the last 128 bits.
//!
//! Carry-less multiplications bound the speed, and the instruction of SSE4.2 uses other units of
//! the processor. So before the vectors of a turn there are 64 bytes of which that instruction
//! makes a state, and the state is added to the first bytes of the vectors. All loads are in
//! ascending order: loads that jump within a page, or between pages, defeat the prefetchers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{POLYNOMIAL, functions, sse42};

functions!();

/// Number of bytes of a turn that four vectors take.
const FOLDED: usize = 256;
/// Number of bytes of a turn before these, taken as words.
const LINE: usize = 64;
/// Number of bytes of one turn.
const TURN: usize = LINE + FOLDED;

/// Returns the factors for a distance in bits: for the low half and for the high half.
const fn factors(distance: u32) -> [i64; 2] {
    [power(distance + 31) as i64, power(distance - 33) as i64]
}

const TURN_FACTORS: [i64; 2] = factors(2560);
const VECTOR_FACTORS: [[i64; 2]; 3] = [factors(1536), factors(1024), factors(512)];
const LANE_FACTORS: [[i64; 2]; 3] = [factors(384), factors(256), factors(128)];

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
    if pages[0].len() < FOLDED {
        return std::array::from_fn(|page| sse42::update(before[page], pages[page]));
    }
    let split = pages.map(|page| page.split_first_chunk::<FOLDED>().expect("long enough"));
    let mut sums: [[__m512i; 4]; N] = std::array::from_fn(|page| {
        let [a, b, c, d] = load(split[page].0);
        [_mm512_xor_si512(a, place(u64::from(before[page]))), b, c, d]
    });
    let factors = spread(TURN_FACTORS);
    let turns = split.map(|(_, rest)| rest.as_chunks::<TURN>());
    for turn in 0..turns[0].0.len() {
        for (sums, (turns, _)) in sums.iter_mut().zip(&turns) {
            let (line, folded) = turns[turn].split_first_chunk::<LINE>().expect("of a turn");
            let words = line.as_chunks::<8>().0.iter();
            let state =
                words.fold(0, |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
            let [a, b, c, d] = load(folded.first_chunk().expect("of a turn"));
            let next = [_mm512_xor_si512(a, place(state)), b, c, d];
            for (sum, next) in sums.iter_mut().zip(next) {
                *sum = fold(*sum, factors, next);
            }
        }
    }
    std::array::from_fn(|page| finish(sums[page], turns[page].1))
}

/// Returns a state at the place of the first bytes behind it.
#[inline]
#[target_feature(enable = "avx512f")]
fn place(state: u64) -> __m512i {
    _mm512_zextsi128_si512(_mm_cvtsi64_si128(state.cast_signed()))
}

/// Returns the state after a page's folded turns and its tail.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
fn finish(sums: [__m512i; 4], tail: &[u8]) -> u32 {
    let [far, middle, near] = VECTOR_FACTORS.map(|factors| spread(factors));
    let [a, b, c, d] = sums;
    // The folds do not wait for each other.
    let zero = _mm512_setzero_si512();
    let ab = _mm512_xor_si512(fold(a, far, d), fold(b, middle, zero));
    let mut sum = _mm512_xor_si512(ab, fold(c, near, zero));
    let (vectors, tail) = tail.as_chunks::<64>();
    for vector in vectors {
        // SAFETY: the array is a vector long; the load needs no alignment.
        sum = fold(sum, near, unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) });
    }
    // Each lane is folded to the last one, which stays as it is.
    let [[l0, h0], [l1, h1], [l2, h2]] = LANE_FACTORS;
    let factors = _mm512_set_epi64(0, 0, h2, l2, h1, l1, h0, l0);
    let folded = fold(sum, factors, _mm512_maskz_mov_epi64(0b1100_0000, sum));
    let (low, high) = (_mm512_castsi512_si256(folded), _mm512_extracti64x4_epi64::<1>(folded));
    let half = _mm256_xor_si256(low, high);
    let (low, high) = (_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
    let lane = _mm_xor_si128(low, high);
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(lane).cast_unsigned());
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(lane, lane)).cast_unsigned();
    let state = u32::try_from(_mm_crc32_u64(state, high)).expect("the instruction gives 32 bits");
    if tail.is_empty() { state } else { sse42::update(state, tail) }
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
fn load(folded: &[u8; FOLDED]) -> [__m512i; 4] {
    let at = |index: usize| folded[index * 64..].as_ptr().cast();
    // SAFETY: index 0 to 3, so all 64 bytes are there; the load needs no alignment.
    unsafe {
        [
            _mm512_loadu_si512(at(0)),
            _mm512_loadu_si512(at(1)),
            _mm512_loadu_si512(at(2)),
            _mm512_loadu_si512(at(3)),
        ]
    }
}
