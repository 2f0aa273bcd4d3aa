//! The footer of one row group with some of its columns, as an execution gets it.

use std::sync::Arc;

use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

/// Bytes of the footer's length and the magic number behind it.
const TAIL_BYTES: usize = 8;

/// Returns the file metadata of row group `group` with only the top-level columns `columns`, in
/// Thrift's compact protocol. Statistics and indexes are left out.
pub(super) fn of_row_group(
    file: &ParquetMetaData,
    group: usize,
    columns: &[usize],
) -> Result<Vec<u8>> {
    let about = file.file_metadata();
    let all = about.schema_descr();
    let fields = columns.iter().map(|column| all.root_schema().get_fields().get(*column).cloned());
    let fields = fields.collect::<Option<Vec<_>>>();
    let fields = fields.ok_or_else(|| ParquetError::General("no such column".to_owned()))?;
    let root = Type::group_type_builder(all.root_schema().name()).with_fields(fields).build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let from = file.row_group(group);
    let chosen = from
        .columns()
        .iter()
        .enumerate()
        .filter(|(leaf, _)| columns.contains(&all.get_column_root_idx(*leaf)));
    let chunks = chosen.zip(schema.columns());
    let chunks = chunks.map(|((_, chunk), leaf)| without_statistics(chunk, Arc::clone(leaf)));
    let rows = from.num_rows();
    let group = RowGroupMetaData::builder(Arc::clone(&schema))
        .set_num_rows(rows)
        .set_total_byte_size(from.total_byte_size())
        .set_column_metadata(chunks.collect::<Result<_>>()?)
        .build()?;
    let (version, created_by) = (about.version(), about.created_by().map(str::to_owned));
    let about = FileMetaData::new(version, rows, created_by, None, schema, None);
    let metadata = ParquetMetaData::new(about, vec![group]);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
    bytes.truncate(bytes.len().saturating_sub(TAIL_BYTES));
    Ok(bytes)
}

fn without_statistics(
    chunk: &ColumnChunkMetaData,
    leaf: ColumnDescPtr,
) -> Result<ColumnChunkMetaData> {
    ColumnChunkMetaData::builder(leaf)
        .set_encodings_mask(*chunk.encodings_mask())
        .set_compression(chunk.compression())
        .set_num_values(chunk.num_values())
        .set_total_compressed_size(chunk.compressed_size())
        .set_total_uncompressed_size(chunk.uncompressed_size())
        .set_data_page_offset(chunk.data_page_offset())
        .set_dictionary_page_offset(chunk.dictionary_page_offset())
        .build()
}
