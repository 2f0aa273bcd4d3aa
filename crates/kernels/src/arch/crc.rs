//! Versions of the CRC-32C of pages: tables of 8 bytes a turn, the instructions of SSE4.2 and of
//! ARMv8, and AVX-512's carry-less multiplication.
//!
//! Several pages may advance together, because a page's own bytes wait for each other.
#![allow(unsafe_code)]

use std::sync::LazyLock;

/// Groups of `unroll` pages, then what is left one by one, each group through `$states`, which
/// gives the states of an array of pages of any length.
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
/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// One compiled version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its name.
    pub(crate) name: &'static str,
    update: fn(u32, &[u8]) -> u32,
    pages: fn(&[u8], usize, u8, &mut Vec<u32>),
}

impl Version {
    /// The state after more bytes.
    pub(crate) fn update(&self, state: u32, bytes: &[u8]) -> u32 {
        (self.update)(state, bytes)
    }

    /// Appends the checksums of whole pages, `unroll` of which advance together, 1 to 8.
    pub(crate) fn pages(&self, data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
        (self.pages)(data, page, unroll, out);
    }
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
    let vector = {
        let sse42 = std::is_x86_feature_detected!("sse4.2");
        let avx512 = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("vpclmulqdq")
            && std::is_x86_feature_detected!("pclmulqdq");
        [
            (sse42 && avx512).then_some(Version {
                name: "avx512",
                update: avx512::update,
                pages: avx512::pages,
            }),
            sse42.then_some(Version { name: "sse4.2", update: sse42::update, pages: sse42::pages }),
        ]
    };
    #[cfg(target_arch = "aarch64")]
    let vector = [std::arch::is_aarch64_feature_detected!("crc").then_some(Version {
        name: "crc",
        update: armv8::update,
        pages: armv8::pages,
    })];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version>; 0] = [];
    vector.into_iter().flatten().chain([Version { name: "portable", update, pages }])
}

/// What each byte of eight does to the state, the last byte's table first.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0u32;
    while byte < 256 {
        let mut state = byte;
        let mut table = 0;
        while table < 8 {
            let mut bit = 0;
            while bit < 8 {
                state = (state >> 1) ^ (POLYNOMIAL * (state & 1));
                bit += 1;
            }
            tables[table][byte as usize] = state;
            table += 1;
        }
        byte += 1;
    }
    tables
};

#[inline(always)]
fn word(state: u32, word: [u8; 8]) -> u32 {
    let bytes = (u64::from_le_bytes(word) ^ u64::from(state)).to_le_bytes();
    let each = bytes.iter().zip(TABLES.iter().rev());
    each.fold(0, |state, (byte, table)| state ^ table[usize::from(*byte)])
}

#[inline(always)]
fn byte(state: u32, byte: u8) -> u32 {
    (state >> 8) ^ TABLES[0][usize::from(state.to_le_bytes()[0] ^ byte)]
}

fn update(state: u32, bytes: &[u8]) -> u32 {
    together([bytes], [state], word, byte)[0]
}

fn pages(data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
    each_group!(data, page, unroll, out, |pages| together(pages, [!0; _], word, byte));
}

/// The states of several pages of one length after all their bytes.
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

/// A version by instructions for a word of 8 bytes and for a byte.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! instructions {
    ($module:ident, $arch:ident, $feature:literal, $word:expr, $byte:ident) => {
        mod $module {
            use std::arch::$arch::*;

            use super::together;

            pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
                // SAFETY: this version is only offered where the feature was detected.
                let [state] = unsafe { states([bytes], [state]) };
                state
            }

            pub(super) fn pages(data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
                each_group!(data, page, unroll, out, |pages| group(pages));
            }

            fn group<const N: usize>(pages: [&[u8]; N]) -> [u32; N] {
                // SAFETY: this version is only offered where its features were detected.
                unsafe { states(pages, [!0; N]) }
            }

            #[target_feature(enable = $feature)]
            fn states<const N: usize>(pages: [&[u8]; N], before: [u32; N]) -> [u32; N] {
                let word = |state, word| $word(state, u64::from_le_bytes(word));
                together(pages, before, word, |state, byte| $byte(state, byte))
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instructions!(
    sse42,
    x86_64,
    "sse4.2",
    |state, word| {
        let state = _mm_crc32_u64(u64::from(state), word);
        u32::try_from(state).expect("the instruction gives 32 bits")
    },
    _mm_crc32_u8
);

#[cfg(target_arch = "aarch64")]
instructions!(armv8, aarch64, "crc", __crc32cd, __crc32cb);

#[cfg(target_arch = "x86_64")]
#[path = "crc_avx512.rs"]
mod avx512;
