//! AVX2: vectors of 8 or 4 keys; a table gives the permutation that moves the kept keys to the
//! front.
#![allow(unsafe_code)]

/// Returns, for each mask of `LANES` lanes, the words of the kept lanes, in order.
const fn kept<const LANES: usize, const MASKS: usize>() -> [[u8; 8]; MASKS] {
    let words = 8 / LANES;
    let mut table = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let (mut from, mut to) = (0u8, 0);
        while from < 8 {
            if mask >> (from as usize / words) & 1 == 1 {
                table[mask][to] = from;
                to += 1;
            }
            from += 1;
        }
        mask += 1;
    }
    table
}

/// Makes one module for each size of key: they differ in instructions, and in a stage of the
/// network.
macro_rules! keys {
    (
        $module:ident, $key:ident, $lanes:literal, $splat:ident, $equal:ident, $above:ident,
        $bits:expr, $bytes_but_one:literal, $reverse:expr, $sort:expr
    ) => {
        pub(super) mod $module {
            use std::arch::x86_64::*;

            use super::super::vectors::vectors;
            use super::super::{self as portable, Functions, Key};
            use super::kept;

            type Vector = __m256i;

            const LANES: usize = $lanes;
            /// Number of parallel chains.
            const WAYS: usize = 2;
            const UPPER: Masks = ();
            type Masks = ();
            static KEPT: [[u8; 8]; 1 << LANES] = kept::<LANES, { 1 << LANES }>();

            vectors!("avx2,popcnt", $key);

            #[inline]
            #[target_feature(enable = "avx2")]
            fn load(keys: &[Raw; LANES]) -> Vector {
                // SAFETY: the array is a vector long; the load needs no alignment.
                unsafe { _mm256_loadu_si256(keys.as_ptr().cast()) }
            }

            #[inline]
            #[target_feature(enable = "avx2")]
            fn splat(key: $key) -> Vector {
                $splat(key)
            }

            #[inline]
            #[target_feature(enable = "avx2,popcnt")]
            fn turn(a: Vector, b: Vector, (): Masks) -> (Vector, usize) {
                let b = $reverse(b);
                let above = $above(a, b);
                let from_a = LANES - $bits(above).count_ones() as usize;
                ($sort(_mm256_blendv_epi8(a, b, above)), from_a)
            }

            #[inline]
            #[target_feature(enable = "avx2,popcnt")]
            fn emit(keys: Vector, previous: Vector, count: usize, out: &mut [Raw]) -> usize {
                let across = _mm256_permute2x128_si256::<0x21>(previous, keys);
                let shifted = _mm256_alignr_epi8::<$bytes_but_one>(keys, across);
                let new = !$bits($equal(keys, shifted)) as usize & ((1 << count) - 1);
                // SAFETY: a row of the table is 8 bytes long; the load needs no alignment.
                let order = unsafe { _mm_loadl_epi64(KEPT[new].as_ptr().cast()) };
                let keys = _mm256_permutevar8x32_epi32(keys, _mm256_cvtepu8_epi32(order));
                assert!(out.len() >= LANES, "no room for a vector");
                // SAFETY: there is room for a vector; the store needs no alignment.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), keys) };
                new.count_ones() as usize
            }
        }
    };
}

keys!(
    narrow,
    i32,
    8,
    _mm256_set1_epi32,
    _mm256_cmpeq_epi32,
    _mm256_cmpgt_epi32,
    |mask| _mm256_movemask_ps(_mm256_castsi256_ps(mask)),
    12,
    |keys| _mm256_permutevar8x32_epi32(keys, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
    |keys| {
        // In each stage a lane is compared with the one at half the distance.
        let other = _mm256_permute2x128_si256::<0x01>(keys, keys);
        let (low, high) = (_mm256_min_epi32(keys, other), _mm256_max_epi32(keys, other));
        let keys = _mm256_blend_epi32::<0b1111_0000>(low, high);
        let other = _mm256_shuffle_epi32::<0b01_00_11_10>(keys);
        let (low, high) = (_mm256_min_epi32(keys, other), _mm256_max_epi32(keys, other));
        let keys = _mm256_blend_epi32::<0b1100_1100>(low, high);
        let other = _mm256_shuffle_epi32::<0b10_11_00_01>(keys);
        let (low, high) = (_mm256_min_epi32(keys, other), _mm256_max_epi32(keys, other));
        _mm256_blend_epi32::<0b1010_1010>(low, high)
    }
);

keys!(
    wide,
    i64,
    4,
    _mm256_set1_epi64x,
    _mm256_cmpeq_epi64,
    _mm256_cmpgt_epi64,
    |mask| _mm256_movemask_pd(_mm256_castsi256_pd(mask)),
    8,
    _mm256_permute4x64_epi64::<0b00_01_10_11>,
    |keys| {
        // There is no minimum of 64 bits, so lanes that are greater are swapped.
        let other = _mm256_permute4x64_epi64::<0b01_00_11_10>(keys);
        let lower = _mm256_blend_epi32::<0b1111_0000>(keys, other);
        let upper = _mm256_blend_epi32::<0b1111_0000>(other, keys);
        let above = _mm256_cmpgt_epi64(lower, upper);
        let keys = _mm256_blendv_epi8(keys, other, above);
        let other = _mm256_shuffle_epi32::<0b01_00_11_10>(keys);
        let lower = _mm256_blend_epi32::<0b1100_1100>(keys, other);
        let upper = _mm256_blend_epi32::<0b1100_1100>(other, keys);
        _mm256_blendv_epi8(keys, other, _mm256_cmpgt_epi64(lower, upper))
    }
);
