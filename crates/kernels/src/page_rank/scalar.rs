//! References for all other versions of page rank: one element after another, into the lane of its
//! position.

use super::{LANES_DENSE, LANES_SPARSE, fold_dense, fold_sparse};

/// Returns the sums of whole dense rows of `vector.len()` little-endian f32; ignores a cut row.
///
/// # Panics
/// If the vector is empty.
#[must_use]
pub fn dense(rows: &[u8], vector: &[f32]) -> Vec<f32> {
    let row = |row: &[u8]| {
        let mut lanes = [0f32; LANES_DENSE];
        for (column, element) in row.as_chunks::<4>().0.iter().enumerate() {
            let product = f32::from_le_bytes(*element) * vector[column];
            lanes[column % LANES_DENSE] += product;
        }
        fold_dense(lanes)
    };
    rows.chunks_exact(vector.len() * 4).map(row).collect()
}

/// Returns the sums of sparse rows; `None` if a row is cut or names a source that is not in the
/// vector.
#[must_use]
pub fn sparse(rows: &[u8], vector: &[f64]) -> Option<Vec<f64>> {
    let mut words = rows.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let mut sums = Vec::new();
    while let Some(degree) = words.next() {
        let mut lanes = [0f64; LANES_SPARSE];
        for position in 0..degree as usize {
            lanes[position % LANES_SPARSE] += vector.get(words.next()? as usize)?;
        }
        sums.push(fold_sparse(lanes));
    }
    Some(sums)
}
