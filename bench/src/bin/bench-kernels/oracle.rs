//! Times of array merge and of page rank's sparse product, the least of some rounds.
//! `tests/oracle/speed.py` alternates them with `std::set_union` and SciPy.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use csd_kernels::page_rank::{Graph, SparseVersion};
use csd_kernels::{Numeric, array_merge};

/// Least number of rounds of the sparse product.
const ROUNDS: usize = 9;

/// Prints the least nanoseconds per input element for six patterns; `set_union.cc` makes the same.
pub(crate) fn merge(elements: usize) -> Result<(), Box<dyn Error>> {
    for pattern in 0..6u64 {
        let [left, right] = [0u64, 1].map(|side| sorted(elements, pattern, side));
        let bytes: [Vec<u8>; 2] = [&left, &right]
            .map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let parameters = array_merge::Parameters { element: Numeric::I32 };
        let mut out = vec![0u8; bytes[0].len() + bytes[1].len()];
        let times = (0..5).map(|_| {
            let start = Instant::now();
            let mut at = 0;
            let piece = |bytes| array_merge::Piece { bytes, last: true };
            let mut merge = array_merge::ArrayMerge::new(parameters);
            let done = merge.feed(piece(&bytes[0]), piece(&bytes[1]), |merged| {
                out[at..at + merged.len()].copy_from_slice(merged);
                at += merged.len();
            });
            black_box((done.is_ok(), &out));
            nanoseconds(start) / merge.elements().max(1) as f64
        });
        println!("{pattern} {:.4}", times.fold(f64::INFINITY, f64::min));
    }
    Ok(())
}

/// Makes a sorted input by pattern: even, skewed, many duplicates, apart, runs, equal.
fn sorted(elements: usize, pattern: u64, side: u64) -> Vec<i32> {
    let count = if pattern == 1 && side == 1 { elements / 64 } else { elements };
    let seed = if pattern == 5 { 1 } else { side + 1 };
    let mut state = seed;
    let mut values: Vec<i32> = (0..count as u64)
        .map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) % (1 << 30);
            let value = match pattern {
                2 => random % 5000,
                3 => random + side * (1 << 30),
                4 => (index / 1000 * 2 + side) * 1000 + index % 1000,
                _ => random,
            };
            i32::try_from(value % (1 << 31)).expect("below 2^31")
        })
        .collect();
    values.sort_unstable();
    values
}

/// Prints the least nanoseconds per edge for each version.
pub(crate) fn sparse(nodes: u32, edges: &[u8]) -> Result<(), Box<dyn Error>> {
    let words: Vec<u32> =
        edges.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let graph = Graph::from_edges(nodes, words.as_chunks::<2>().0)?;
    let vector = vec![0.5f64; nodes as usize];
    let mut sums = Vec::with_capacity(nodes as usize);
    for version in SparseVersion::available() {
        let mut least = f64::INFINITY;
        // Short rounds are interrupted more often, and are cheap.
        for _ in 0..ROUNDS.max(30_000_000 / graph.edges().max(1)) {
            sums.clear();
            let start = Instant::now();
            version.start(&vector).feed(graph.rows(), &mut sums)?;
            black_box(&sums);
            least = least.min(nanoseconds(start) / graph.edges().max(1) as f64);
        }
        println!("{} {least:.4}", version.name());
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}
