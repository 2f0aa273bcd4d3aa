//! Versions of vector add. Long results use non-temporal stores, because ordinary ones would first
//! read the memory that they overwrite.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod vectors;

use std::sync::LazyLock;

use super::Version;
use crate::numeric::Numeric;
use crate::vector_add::scalar;

/// Length of results that exceed the caches anyway, bytes.
#[cfg(target_arch = "x86_64")]
const STREAM_BYTES: usize = 4 << 20;

/// Adds equally long arrays of whole elements into a third.
pub(crate) type Add = fn(Numeric, &[u8], &[u8], &mut [u8]);

/// Adds with the best version.
pub(crate) fn add(element: Numeric, left: &[u8], right: &[u8], sum: &mut [u8]) {
    static BEST: LazyLock<Version<Add>> = LazyLock::new(|| super::best(versions()));
    (BEST.run)(element, left, right, sum);
}

/// Returns every version that this machine can run, the best first.
pub(crate) fn versions() -> impl Iterator<Item = Version<Add>> {
    #[cfg(target_arch = "x86_64")]
    let vector = {
        use std::is_x86_feature_detected as detected;
        [
            Version::if_detected(detected!("avx512f"), "avx512", avx512::add as Add),
            Version::if_detected(detected!("avx2"), "avx2", avx2::add),
        ]
    };
    #[cfg(target_arch = "aarch64")]
    let vector = [Version::if_detected(
        std::arch::is_aarch64_feature_detected!("neon"),
        "neon",
        neon::add as Add,
    )];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version<Add>>; 0] = [];
    vector.into_iter().flatten().chain([Version::portable(scalar::add as Add)])
}

/// Returns the number of bytes to add one by one before the result is aligned for streaming; `None`
/// if the result is short, or no whole element ends at an aligned address.
#[cfg(target_arch = "x86_64")]
fn head(sum: &[u8], vector_bytes: usize, element: Numeric) -> Option<usize> {
    let head = sum.as_ptr().align_offset(vector_bytes);
    (sum.len() >= STREAM_BYTES && head.is_multiple_of(element.bytes())).then_some(head)
}
