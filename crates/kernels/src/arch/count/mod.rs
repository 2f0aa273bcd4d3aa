//! Versions of count, which compare whole vectors with a bit pattern.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use std::sync::LazyLock;

use super::Version;

/// Pattern of the elements to count: their masked bits equal `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Elements of 4 bytes.
    Narrow {
        /// Bits that matter.
        mask: u32,
        /// Their values.
        bits: u32,
    },
    /// Elements of 8 bytes.
    Wide {
        /// Bits that matter.
        mask: u64,
        /// Their values.
        bits: u64,
    },
}

/// Functions of a version, by width of the elements: bytes, mask, bits.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    narrow: fn(&[u8], u32, u32) -> u64,
    wide: fn(&[u8], u64, u64) -> u64,
}

impl Functions {
    /// Returns the number of elements of `bytes` that match the pattern.
    pub(crate) fn count(&self, pattern: &Pattern, bytes: &[u8]) -> u64 {
        match *pattern {
            Pattern::Narrow { mask, bits } => (self.narrow)(bytes, mask, bits),
            Pattern::Wide { mask, bits } => (self.wide)(bytes, mask, bits),
        }
    }
}

/// Returns the number of elements of `bytes` that match the pattern, by the best version.
pub(crate) fn count(pattern: &Pattern, bytes: &[u8]) -> u64 {
    best().run.count(pattern, bytes)
}

versions! {
    versions, best: Functions;
    x86_64: "avx512" ["avx512f", "popcnt"] avx512::FUNCTIONS, "avx2" ["avx2"] avx2::FUNCTIONS;
    aarch64: "neon" ["neon"] neon::FUNCTIONS;
    portable: portable::FUNCTIONS;
}
