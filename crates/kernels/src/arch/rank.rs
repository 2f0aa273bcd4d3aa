//! Versions of page rank's products, all with the lanes that the kernel's module fixes.
//!
//! Products are rounded before they are added: nothing here fuses the two.
#![allow(unsafe_code)]

use std::sync::LazyLock;

use crate::page_rank::{LANES_DENSE, LANES_SPARSE, fold_sparse};

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

/// How far a version came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// Words of whole rows.
    pub(crate) words: usize,
    /// Edges in them.
    pub(crate) edges: u64,
    /// Whether the next row names a source that the vector does not have.
    pub(crate) wrong: bool,
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
    vector.into_iter().flatten().chain([SparseVersion { name: "portable", rows: sparse }])
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

fn sparse(words: &[[u8; 4]], vector: &[f64], sums: &mut Vec<f64>) -> Walk {
    let row = |at: usize, end: usize| checked_row(&words[at..end], vector);
    walk(words, sums, row)
}

fn checked_row(sources: &[[u8; 4]], vector: &[f64]) -> Option<f64> {
    let mut lanes = [0.0; LANES_SPARSE];
    let (turns, tail) = sources.as_chunks::<LANES_SPARSE>();
    for sources in turns.iter().map(<[_; LANES_SPARSE]>::as_slice).chain([tail]) {
        for (lane, source) in lanes.iter_mut().zip(sources) {
            *lane += vector.get(u32::from_le_bytes(*source) as usize)?;
        }
    }
    Some(fold_sparse(lanes))
}

/// Walks over whole rows; `row` gives the sum of the row whose sources lie there, or `None` when
/// one is wrong.
#[inline(always)]
fn walk(
    words: &[[u8; 4]],
    sums: &mut Vec<f64>,
    mut row: impl FnMut(usize, usize) -> Option<f64>,
) -> Walk {
    let mut walk = Walk::default();
    while let Some(degree) = words.get(walk.words) {
        let degree = u32::from_le_bytes(*degree) as usize;
        let at = walk.words + 1;
        if words.len() - at < degree {
            break;
        }
        let Some(sum) = row(at, at + degree) else {
            walk.wrong = true;
            break;
        };
        sums.push(sum);
        walk.edges += degree as u64;
        walk.words = at + degree;
    }
    walk
}

/// Which words were found to be below a limit, many at a time: a short row's own check would cost
/// more than its sum. Degrees are words as any other; where one is not below, rows are checked one
/// by one for a while.
#[cfg(target_arch = "x86_64")]
struct Known {
    limit: u32,
    below: usize,
    doubtful: usize,
}

#[cfg(target_arch = "x86_64")]
impl Known {
    /// Words looked at together: they stay in the nearest cache until they are used.
    const WORDS: usize = 2048;

    /// Nothing known yet of sources of a vector of this length.
    fn new(columns: usize) -> Self {
        let limit = u32::try_from(columns).unwrap_or(u32::MAX);
        Self { limit, below: 0, doubtful: 0 }
    }

    /// Whether the words from `at` to a turn past `end` are there, and below the limit.
    #[inline(always)]
    fn covers(&mut self, words: &[[u8; 4]], at: usize, end: usize) -> bool {
        if end + LANES_SPARSE > self.below && end > self.doubtful {
            let to = words.len().min(end + Self::WORDS);
            let more = words[self.below.max(at)..to].iter();
            // Without an early end, so that compilers make vectors of it.
            let highest = more.fold(0, |highest, word| u32::from_le_bytes(*word).max(highest));
            if highest < self.limit {
                self.below = to;
            } else {
                self.doubtful = to;
            }
        }
        end + LANES_SPARSE <= self.below
    }
}

#[cfg(target_arch = "x86_64")]
#[path = "rank_avx2.rs"]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[path = "rank_avx512.rs"]
mod avx512;
#[cfg(target_arch = "aarch64")]
#[path = "rank_neon.rs"]
mod neon;
