//! Dense rows: f32, one after another, as long as the vector.

use super::{CutRow, LANES_DENSE, fold_dense};
use crate::arch;
use crate::numeric::{Misaligned, Numeric};

/// Bytes of one element per lane.
const TURN: usize = LANES_DENSE * 4;

/// Product of dense rows with a vector, in progress.
#[derive(Clone, Debug)]
pub struct Dense<V> {
    vector: V,
    version: DenseVersion,
    lanes: [f32; LANES_DENSE],
    column: usize,
    rows: u64,
    elements: u64,
}

impl<V: AsRef<[f32]>> Dense<V> {
    /// Starts a product with `vector`.
    ///
    /// # Panics
    /// If the vector is empty: rows without columns have no end.
    #[must_use]
    pub fn new(vector: V) -> Self {
        Self::with(vector, arch::page_rank::best_dense())
    }

    fn with(vector: V, version: DenseVersion) -> Self {
        assert!(!vector.as_ref().is_empty(), "a row has a column at least");
        Self { vector, version, lanes: [0.0; LANES_DENSE], column: 0, rows: 0, elements: 0 }
    }

    /// Keeps the vector and forgets the rows.
    pub(super) fn restart(&mut self) {
        self.lanes = [0.0; LANES_DENSE];
        (self.column, self.rows, self.elements) = (0, 0, 0);
    }

    /// Takes the next bytes of the rows and appends the sums of those that end in them.
    ///
    /// # Errors
    /// [`Misaligned`] if an element is cut; nothing is taken then.
    pub fn feed(&mut self, mut bytes: &[u8], sums: &mut Vec<f32>) -> Result<(), Misaligned> {
        self.elements += Numeric::F32.elements(bytes)? as u64;
        let columns = self.vector.as_ref().len();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min((columns - self.column) * 4));
            self.accumulate(piece);
            bytes = rest;
            if self.column == columns {
                sums.push(fold_dense(self.lanes));
                self.lanes = [0.0; LANES_DENSE];
                self.column = 0;
                self.rows += 1;
            }
        }
        Ok(())
    }

    /// Adds the products of a row's piece: up to the first lane, whole turns, the rest.
    fn accumulate(&mut self, piece: &[u8]) {
        let head = piece.len().min((self.column.next_multiple_of(LANES_DENSE) - self.column) * 4);
        let (head, rest) = piece.split_at(head);
        let (turns, tail) = rest.split_at(rest.len() / TURN * TURN);
        self.one_by_one(head);
        let vector = &self.vector.as_ref()[self.column..][..turns.len() / 4];
        (self.version.run)(turns, vector, &mut self.lanes);
        self.column += turns.len() / 4;
        self.one_by_one(tail);
    }

    fn one_by_one(&mut self, bytes: &[u8]) {
        let vector = &self.vector.as_ref()[self.column..];
        for (element, value) in bytes.as_chunks::<4>().0.iter().zip(vector) {
            let product = f32::from_le_bytes(*element) * value;
            self.lanes[self.column % LANES_DENSE] += product;
            self.column += 1;
        }
    }

    /// Ends the rows.
    ///
    /// # Errors
    /// [`CutRow`] if they end within a row.
    pub fn finish(&self) -> Result<(), CutRow> {
        if self.column == 0 { Ok(()) } else { Err(CutRow { row: self.rows }) }
    }

    /// Returns the number of rows whose sums are done.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of elements seen: the work done, one multiplication and one addition
    /// each.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the number of bytes of rows seen.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.elements * 4
    }
}

/// Makes one step of the iteration on the host: ranks become `damping * sums + (1 - damping) / n`,
/// in f32. Returns the L1 distance from the ranks before, in f64; the iteration stops when that is
/// below the tolerance. Rank that flows into empty columns is lost: the matrix is used as given.
///
/// # Panics
/// If there are not as many sums as ranks.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // f32 is the form's type
pub fn advance_dense(ranks: &mut [f32], sums: &[f32], damping: f64) -> f64 {
    assert_eq!(ranks.len(), sums.len(), "a sum for each rank");
    let base = ((1.0 - damping) / ranks.len() as f64) as f32;
    let damping = damping as f32;
    let mut distances = Vec::with_capacity(ranks.len());
    for (rank, sum) in ranks.iter_mut().zip(sums) {
        let next = damping * sum + base;
        distances.push((f64::from(next) - f64::from(*rank)).abs());
        *rank = next;
    }
    super::iteration::sum(&distances)
}

/// Compiled version of the dense product that this machine can run.
pub type DenseVersion = arch::Version<arch::page_rank::Dense>;

impl DenseVersion {
    /// Returns every version that this machine can run, the one that [`Dense`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::page_rank::dense_versions()
    }

    /// Starts a product with this version.
    #[must_use]
    pub fn start<V: AsRef<[f32]>>(self, vector: V) -> Dense<V> {
        Dense::with(vector, self)
    }
}
