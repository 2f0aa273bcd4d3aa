//! [`RowGroup`]: a row group of a Parquet file.
//!
//! Its parameters have a footer of its own, with only the columns that are read, and the ranges of
//! the file that the stream has, which are those columns' chunks and whatever lies on the same
//! chunks of the object.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use prost::Message;

use super::{BATCH_ROWS, Batches, Range};
use crate::refusal::Refusal;

/// A row group of a Parquet file.
#[derive(Clone, PartialEq, Message)]
pub struct RowGroup {
    /// File metadata of Parquet with this row group alone, in Thrift's compact protocol.
    #[prost(bytes = "vec", tag = "1")]
    pub footer: Vec<u8>,
    /// Bytes of the file that the stream has, in their order.
    #[prost(message, repeated, tag = "2")]
    pub ranges: Vec<Range>,
}

impl RowGroup {
    pub(super) fn bytes(&self) -> Result<u64, Refusal> {
        let sum = self.ranges.iter().try_fold(0u64, |sum, range| sum.checked_add(range.bytes));
        sum.ok_or_else(|| Refusal::new("ranges of that many bytes"))
    }

    pub(super) fn rows(&self, bytes: Vec<u8>, columns: &SchemaRef) -> Result<Batches, Refusal> {
        let metadata = ParquetMetaDataReader::decode_metadata(&self.footer).map_err(of_parquet)?;
        if metadata.num_row_groups() != 1 {
            return Err(Refusal::new(format!("{} row groups", metadata.num_row_groups())));
        }
        let held = HeldRanges::new(&self.ranges, bytes)?;
        let options = ArrowReaderOptions::new().with_schema(Arc::clone(columns));
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options);
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(held, metadata.map_err(of_parquet)?);
        let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(of_parquet)?;
        Ok(Box::new(reader.map(|batch| batch.map_err(Refusal::from))))
    }
}

#[allow(clippy::needless_pass_by_value)] // as map_err hands it over
fn of_parquet(error: ParquetError) -> Refusal {
    Refusal::new(error)
}

/// Bytes of a file, of which some ranges are there.
struct HeldRanges(Vec<(u64, Bytes)>);

impl HeldRanges {
    fn new(ranges: &[Range], bytes: Vec<u8>) -> Result<Self, Refusal> {
        let mut rest = Bytes::from(bytes);
        let mut held = Vec::with_capacity(ranges.len());
        for range in ranges {
            let length = usize::try_from(range.bytes).ok().filter(|length| *length <= rest.len());
            let length = length.ok_or_else(|| Refusal::new("fewer bytes than the ranges have"))?;
            held.push((range.start, rest.split_to(length)));
        }
        Ok(Self(held))
    }

    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let within = |(begin, bytes): &(u64, Bytes)| {
            let skip = usize::try_from(start.checked_sub(*begin)?).ok()?;
            (skip < bytes.len()).then(|| bytes.slice(skip..))
        };
        let found = self.0.iter().find_map(within);
        found.ok_or_else(|| ParquetError::EOF(format!("byte {start} is in no range")))
    }
}

impl Length for HeldRanges {
    fn len(&self) -> u64 {
        let ends = self.0.iter().map(|(start, bytes)| start.saturating_add(bytes.len() as u64));
        ends.max().unwrap_or(0)
    }
}

impl ChunkReader for HeldRanges {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let found = if length == 0 { Bytes::new() } else { self.from(start)? };
        if found.len() < length {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from {start} on: not in a range"
            )));
        }
        Ok(found.slice(..length))
    }
}
