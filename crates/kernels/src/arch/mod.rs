//! Versions of the kernels for this machine's vectors, one folder per kernel, and the choice among
//! them, which is made once.
//!
//! x86-64 has AVX-512 and AVX2. aarch64 has NEON and its CRC-32 instructions; array merge and
//! sparse rows use the portable versions there. `make arm` runs the tests of the aarch64 versions
//! in an emulator, which shows whether they are right and says nothing about their speed.
//!
//! The meaning of a kernel is in the kernel's own module. Invariant: a [`Version`] exists only if
//! this processor can run it.

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
    /// Returns the version that needs no processor feature beyond the target's baseline.
    const fn portable(run: F) -> Self {
        Self { name: "portable", run }
    }

    /// Returns a version that needs processor features, if they were detected.
    fn if_detected(detected: bool, name: &'static str, run: F) -> Option<Self> {
        detected.then_some(Self { name, run })
    }

    /// Returns the name of the version: its instruction set, or "portable".
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }
}

/// Returns the first of a kernel's versions, which is the best one.
fn best<F>(mut versions: impl Iterator<Item = Version<F>>) -> Version<F> {
    versions.next().expect("the portable version is always there")
}
