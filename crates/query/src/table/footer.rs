//! The footer of one row group with some of its columns, as an execution gets it.

use std::sync::Arc;

use datafusion::parquet::basic::LogicalType;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{
    ColumnDescPtr, GroupTypeBuilder, SchemaDescriptor, Type, TypePtr,
};

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
    let fields = fields.iter().map(known).collect::<Result<_>>()?;
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

/// Returns a type that can be written: a logical type that is not known is left out, as readers do.
fn known(stated: &TypePtr) -> Result<TypePtr> {
    let about = stated.get_basic_info();
    let id = about.has_id().then(|| about.id());
    Ok(match &**stated {
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(known).collect::<Result<_>>()?;
            let group = Type::group_type_builder(about.name())
                .with_converted_type(about.converted_type())
                .with_logical_type(about.logical_type_ref().cloned())
                .with_fields(fields)
                .with_id(id);
            let repeated = about.has_repetition().then(|| about.repetition());
            let group = repeated.into_iter().fold(group, GroupTypeBuilder::with_repetition);
            Arc::new(group.build()?)
        }
        Type::PrimitiveType { physical_type, type_length, .. }
            if matches!(about.logical_type_ref(), Some(LogicalType::_Unknown { .. })) =>
        {
            let column = Type::primitive_type_builder(about.name(), *physical_type)
                .with_repetition(about.repetition())
                .with_length(*type_length)
                .with_id(id);
            Arc::new(column.build()?)
        }
        Type::PrimitiveType { .. } => Arc::clone(stated),
    })
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
