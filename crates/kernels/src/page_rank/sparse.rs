//! Sparse rows: the number of a row's sources, then the sources, all little-endian u32.
//!
//! A parallel edge is listed and counts as often as it occurs; a self-loop is an edge as any other.

use super::{CutRow, LANES_SPARSE, fold_sparse};
use crate::ElementType;
use crate::arch;
use crate::numeric::Misaligned;

/// Reason why rows were refused. Sums appended before are right; the product is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A piece does not hold whole words of 4 bytes.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// A row names a source that the vector does not have.
    #[error("row {row} names a source beyond the vector's {columns} elements")]
    Source {
        /// Index of the row, from the first that was fed.
        row: u64,
        /// Length of the vector.
        columns: usize,
    },
}

/// Product of sparse rows with a vector, in progress.
#[derive(Clone, Debug)]
pub struct Sparse<V> {
    vector: V,
    version: SparseVersion,
    cut: Option<Cut>,
    failed: Option<Error>,
    rows: u64,
    edges: u64,
}

/// Row that a piece's end cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    left: u32,
    position: usize,
    lanes: [f64; LANES_SPARSE],
}

impl<V: AsRef<[f64]>> Sparse<V> {
    /// Starts a product with `vector`.
    #[must_use]
    pub fn new(vector: V) -> Self {
        Self::with(vector, arch::page_rank::best_sparse())
    }

    fn with(vector: V, version: SparseVersion) -> Self {
        Self { vector, version, cut: None, failed: None, rows: 0, edges: 0 }
    }

    /// Keeps the vector and forgets the rows.
    pub(super) fn restart(&mut self) {
        (self.cut, self.failed, self.rows, self.edges) = (None, None, 0, 0);
    }

    /// Takes the next bytes of the rows and appends the sums of those that end in them.
    ///
    /// # Errors
    /// [`Error`]; every later call gives the same error.
    pub fn feed(&mut self, bytes: &[u8], sums: &mut Vec<f64>) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.run(bytes, sums);
        self.failed = result.err();
        result
    }

    fn run(&mut self, bytes: &[u8], sums: &mut Vec<f64>) -> Result<(), Error> {
        let (mut words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            // Words of indices have the size of i32.
            let element = ElementType::I32;
            return Err(Error::Misaligned(Misaligned { element, bytes: bytes.len() }));
        }
        words = self.go_on(words, sums)?;
        let before = sums.len();
        let walk = (self.version.run)(words, self.vector.as_ref(), sums);
        self.rows += (sums.len() - before) as u64;
        self.edges += walk.edges;
        if walk.wrong {
            return Err(self.no_source());
        }
        if let Some((degree, rest)) = words[walk.words..].split_first() {
            let left = u32::from_le_bytes(*degree);
            self.cut = Some(Cut { left, position: 0, lanes: [0.0; LANES_SPARSE] });
            self.go_on(rest, sums)?;
        }
        Ok(())
    }

    /// Continues a cut row; returns the words after it.
    fn go_on<'w>(
        &mut self,
        words: &'w [[u8; 4]],
        sums: &mut Vec<f64>,
    ) -> Result<&'w [[u8; 4]], Error> {
        let Some(mut cut) = self.cut.take() else { return Ok(words) };
        let (sources, rest) = words.split_at(words.len().min(cut.left as usize));
        for source in sources {
            let Some(value) = self.vector.as_ref().get(u32::from_le_bytes(*source) as usize) else {
                return Err(self.no_source());
            };
            cut.lanes[cut.position % LANES_SPARSE] += value;
            cut.position += 1;
            cut.left -= 1;
            self.edges += 1;
        }
        if cut.left == 0 {
            sums.push(fold_sparse(cut.lanes));
            self.rows += 1;
        } else {
            self.cut = Some(cut);
        }
        Ok(rest)
    }

    fn no_source(&self) -> Error {
        Error::Source { row: self.rows, columns: self.vector.as_ref().len() }
    }

    /// Ends the rows.
    ///
    /// # Errors
    /// [`CutRow`] if they end within a row.
    pub fn finish(&self) -> Result<(), CutRow> {
        if self.cut.is_none() { Ok(()) } else { Err(CutRow { row: self.rows }) }
    }

    /// Returns the number of rows whose sums are done.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of edges seen: the work done, one addition each.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Returns the number of bytes of rows seen, computed from rows and edges: 4 for each, and 4
    /// for a cut row.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.rows + self.edges + u64::from(self.cut.is_some())) * 4
    }
}

/// Compiled version of the sparse product that this machine can run.
pub type SparseVersion = arch::Version<arch::page_rank::Sparse>;

impl SparseVersion {
    /// Returns every version that this machine can run, the one that [`Sparse`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::page_rank::sparse_versions()
    }

    /// Starts a product with this version.
    #[must_use]
    pub fn start<V: AsRef<[f64]>>(self, vector: V) -> Sparse<V> {
        Sparse::with(vector, self)
    }
}
