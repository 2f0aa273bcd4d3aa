//! AVX-512: vectors of 16 or 8 keys; an instruction compresses the kept keys to the front.
#![allow(unsafe_code)]

/// Makes one module for each size of key: they differ in the instructions' names, and in a stage of
/// the network.
macro_rules! keys {
    (
        $module:ident, $key:ident, $mask:ident, $lanes:literal, $splat:ident, $min:ident,
        $mask_max:ident, $not_above:ident, $different:ident, $compress:ident,
        $reverse:expr, $shift:expr, [$(($exchange:expr, $upper:literal)),+]
    ) => {
        pub(super) mod $module {
            use std::arch::x86_64::*;

            use super::super::vectors::vectors;
            use super::super::{self as portable, Functions, Key};

            type Vector = __m512i;

            const LANES: usize = $lanes;
            /// Number of parallel chains.
            const WAYS: usize = 2;
            /// Upper lanes in each stage of the network.
            const UPPER: [$mask; [$($upper),+].len()] = [$($upper),+];
            type Masks = [$mask; UPPER.len()];

            vectors!("avx512f,popcnt", $key);

            #[inline]
            #[target_feature(enable = "avx512f")]
            fn load(keys: &[Raw; LANES]) -> Vector {
                // SAFETY: the array is a vector long; the load needs no alignment.
                unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) }
            }

            #[inline]
            #[target_feature(enable = "avx512f")]
            fn splat(key: $key) -> Vector {
                $splat(key)
            }

            #[inline]
            #[target_feature(enable = "avx512f,popcnt")]
            fn turn(a: Vector, b: Vector, masks: Masks) -> (Vector, usize) {
                let b = $reverse(b);
                let from_a = $not_above(a, b).count_ones() as usize;
                // In each stage a lane is compared with the one at half the distance.
                let mut keys = $min(a, b);
                let mut masks = masks.into_iter();
                $({
                    let other = $exchange(keys);
                    let upper = masks.next().expect("a mask a stage");
                    keys = $mask_max($min(keys, other), upper, keys, other);
                })+
                (keys, from_a)
            }

            #[inline]
            #[target_feature(enable = "avx512f,popcnt")]
            fn emit(keys: Vector, previous: Vector, count: usize, out: &mut [Raw]) -> usize {
                let new = $different(keys, $shift(keys, previous));
                let new = if count < LANES { new & ((1 << count) - 1) } else { new };
                assert!(out.len() >= LANES, "no room for a vector");
                // SAFETY: there is room for a vector; the store needs no alignment.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), $compress(new, keys)) };
                new.count_ones() as usize
            }
        }
    };
}

keys!(
    narrow,
    i32,
    u16,
    16,
    _mm512_set1_epi32,
    _mm512_min_epi32,
    _mm512_mask_max_epi32,
    _mm512_cmple_epi32_mask,
    _mm512_cmpneq_epi32_mask,
    _mm512_maskz_compress_epi32,
    |keys| {
        let order = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm512_permutexvar_epi32(order, keys)
    },
    _mm512_alignr_epi32::<15>,
    [
        (|keys| _mm512_shuffle_i64x2::<0b01_00_11_10>(keys, keys), 0xFF00),
        (|keys| _mm512_shuffle_i64x2::<0b10_11_00_01>(keys, keys), 0xF0F0),
        (_mm512_shuffle_epi32::<0b01_00_11_10>, 0xCCCC),
        (_mm512_shuffle_epi32::<0b10_11_00_01>, 0xAAAA)
    ]
);

keys!(
    wide,
    i64,
    u8,
    8,
    _mm512_set1_epi64,
    _mm512_min_epi64,
    _mm512_mask_max_epi64,
    _mm512_cmple_epi64_mask,
    _mm512_cmpneq_epi64_mask,
    _mm512_maskz_compress_epi64,
    |keys| _mm512_permutexvar_epi64(_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), keys),
    _mm512_alignr_epi64::<7>,
    [
        (|keys| _mm512_shuffle_i64x2::<0b01_00_11_10>(keys, keys), 0xF0),
        (|keys| _mm512_shuffle_i64x2::<0b10_11_00_01>(keys, keys), 0xCC),
        (_mm512_shuffle_epi32::<0b01_00_11_10>, 0xAA)
    ]
);
