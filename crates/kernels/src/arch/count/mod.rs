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
    static BEST: LazyLock<Version<Functions>> = LazyLock::new(|| super::best(versions()));
    BEST.run.count(pattern, bytes)
}

/// Returns every version that this machine can run, the best first.
pub(crate) fn versions() -> impl Iterator<Item = Version<Functions>> {
    #[cfg(target_arch = "x86_64")]
    let vector = {
        use std::is_x86_feature_detected as detected;
        let avx512 = detected!("avx512f") && detected!("popcnt");
        [
            Version::if_detected(avx512, "avx512", avx512::FUNCTIONS),
            Version::if_detected(detected!("avx2"), "avx2", avx2::FUNCTIONS),
        ]
    };
    #[cfg(target_arch = "aarch64")]
    let vector = [Version::if_detected(
        std::arch::is_aarch64_feature_detected!("neon"),
        "neon",
        neon::FUNCTIONS,
    )];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version<Functions>>; 0] = [];
    vector.into_iter().flatten().chain([Version::portable(portable::FUNCTIONS)])
}
