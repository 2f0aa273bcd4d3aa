//! Versions of page rank's products, all with the lanes that the kernel's module fixes.
//!
//! Products are rounded before they are added: nothing here fuses the two.
#![allow(unsafe_code)]

use std::sync::LazyLock;

use crate::page_rank::LANES_DENSE;
pub(crate) use sparse::Walk;

/// One compiled version of the dense product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DenseVersion {
    /// Its name.
    pub(crate) name: &'static str,
    turns: fn(&[u8], &[f32], &mut [f32; LANES_DENSE]),
}

impl DenseVersion {
    /// Adds the products of whole turns of a row with as long a vector to the lanes.
    pub(crate) fn turns(&self, row: &[u8], vector: &[f32], lanes: &mut [f32; LANES_DENSE]) {
        (self.turns)(row, vector, lanes);
    }
}

/// A walk over rows with a vector, the sums appended.
type Rows = fn(&[[u8; 4]], &[f64], &mut Vec<f64>) -> Walk;

/// One compiled version of the sparse product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseVersion {
    /// Its name.
    pub(crate) name: &'static str,
    rows: Rows,
}

impl SparseVersion {
    /// Appends the sums of whole rows, up to the first that is cut or wrong.
    pub(crate) fn rows(&self, words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
        (self.rows)(words, vector, sums)
    }
}

/// The best version of the dense product.
pub(crate) fn best_dense() -> DenseVersion {
    static BEST: LazyLock<DenseVersion> =
        LazyLock::new(|| dense_versions().next().expect("the portable version is always there"));
    *BEST
}

/// The best version of the sparse product.
pub(crate) fn best_sparse() -> SparseVersion {
    static BEST: LazyLock<SparseVersion> =
        LazyLock::new(|| sparse_versions().next().expect("the portable version is always there"));
    *BEST
}

/// Every version of the dense product that this machine can run, the best first.
pub(crate) fn dense_versions() -> impl Iterator<Item = DenseVersion> {
    #[cfg(target_arch = "x86_64")]
    let vector = [
        std::is_x86_feature_detected!("avx512f")
            .then_some(DenseVersion { name: "avx512", turns: avx512::dense }),
        std::is_x86_feature_detected!("avx2")
            .then_some(DenseVersion { name: "avx2", turns: avx2::dense }),
    ];
    #[cfg(target_arch = "aarch64")]
    let vector = [std::arch::is_aarch64_feature_detected!("neon")
        .then_some(DenseVersion { name: "neon", turns: neon::dense })];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<DenseVersion>; 0] = [];
    vector.into_iter().flatten().chain([DenseVersion { name: "portable", turns: dense }])
}

/// Every version of the sparse product that this machine can run, the best first.
pub(crate) fn sparse_versions() -> impl Iterator<Item = SparseVersion> {
    #[cfg(target_arch = "x86_64")]
    let vector = [std::is_x86_feature_detected!("avx2")
        .then_some(SparseVersion { name: "avx2", rows: avx2::sparse })];
    #[cfg(not(target_arch = "x86_64"))]
    let vector: [Option<SparseVersion>; 0] = [];
    vector.into_iter().flatten().chain([SparseVersion { name: "portable", rows: sparse::portable }])
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

#[path = "rank_sparse.rs"]
mod sparse;

#[cfg(target_arch = "x86_64")]
#[path = "rank_avx2.rs"]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[path = "rank_avx512.rs"]
mod avx512;
#[cfg(target_arch = "aarch64")]
#[path = "rank_neon.rs"]
mod neon;
