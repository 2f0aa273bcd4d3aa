//! Versions of page rank's products, all with the lanes that the kernel's module defines.
//!
//! Products are rounded before they are added: no version uses fused multiply-add.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod sparse;

use std::sync::LazyLock;

use super::Version;
use crate::page_rank::LANES_DENSE;
pub(crate) use sparse::Walk;

/// Adds the products of a row's whole turns and the same part of the vector to the lanes.
pub(crate) type Dense = fn(&[u8], &[f32], &mut [f32; LANES_DENSE]);
/// Appends the sums of whole rows, up to the first that is cut or wrong.
pub(crate) type Sparse = fn(&[[u8; 4]], &[f64], &mut Vec<f64>) -> Walk;

/// Returns the best version of the dense product.
pub(crate) fn best_dense() -> Version<Dense> {
    static BEST: LazyLock<Version<Dense>> = LazyLock::new(|| super::best(dense_versions()));
    *BEST
}

/// Returns the best version of the sparse product.
pub(crate) fn best_sparse() -> Version<Sparse> {
    static BEST: LazyLock<Version<Sparse>> = LazyLock::new(|| super::best(sparse_versions()));
    *BEST
}

/// Returns every version of the dense product that this machine can run, the best first.
pub(crate) fn dense_versions() -> impl Iterator<Item = Version<Dense>> {
    #[cfg(target_arch = "x86_64")]
    let vector = {
        use std::is_x86_feature_detected as detected;
        [
            Version::if_detected(detected!("avx512f"), "avx512", avx512::dense as Dense),
            Version::if_detected(detected!("avx2"), "avx2", avx2::dense),
        ]
    };
    #[cfg(target_arch = "aarch64")]
    let vector = [Version::if_detected(
        std::arch::is_aarch64_feature_detected!("neon"),
        "neon",
        neon::dense as Dense,
    )];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<Version<Dense>>; 0] = [];
    vector.into_iter().flatten().chain([Version::portable(dense as Dense)])
}

/// Returns every version of the sparse product that this machine can run, the best first.
pub(crate) fn sparse_versions() -> impl Iterator<Item = Version<Sparse>> {
    #[cfg(target_arch = "x86_64")]
    let vector = {
        let detected = std::is_x86_feature_detected!("avx2");
        [Version::if_detected(detected, "avx2", avx2::sparse as Sparse)]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let vector: [Option<Version<Sparse>>; 0] = [];
    vector.into_iter().flatten().chain([Version::portable(sparse::portable as Sparse)])
}

fn dense(row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
    let vector = vector.as_chunks::<LANES_DENSE>().0;
    for (turn, vector) in row.as_chunks::<{ LANES_DENSE * 4 }>().0.iter().zip(vector) {
        let elements = turn.as_chunks::<4>().0.iter().zip(vector);
        for (lane, (element, value)) in lanes.iter_mut().zip(elements) {
            *lane += f32::from_le_bytes(*element) * value;
        }
    }
}
