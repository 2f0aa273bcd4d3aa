//! Versions of array merge, over blocks of keys.
//!
//! The portable version takes one key a turn without a branch. AVX-512 merges a vector of keys a
//! turn by a bitonic network, and compresses away what equals its neighbour.
#![allow(unsafe_code)]

use std::sync::LazyLock;

use crate::array_merge::key::Key;

/// Elements that a merge may write beyond its result: one vector.
pub(crate) const SLACK: usize = 16;

/// A merge of two blocks.
pub(crate) type Merge<K> = fn(&[K], &[K], K, &mut [K]) -> (usize, usize, usize);

/// The functions of a version for keys of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions<K> {
    /// Keys of bytes, floating or not; false when one is NaN or smaller than the one before it
    /// (the third argument comes before the first).
    pub(crate) decode: fn(&[u8], bool, K, &mut [K]) -> bool,
    /// Merges until one input is used up. The third argument came before; equal ones are dropped.
    /// Gives how many keys it took of each and how many it wrote.
    pub(crate) merge: Merge<K>,
    /// Copies keys that differ from the one before; gives how many.
    pub(crate) unique: fn(&[K], K, &mut [K]) -> usize,
    /// Bytes of keys, floating or not.
    pub(crate) encode: fn(&[K], bool, &mut [u8]),
}

/// One compiled version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its name.
    pub(crate) name: &'static str,
    /// For elements of 4 bytes.
    pub(crate) narrow: Functions<i32>,
    /// For elements of 8 bytes.
    pub(crate) wide: Functions<i64>,
}

/// The best version.
pub(crate) fn best() -> Version {
    static BEST: LazyLock<Version> =
        LazyLock::new(|| versions().next().expect("the portable version is always there"));
    *BEST
}

/// Every version that this machine can run, the best first.
pub(crate) fn versions() -> impl Iterator<Item = Version> {
    #[cfg(target_arch = "x86_64")]
    let vector = [
        (std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("popcnt"))
            .then_some(Version {
                name: "avx512",
                narrow: avx512::narrow::FUNCTIONS,
                wide: avx512::wide::FUNCTIONS,
            }),
        std::is_x86_feature_detected!("avx2").then_some(Version {
            name: "avx2",
            narrow: avx2::narrow(),
            wide: avx2::wide(),
        }),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let vector: [Option<Version>; 0] = [];
    let portable = Version { name: "portable", narrow: functions(), wide: functions() };
    vector.into_iter().flatten().chain([portable])
}

fn functions<K: Key>() -> Functions<K> {
    Functions { decode: decode::<K>, merge: merge::<K>, unique: unique::<K>, encode: K::encode }
}

#[inline(always)]
fn decode<K: Key>(bytes: &[u8], float: bool, previous: K, keys: &mut [K]) -> bool {
    let numbers = K::decode(bytes, float, keys);
    numbers && K::sorted(keys) && keys.first().is_none_or(|first| previous <= *first)
}

#[inline(always)]
fn merge<K: Key>(a: &[K], b: &[K], before: K, out: &mut [K]) -> (usize, usize, usize) {
    let (mut i, mut j, mut written, mut last) = (0, 0, 0, before);
    assert!(out.len() >= a.len() + b.len(), "no room for the merge");
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        let next = if x <= y { x } else { y };
        out[written] = next;
        written += usize::from(next != last);
        last = next;
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    (i, j, written)
}

#[inline(always)]
fn unique<K: Key>(keys: &[K], before: K, out: &mut [K]) -> usize {
    let (mut written, mut last) = (0, before);
    assert!(out.len() >= keys.len(), "no room for the keys");
    for key in keys {
        out[written] = *key;
        written += usize::from(*key != last);
        last = *key;
    }
    written
}

#[cfg(target_arch = "x86_64")]
#[path = "merge_avx2.rs"]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[path = "merge_avx512.rs"]
mod avx512;
