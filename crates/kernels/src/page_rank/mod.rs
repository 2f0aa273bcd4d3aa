//! Page rank: the product of a matrix's rows with a vector, and the iteration around it.
//!
//! Power iteration for the ranks of a graph's nodes (Page, Brin, Motwani, Winograd, "The PageRank
//! citation ranking", 1999).
//!
//! There are two forms. `dense`: rows of f32, as in the paper "CSDPLAN". A row's sum is taken in
//! [`LANES_DENSE`] lanes, column `j` in lane `j` modulo that; each product is rounded before it is
//! added, and the lanes are folded pairwise. `sparse`: rows of a graph's incoming edges, with f64
//! sums in [`LANES_SPARSE`] lanes likewise. The row alone fixes the order of additions, so scalar
//! code, vectors, and any number of threads and drives agree bit for bit. A sum that is NaN is the
//! positive quiet NaN without payload. Work is counted in elements (dense) and edges (sparse).
//!
//! A row may be cut by a piece's end, but is not split across drives. Invariant: sums do not depend
//! on the pieces that the rows were cut into.

mod dense;
mod graph;
mod iteration;
mod kernel;
mod parameters;
mod program;
pub mod scalar;
mod sparse;

pub use dense::{Dense, DenseVersion, advance_dense};
pub use graph::{Graph, NoSuchNode, Part};
pub use iteration::{Iteration, Options, Progress, WrongOption};
pub use kernel::KERNEL;
pub use parameters::{Form, Parameters};
pub use sparse::{Error, Sparse, SparseVersion};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 4;
/// Name of the kernel.
pub const NAME: &str = "page-rank";

/// Size of the largest vector that a program keeps, bytes: as much as one execution may read.
pub const VECTOR_BYTES_MAX: u64 = 256 << 20;

/// Lanes of a dense row's sum.
pub const LANES_DENSE: usize = 64;
/// Lanes of a sparse row's sum.
pub const LANES_SPARSE: usize = 8;

/// Error: the rows ended within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} is cut: a row is never split across drives")]
pub struct CutRow {
    /// Index of the row, from the first that was fed.
    pub row: u64,
}

/// Folds lanes pairwise: the upper half onto the lower, until one is left.
pub(crate) fn fold_dense(mut lanes: [f32; LANES_DENSE]) -> f32 {
    let mut half = LANES_DENSE / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        half /= 2;
    }
    if lanes[0].is_nan() { f32::from_bits(0x7FC0_0000) } else { lanes[0] }
}

/// Folds lanes pairwise, as [`fold_dense`] does.
#[inline(always)]
pub(crate) fn fold_sparse(lanes: [f64; LANES_SPARSE]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    quiet(((a + e) + (c + g)) + ((b + f) + (d + h)))
}

/// Returns the sum, or the one NaN for every NaN.
#[inline(always)]
pub(crate) fn quiet(sum: f64) -> f64 {
    if sum.is_nan() { f64::from_bits(0x7FF8 << 48) } else { sum }
}
