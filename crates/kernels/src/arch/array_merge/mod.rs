//! Versions of array merge, over blocks of keys in their memory layout.
//!
//! The portable version takes one key per turn, without a branch. The vector versions share a
//! driver (`vectors.rs`): it passes one vector of keys per turn through a bitonic network, works on
//! several parts of the blocks at a time, and removes duplicates by compression.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod vectors;

use std::sync::LazyLock;

use super::Version;
use crate::array_merge::key::Key;

/// Number of elements that a version may write past its result: one vector.
pub(crate) const SLACK: usize = 16;

/// Prefetch distance of a merge in bytes: about a block.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 8192;

/// Functions of a version for keys of one size. Each writes only keys that differ from the one
/// before, returns the number of keys written, and needs room for [`SLACK`] more keys than it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions<K: Key> {
    /// Returns true if these keys are sorted and none is smaller than the second argument, the key
    /// before them.
    pub(crate) sorted: fn(&[K::Raw], K) -> bool,
    /// Converts floating numbers into keys; returns false if one is NaN or they are not sorted, as
    /// in `sorted`.
    pub(crate) decode: Decode<K>,
    /// Merges the given number of the blocks' smallest keys. The fourth argument is the key before
    /// them.
    pub(crate) merge: Merge<K>,
    /// Copies keys without duplicates; the second argument is the key before them.
    pub(crate) unique: Unique<K>,
    /// Converts keys into floating numbers, in place.
    pub(crate) encode: fn(&mut [K::Raw]),
}

/// Conversion of floating numbers into keys.
pub(crate) type Decode<K> = fn(&[<K as Key>::Raw], K, &mut [<K as Key>::Raw]) -> bool;
/// Copy without duplicates.
pub(crate) type Unique<K> = fn(&[<K as Key>::Raw], K, &mut [<K as Key>::Raw]) -> usize;
/// Merge of two blocks.
pub(crate) type Merge<K> =
    fn(&[<K as Key>::Raw], &[<K as Key>::Raw], usize, K, &mut [<K as Key>::Raw]) -> usize;

/// Functions of a version by size of key.
#[derive(Clone, Copy, Debug)]
pub struct Both {
    /// For elements of 4 bytes.
    pub(crate) narrow: Functions<i32>,
    /// For elements of 8 bytes.
    pub(crate) wide: Functions<i64>,
}

versions! {
    versions, best: Both;
    x86_64:
        "avx512" ["avx512f", "popcnt"] Both {
            narrow: avx512::narrow::FUNCTIONS,
            wide: avx512::wide::FUNCTIONS,
        },
        "avx2" ["avx2", "popcnt"] Both {
            narrow: avx2::narrow::FUNCTIONS,
            wide: avx2::wide::FUNCTIONS,
        };
    aarch64: ;
    portable: Both { narrow: functions(), wide: functions() };
}

fn functions<K: Key>() -> Functions<K> {
    Functions {
        sorted: sorted::<K>,
        decode: decode::<K>,
        merge: merge::<K>,
        unique: unique::<K>,
        encode: K::encode,
    }
}

#[inline(always)]
fn sorted<K: Key>(keys: &[K::Raw], previous: K) -> bool {
    K::sorted(keys) && keys.first().is_none_or(|first| previous <= K::from_raw(*first))
}

#[inline(always)]
fn decode<K: Key>(elements: &[K::Raw], previous: K, keys: &mut [K::Raw]) -> bool {
    K::decode(elements, keys) && sorted(keys, previous)
}

fn merge<K: Key>(a: &[K::Raw], b: &[K::Raw], count: usize, before: K, out: &mut [K::Raw]) -> usize {
    let (mut i, mut j, mut written, mut last) = (0, 0, 0, before);
    assert!(out.len() >= count, "no room for the merge");
    while i < a.len() && j < b.len() && i + j < count {
        let (x, y) = (K::from_raw(a[i]), K::from_raw(b[j]));
        let next = if x <= y { x } else { y };
        out[written] = next.to_raw();
        written += usize::from(next != last);
        last = next;
        i += usize::from(x <= y);
        j += usize::from(y < x);
    }
    let rest = if i < a.len() { &a[i..] } else { &b[j..] };
    written + unique(&rest[..count - i - j], last, &mut out[written..])
}

fn unique<K: Key>(keys: &[K::Raw], before: K, out: &mut [K::Raw]) -> usize {
    let (mut written, mut last) = (0, before);
    assert!(out.len() >= keys.len(), "no room for the keys");
    for raw in keys {
        let key = K::from_raw(*raw);
        out[written] = *raw;
        written += usize::from(key != last);
        last = key;
    }
    written
}

/// Returns how many of the merge's first `count` keys come from `a`, whose keys follow equal ones
/// of `b`.
#[cfg(target_arch = "x86_64")]
fn split<K: Key>(a: &[K::Raw], b: &[K::Raw], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        if K::from_raw(a[middle]) < K::from_raw(b[count - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
