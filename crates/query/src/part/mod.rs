//! [`Part`]: the part of a table that one execution works on, and how its bytes become rows.
//!
//! A part is a row group of a Parquet file. Parameters of an execution say which bytes of the file
//! its stream has; they come from a host, as the bytes come from a drive, and both may be anything.
//! Invariant: whatever they are, a part is refused in words, or gives rows of the columns that were
//! asked for.
//!
//! Modules: `parquet` is a row group.

mod parquet;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use prost::{Message, Oneof};

pub use parquet::RowGroup;

use crate::refusal::Refusal;

/// Rows that are read at once.
pub(crate) const BATCH_ROWS: usize = 8192;

/// The part of a table that one execution works on: the parameters of the execution.
#[derive(Clone, PartialEq, Message)]
pub struct Part {
    /// The kind.
    #[prost(oneof = "PartKind", tags = "1")]
    pub kind: Option<PartKind>,
}

/// Kinds of parts.
#[derive(Clone, PartialEq, Oneof)]
pub enum PartKind {
    /// A row group of a Parquet file.
    #[prost(message, tag = "1")]
    RowGroup(RowGroup),
}

/// Bytes of a file that follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Range {
    /// The first one, from the file's begin.
    #[prost(uint64, tag = "1")]
    pub start: u64,
    /// Their number.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// Rows of a part, in batches.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Refusal>> + Send>;

impl Part {
    /// Returns the number of bytes that the stream of an execution over it has.
    pub(crate) fn bytes(&self) -> Result<u64, Refusal> {
        match self.kind()? {
            PartKind::RowGroup(group) => group.bytes(),
        }
    }

    /// Returns the rows of the part, whose stream was `bytes`.
    pub(crate) fn rows(&self, bytes: Vec<u8>, columns: &SchemaRef) -> Result<Batches, Refusal> {
        match self.kind()? {
            PartKind::RowGroup(group) => group.rows(bytes, columns),
        }
    }

    fn kind(&self) -> Result<&PartKind, Refusal> {
        self.kind.as_ref().ok_or_else(|| Refusal::new("a part of a kind that is not known"))
    }
}
