//! AVX-512: a vector of keys a turn through a bitonic network, duplicates compressed away.
//!
//! A turn merges the vector held back with the next vector of the input whose next key is smaller;
//! the lower half of what comes out is final, the upper half is held back. At the end the keys held
//! back are given back to their inputs, and the branchless merge goes on from there.

/// One module for each size of key: they differ in the instructions' names, and in a stage of the
/// network.
macro_rules! keys {
    (
        $module:ident, $key:ident, $lanes:literal, $splat:ident, $min:ident,
        $max:ident, $mask_max:ident, $different:ident, $compress:ident, $reverse:expr,
        $shift:expr, [$(($exchange:expr, $upper:literal)),+]
    ) => {
        pub(super) mod $module {
            use std::arch::x86_64::*;

            use super::super::{self as portable, Functions, Key};

            pub(in super::super) const FUNCTIONS: Functions<$key> =
                Functions { decode, merge, unique, encode };

            fn decode(bytes: &[u8], float: bool, previous: $key, keys: &mut [$key]) -> bool {
                #[target_feature(enable = "avx512f")]
                fn inner(bytes: &[u8], float: bool, previous: $key, keys: &mut [$key]) -> bool {
                    portable::decode(bytes, float, previous, keys)
                }
                // SAFETY: this version is only offered where the features were detected.
                unsafe { inner(bytes, float, previous, keys) }
            }

            fn encode(keys: &[$key], float: bool, bytes: &mut [u8]) {
                #[target_feature(enable = "avx512f")]
                fn inner(keys: &[$key], float: bool, bytes: &mut [u8]) {
                    Key::encode(keys, float, bytes);
                }
                // SAFETY: this version is only offered where the features were detected.
                unsafe { inner(keys, float, bytes) }
            }

            fn merge(
                a: &[$key],
                b: &[$key],
                before: $key,
                out: &mut [$key],
            ) -> (usize, usize, usize) {
                assert!(out.len() >= a.len() + b.len() + $lanes, "no room for the merge");
                if a.len() < $lanes || b.len() < $lanes {
                    return portable::merge(a, b, before, out);
                }
                // SAFETY: this version is only offered where the features were detected.
                let (i, j, written, last) = unsafe { vectors(a, b, before, out) };
                let rest = portable::merge(&a[i..], &b[j..], last, &mut out[written..]);
                (i + rest.0, j + rest.1, written + rest.2)
            }

            fn unique(keys: &[$key], before: $key, out: &mut [$key]) -> usize {
                assert!(out.len() >= keys.len() + $lanes, "no room for the keys");
                // SAFETY: this version is only offered where the features were detected.
                let (written, last) = unsafe { unique_vectors(keys, before, out) };
                let rest = &keys[keys.len() - keys.len() % $lanes..];
                written + portable::unique(rest, last, &mut out[written..])
            }

            #[target_feature(enable = "avx512f,popcnt")]
            fn unique_vectors(keys: &[$key], before: $key, out: &mut [$key]) -> (usize, $key) {
                let (mut written, mut previous, mut last) = (0, $splat(before), before);
                for vector in keys.as_chunks::<$lanes>().0 {
                    let keys = load(vector);
                    written += emit(keys, previous, &mut out[written..]);
                    previous = keys;
                    last = vector[$lanes - 1];
                }
                (written, last)
            }

            /// Writes the keys that differ from the one before them, and gives their number.
            #[inline]
            #[target_feature(enable = "avx512f,popcnt")]
            fn emit(keys: __m512i, previous: __m512i, out: &mut [$key]) -> usize {
                let new = $different(keys, $shift(keys, previous));
                assert!(out.len() >= $lanes, "no room for a vector");
                // SAFETY: there is room for a vector; the store needs no alignment.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), $compress(new, keys)) };
                new.count_ones() as usize
            }

            #[inline]
            #[target_feature(enable = "avx512f")]
            fn load(keys: &[$key; $lanes]) -> __m512i {
                // SAFETY: the array is a vector long; the load needs no alignment.
                unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) }
            }

            /// Sorts a bitonic sequence: in each stage a lane meets the one at half the distance.
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn sort(mut keys: __m512i) -> __m512i {
                $({
                    let other = $exchange(keys);
                    keys = $mask_max($min(keys, other), $upper, keys, other);
                })+
                keys
            }

            /// Positions in both inputs, keys written, and the last of them.
            #[target_feature(enable = "avx512f,popcnt")]
            fn vectors(
                a: &[$key],
                b: &[$key],
                before: $key,
                out: &mut [$key],
            ) -> (usize, usize, usize, $key) {
                let next = |keys: &[$key], at: usize| {
                    $reverse(load(keys[at..].first_chunk().expect("a vector is left")))
                };
                let mut held = load(a.first_chunk().expect("the input has a vector"));
                let mut incoming = next(b, 0);
                let (mut i, mut j, mut written) = ($lanes, $lanes, 0);
                let mut previous = $splat(before);
                loop {
                    let low = sort($min(held, incoming));
                    held = sort($max(held, incoming));
                    written += emit(low, previous, &mut out[written..]);
                    previous = low;
                    if i + $lanes > a.len() || j + $lanes > b.len() {
                        break;
                    }
                    let from_a = a[i] <= b[j];
                    incoming = if from_a { next(a, i) } else { next(b, j) };
                    i += if from_a { $lanes } else { 0 };
                    j += if from_a { 0 } else { $lanes };
                }
                // What is held back are the largest keys taken.
                for _ in 0..$lanes {
                    if j == 0 || (i > 0 && a[i - 1] > b[j - 1]) {
                        i -= 1;
                    } else {
                        j -= 1;
                    }
                }
                let mut last = [0; $lanes];
                // SAFETY: the array is a vector long; the store needs no alignment.
                unsafe { _mm512_storeu_si512(last.as_mut_ptr().cast(), previous) };
                (i, j, written, last[$lanes - 1])
            }
        }
    };
}

keys!(
    narrow,
    i32,
    16,
    _mm512_set1_epi32,
    _mm512_min_epi32,
    _mm512_max_epi32,
    _mm512_mask_max_epi32,
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
    8,
    _mm512_set1_epi64,
    _mm512_min_epi64,
    _mm512_max_epi64,
    _mm512_mask_max_epi64,
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
