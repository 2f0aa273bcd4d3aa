//! [`File`]: a Parquet object with its footer.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use csd_store::catalogue::Entry;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

/// Bytes at the end of an object that are read first: most footers are shorter.
pub const TAIL_BYTES: u64 = 64 << 10;
/// Bytes of the footer's length and the magic number behind it.
const FOOTER_TAIL: usize = 8;

/// A Parquet object with its footer.
#[derive(Debug)]
pub struct File {
    /// The object.
    pub entry: Entry,
    /// Its footer.
    pub metadata: Arc<ParquetMetaData>,
    /// Its columns.
    pub columns: SchemaRef,
}

/// Reason why an object is no Parquet file.
#[derive(Debug, thiserror::Error)]
#[error("object {name:?} is no Parquet file that can be read: {why}")]
pub struct FooterError {
    /// Name of the object.
    name: String,
    /// The reason, in words.
    why: String,
}

impl FooterError {
    fn new(entry: &Entry, why: impl ToString) -> Self {
        Self { name: entry.name.clone(), why: why.to_string() }
    }
}

/// Returns the bytes of an object that hold its footer, as its last bytes say: `tail` itself, or
/// more than that.
///
/// # Errors
/// [`FooterError`] if they are not the end of a Parquet file.
pub fn tail_bytes(entry: &Entry, tail: &[u8]) -> Result<Range<u64>, FooterError> {
    let Some((_, last)) = tail.split_last_chunk::<FOOTER_TAIL>() else {
        return Err(FooterError::new(entry, "it is too short"));
    };
    let last = FooterTail::try_new(last);
    let last = last.map_err(|error| FooterError::new(entry, error))?;
    let whole = (last.metadata_length() + FOOTER_TAIL) as u64;
    let start = entry.bytes.checked_sub(whole);
    let start =
        start.ok_or_else(|| FooterError::new(entry, "its footer is longer than the file"))?;
    Ok(start..entry.bytes)
}

impl File {
    /// Returns an object whose last bytes are `tail`, which hold its footer.
    ///
    /// # Errors
    /// [`FooterError`] if the footer cannot be read.
    pub fn new(entry: Entry, tail: Vec<u8>) -> Result<Self, FooterError> {
        let range = tail_bytes(&entry, &tail)?;
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let Some(begin) = tail.len().checked_sub(length) else {
            return Err(FooterError::new(&entry, "its footer was not read"));
        };
        let footer = Bytes::from(tail).slice(begin..);
        let footer = &footer[..length - FOOTER_TAIL];
        let wrong = |error: ParquetError| FooterError::new(&entry, error);
        let metadata = ParquetMetaDataReader::decode_metadata(footer).map_err(wrong)?;
        let about = metadata.file_metadata();
        let schema = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata());
        let columns = Arc::new(plain(&schema.map_err(wrong)?));
        Ok(Self { entry, metadata: Arc::new(metadata), columns })
    }

    /// Returns what the footer says of its rows and columns. Least and greatest values are not
    /// exact: a NaN is in none, and old writers had other orders.
    pub(super) fn statistics(&self) -> Option<Statistics> {
        let of_footer =
            DFParquetMetadata::statistics_from_parquet_metadata(&self.metadata, &self.columns);
        let mut statistics = of_footer.ok()?;
        for column in &mut statistics.column_statistics {
            let null_count = column.null_count;
            *column = std::mem::take(column).to_inexact();
            column.null_count = null_count;
        }
        Some(statistics)
    }
}

/// Returns columns as queries see them: text and bytes as views, and nothing that only their writer
/// knows.
fn plain(schema: &Schema) -> Schema {
    let field = |field: &Arc<Field>| {
        let name = field.name();
        Field::new(name, viewed(field.data_type()), field.is_nullable())
    };
    Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

fn viewed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => viewed(values),
        other => within(other),
    }
}

/// Returns a type within a column: rows, lists and maps without their writer's notes.
fn within(data_type: &DataType) -> DataType {
    let field = |field: &Arc<Field>| {
        Arc::new(Field::new(field.name(), within(field.data_type()), field.is_nullable()))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Dictionary(_, values) => within(values),
        other => other.clone(),
    }
}
