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

versions! {
    dense_versions, best_dense: Dense;
    x86_64: "avx512" ["avx512f"] avx512::dense, "avx2" ["avx2"] avx2::dense;
    aarch64: "neon" ["neon"] neon::dense;
    portable: dense;
}

versions! {
    sparse_versions, best_sparse: Sparse;
    x86_64: "avx2" ["avx2"] avx2::sparse;
    aarch64: ;
    portable: sparse::portable;
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
