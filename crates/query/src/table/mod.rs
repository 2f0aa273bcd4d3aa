//! [`Table`]: Parquet objects of one schema, read by row groups.
//!
//! Performs no I/O: the caller brings the footers. Invariant: all files of a table have the same
//! columns, names and types.
//!
//! Modules: `file` is one object with its footer, `cut` says where a put cuts it, `pieces` chooses
//! row groups and the bytes of their columns, `footer` makes the footer of one row group, `prune`
//! excludes row groups by their statistics.

mod cut;
mod file;
mod footer;
mod pieces;
mod prune;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;

pub use cut::{Starts, starts};
pub use file::{File, FooterError, TAIL_BYTES, tail_bytes};
pub use pieces::{Piece, Reading};

/// Parquet objects of one schema.
#[derive(Debug)]
pub struct Table {
    /// The name in the query.
    pub name: String,
    /// Its files; there is at least one.
    pub files: Vec<File>,
    /// Its columns.
    pub columns: SchemaRef,
}

/// Reason why files are no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// No object has such a name.
    #[error("no object matches {name:?}")]
    Empty {
        /// The name or pattern.
        name: String,
    },
    /// Two files have different columns.
    #[error("{first:?} and {other:?} are no one table: {difference}")]
    Differ {
        /// Name of the first file.
        first: String,
        /// Name of the other file.
        other: String,
        /// The first difference, in words.
        difference: String,
    },
}

impl Table {
    /// Returns the table of these files.
    ///
    /// # Errors
    /// [`TableError`] if there are none, or their columns differ.
    pub fn new(name: &str, files: Vec<File>) -> Result<Self, TableError> {
        let Some(first) = files.first() else {
            return Err(TableError::Empty { name: name.to_owned() });
        };
        for other in &files[1..] {
            if let Some(difference) = difference(&first.columns, &other.columns) {
                let (first, other) = (first.entry.name.clone(), other.entry.name.clone());
                return Err(TableError::Differ { first, other, difference });
            }
        }
        let columns = Arc::clone(&first.columns);
        Ok(Self { name: name.to_owned(), files, columns })
    }

    /// Returns the number of its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.entry.bytes).sum()
    }

    /// Returns the number of its row groups.
    #[must_use]
    pub fn row_groups(&self) -> usize {
        self.files.iter().map(|file| file.metadata.num_row_groups()).sum()
    }

    /// Returns what the footers say of its rows and columns.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let unknown = || Statistics::new_unknown(&self.columns);
        let each = self.files.iter().map(|file| file.statistics().unwrap_or_else(unknown));
        let each: Vec<_> = each.collect();
        Statistics::try_merge_iter(&each, &self.columns).unwrap_or_else(|_| unknown())
    }
}

/// Returns the first difference of two files' columns, in words.
fn difference(first: &SchemaRef, other: &SchemaRef) -> Option<String> {
    let (ours, theirs) = (first.fields(), other.fields());
    let pair = ours.iter().zip(theirs).find(|(ours, theirs)| {
        ours.name() != theirs.name() || ours.data_type() != theirs.data_type()
    });
    if let Some((ours, theirs)) = pair {
        return Some(match ours.name() == theirs.name() {
            true => format!(
                "column {:?} is of type {} in the first and {} in the other",
                ours.name(),
                ours.data_type(),
                theirs.data_type()
            ),
            false => format!(
                "the first has column {:?} where the other has {:?}",
                ours.name(),
                theirs.name()
            ),
        });
    }
    let (a, b) = (ours.len(), theirs.len());
    (a != b).then(|| format!("the first has {a} columns and the other {b}"))
}
