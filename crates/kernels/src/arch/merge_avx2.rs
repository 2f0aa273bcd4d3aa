//! AVX2: conversion and checks in vectors that the compiler makes; the merge itself is the
//! branchless one, because AVX2 has no instruction that compresses a vector.

use super::{Functions, Key};

pub(super) fn narrow() -> Functions<i32> {
    functions()
}

pub(super) fn wide() -> Functions<i64> {
    functions()
}

fn functions<K: Key>() -> Functions<K> {
    Functions { decode: decode::<K>, merge: super::merge::<K>, unique: super::unique::<K>, encode }
}

fn decode<K: Key>(bytes: &[u8], float: bool, previous: K, keys: &mut [K]) -> bool {
    // SAFETY: this version is only offered where AVX2 was detected.
    unsafe { decode_avx2(bytes, float, previous, keys) }
}

#[target_feature(enable = "avx2")]
fn decode_avx2<K: Key>(bytes: &[u8], float: bool, previous: K, keys: &mut [K]) -> bool {
    super::decode(bytes, float, previous, keys)
}

fn encode<K: Key>(keys: &[K], float: bool, bytes: &mut [u8]) {
    // SAFETY: this version is only offered where AVX2 was detected.
    unsafe { encode_avx2(keys, float, bytes) }
}

#[target_feature(enable = "avx2")]
fn encode_avx2<K: Key>(keys: &[K], float: bool, bytes: &mut [u8]) {
    K::encode(keys, float, bytes);
}
