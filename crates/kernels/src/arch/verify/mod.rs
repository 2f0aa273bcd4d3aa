//! Versions of the CRC-32C of pages: tables (8 bytes per turn), the instructions of SSE4.2 and of
//! ARMv8, and AVX-512's carry-less multiplication.
//!
//! Several pages may advance together, because each turn of one page depends on the turn before.

#[cfg(target_arch = "aarch64")]
mod armv8;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod instructions;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse42;

use std::sync::LazyLock;

use super::Version;

/// Computes pages in groups of `unroll`, then the rest one by one. `$states` returns the states of
/// an array of pages of any length.
macro_rules! each_group {
    ($data:expr, $page:expr, $unroll:expr, $out:expr, |$pages:ident| $states:expr) => {{
        let (data, page, out): (&[u8], usize, &mut Vec<u32>) = ($data, $page, $out);
        macro_rules! group {
            ($count:literal) => {{
                let mut groups = data.chunks_exact(page * $count);
                for group in groups.by_ref() {
                    let $pages: [&[u8]; $count] =
                        std::array::from_fn(|index| &group[index * page..][..page]);
                    let states: [u32; $count] = $states;
                    out.extend(states.map(|state| !state));
                }
                groups.remainder()
            }};
        }
        let data = match $unroll {
            8.. => group!(8),
            7 => group!(7),
            6 => group!(6),
            5 => group!(5),
            4 => group!(4),
            3 => group!(3),
            2 => group!(2),
            _ => data,
        };
        for one in data.chunks_exact(page) {
            let $pages = [one];
            let states: [u32; 1] = $states;
            out.push(!states[0]);
        }
    }};
}
/// Defines the functions of a version whose `states` needs processor features. `states` returns the
/// states of several pages of one length after all their bytes, given those before.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! functions {
    () => {
        /// The functions of this version.
        pub(super) const FUNCTIONS: super::Functions = super::Functions { update, pages };

        pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
            // SAFETY: this version is only offered where its features were detected.
            let [state] = unsafe { states([bytes], [state]) };
            state
        }

        fn pages(data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
            super::each_group!(data, page, unroll, out, |pages| group(pages));
        }

        fn group<const N: usize>(pages: [&[u8]; N]) -> [u32; N] {
            // SAFETY: this version is only offered where its features were detected.
            unsafe { states(pages, [!0; N]) }
        }
    };
}
use each_group;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use functions;

/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The functions of a version.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    update: fn(u32, &[u8]) -> u32,
    pages: fn(&[u8], usize, u8, &mut Vec<u32>),
}

impl Functions {
    /// Returns the state after more bytes.
    pub(crate) fn update(&self, state: u32, bytes: &[u8]) -> u32 {
        (self.update)(state, bytes)
    }

    /// Appends the checksums of whole pages, `unroll` of which advance together, 1 to 8.
    pub(crate) fn pages(&self, data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
        (self.pages)(data, page, unroll, out);
    }
}

versions! {
    versions, best: Functions;
    x86_64:
        "avx512" ["sse4.2", "avx512f", "vpclmulqdq", "pclmulqdq"] avx512::FUNCTIONS,
        "sse4.2" ["sse4.2"] sse42::FUNCTIONS;
    aarch64: "crc" ["crc"] armv8::FUNCTIONS;
    portable: portable::FUNCTIONS;
}

/// Returns the states of several pages of one length after all their bytes.
#[inline(always)]
fn together<const N: usize>(
    pages: [&[u8]; N],
    mut states: [u32; N],
    word: impl Fn(u32, [u8; 8]) -> u32,
    byte: impl Fn(u32, u8) -> u32,
) -> [u32; N] {
    let pages = pages.map(|page| page.as_chunks::<8>());
    for index in 0..pages[0].0.len() {
        for (state, (words, _)) in states.iter_mut().zip(&pages) {
            *state = word(*state, words[index]);
        }
    }
    for (state, (_, tail)) in states.iter_mut().zip(&pages) {
        *state = tail.iter().fold(*state, |state, one| byte(state, *one));
    }
    states
}
