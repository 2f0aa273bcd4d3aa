//! Versions of the kernels for this machine's vectors, one folder per kernel, and the choice among
//! them, which is made once.
//!
//! x86-64 has AVX-512 and AVX2. aarch64 has NEON and its CRC-32 instructions; array merge and
//! sparse rows use the portable versions there. `make arm` runs the tests of the aarch64 versions
//! in an emulator, which shows whether they are right and says nothing about their speed.
//!
//! The meaning of a kernel is in the kernel's own module. Invariant: a [`Version`] exists only if
//! this processor can run it.

/// Defines two functions of a kernel: the first returns every [`Version`] that this machine can
/// run, the best first; the second returns the best one. A version is its name, the processor
/// features that it needs, and its functions.
macro_rules! versions {
    (
        $versions:ident, $best:ident: $functions:ty;
        x86_64: $($x86_name:literal [$($x86_feature:tt),+] $x86:expr),*;
        aarch64: $($arm_name:literal [$($arm_feature:tt),+] $arm:expr),*;
        portable: $portable:expr;
    ) => {
        /// Returns every version that this machine can run, the best first.
        pub(crate) fn $versions() -> impl Iterator<Item = Version<$functions>> {
            let mut versions: Vec<Version<$functions>> = Vec::new();
            $(
                #[cfg(target_arch = "x86_64")]
                if $(std::is_x86_feature_detected!($x86_feature))&&+ {
                    versions.push(Version { name: $x86_name, run: $x86 });
                }
            )*
            $(
                #[cfg(target_arch = "aarch64")]
                if $(std::arch::is_aarch64_feature_detected!($arm_feature))&&+ {
                    versions.push(Version { name: $arm_name, run: $arm });
                }
            )*
            versions.push(Version { name: "portable", run: $portable });
            versions.into_iter()
        }

        /// Returns the best version.
        pub(crate) fn $best() -> Version<$functions> {
            static BEST: LazyLock<Version<$functions>> =
                LazyLock::new(|| $versions().next().expect("the portable version"));
            *BEST
        }
    };
}

pub(crate) mod array_merge;
pub(crate) mod count;
pub(crate) mod erasure;
pub(crate) mod page_rank;
pub(crate) mod vector_add;
pub(crate) mod verify;

/// Compiled version of a kernel that this machine can run. `F` is the kernel's functions.
#[derive(Clone, Copy, Debug)]
pub struct Version<F> {
    name: &'static str,
    pub(crate) run: F,
}

impl<F> Version<F> {
    /// Returns the name of the version: its instruction set, or "portable".
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }
}
