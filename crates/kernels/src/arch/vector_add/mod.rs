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
    (best().run)(element, left, right, sum);
}

versions! {
    versions, best: Add;
    x86_64: "avx512" ["avx512f"] avx512::add, "avx2" ["avx2"] avx2::add;
    aarch64: "neon" ["neon"] neon::add;
    portable: scalar::add;
}

/// Returns the number of bytes to add one by one before the result is aligned for streaming; `None`
/// if the result is short, or no whole element ends at an aligned address.
#[cfg(target_arch = "x86_64")]
fn head(sum: &[u8], vector_bytes: usize, element: Numeric) -> Option<usize> {
    let head = sum.as_ptr().align_offset(vector_bytes);
    (sum.len() >= STREAM_BYTES && head.is_multiple_of(element.bytes())).then_some(head)
}
