//! Versions of the kernels for this machine's vectors, and the choice among them, made once.
//!
//! x86-64 has AVX-512 and AVX2. aarch64 has NEON and its CRC-32 instructions; array merge and
//! sparse rows are the portable ones there. `make arm` runs the tests of the aarch64 versions in an
//! emulator, which tells whether they are right and nothing about their speed.
//!
//! Never: a kernel's meaning, which its own module has. Invariant: a [`Version`] is only to be had
//! for a processor that can run it.

pub(crate) mod add;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod crc;
pub(crate) mod merge;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
pub(crate) mod rank;

use std::sync::LazyLock;

/// Which elements to count: those whose masked bits are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Elements of 4 bytes.
    Narrow {
        /// Bits that matter.
        mask: u32,
        /// What they are.
        bits: u32,
    },
    /// Elements of 8 bytes.
    Wide {
        /// Bits that matter.
        mask: u64,
        /// What they are.
        bits: u64,
    },
}

/// One compiled version of the count kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its name.
    pub(crate) name: &'static str,
    narrow: fn(&[u8], u32, u32) -> u64,
    wide: fn(&[u8], u64, u64) -> u64,
}

impl Version {
    pub(crate) fn count(&self, pattern: &Pattern, bytes: &[u8]) -> u64 {
        match *pattern {
            Pattern::Narrow { mask, bits } => (self.narrow)(bytes, mask, bits),
            Pattern::Wide { mask, bits } => (self.wide)(bytes, mask, bits),
        }
    }
}

/// Elements of `bytes` with the pattern, by the best version.
pub(crate) fn count(pattern: &Pattern, bytes: &[u8]) -> u64 {
    static BEST: LazyLock<Version> =
        LazyLock::new(|| versions().next().unwrap_or_else(portable::version));
    BEST.count(pattern, bytes)
}

/// Every version that this machine can run, the best first.
pub(crate) fn versions() -> impl Iterator<Item = Version> {
    #[cfg(target_arch = "x86_64")]
    let vector = [avx512::version(), avx2::version()];
    #[cfg(target_arch = "aarch64")]
    let vector = [neon::version()];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version>; 0] = [];
    vector.into_iter().flatten().chain([portable::version()])
}
