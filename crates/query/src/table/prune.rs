//! Exclusion of row groups by their statistics, before anything is read.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::basic::{SortOrder, Type as PhysicalType};
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use super::File;

impl File {
    /// Returns for each row group whether no row of it can have the property `filter`, an
    /// expression over these columns. Without statistics none is excluded.
    #[must_use]
    pub fn excluded(&self, filter: &Arc<dyn PhysicalExpr>, columns: &SchemaRef) -> Vec<bool> {
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(columns));
        let predicate = builder.try_build(Arc::clone(filter));
        let kept = predicate.and_then(|predicate| predicate.prune(&RowGroups { file: self }));
        kept.map_or_else(|_| Vec::new(), |kept| kept.into_iter().map(|kept| !kept).collect())
    }
}

/// Statistics of a file's row groups.
struct RowGroups<'a> {
    file: &'a File,
}

impl RowGroups<'_> {
    fn converter(&self, column: &Column) -> Option<StatisticsConverter<'_>> {
        let schema = self.file.metadata.file_metadata().schema_descr();
        StatisticsConverter::try_new(&column.name, &self.file.columns, schema).ok()
    }

    /// Returns the converter of a column whose least and greatest values are those of its type's
    /// order. Old writers took another order for bytes, decimals in bytes and integers without a
    /// sign.
    fn ordered(&self, column: &Column) -> Option<StatisticsConverter<'_>> {
        let converter = self.converter(column)?;
        let leaf = converter.parquet_column_index()?;
        let is_old = |group: &RowGroupMetaData| {
            group.column(leaf).statistics().is_some_and(Statistics::is_min_max_deprecated)
        };
        let (about, groups) = (&self.file.metadata, self.file.metadata.row_groups());
        let order = about.file_metadata().schema_descr().column(leaf).sort_order();
        let bytes = [PhysicalType::BYTE_ARRAY, PhysicalType::FIXED_LEN_BYTE_ARRAY];
        let is_plain = order == SortOrder::SIGNED
            && !bytes.contains(&groups.first()?.column(leaf).column_type());
        (is_plain || !groups.iter().any(is_old)).then_some(converter)
    }
}

impl PruningStatistics for RowGroups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ordered(column)?.row_group_mins(self.file.metadata.row_groups()).ok()
    }

    /// A NaN is above all numbers, and no writer counts it: a row group's greatest number says
    /// nothing.
    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        if self.file.columns.field_with_name(&column.name).ok()?.data_type().is_floating() {
            return None;
        }
        self.ordered(column)?.row_group_maxes(self.file.metadata.row_groups()).ok()
    }

    fn num_containers(&self) -> usize {
        self.file.metadata.num_row_groups()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let counts = self.converter(column)?.row_group_null_counts(self.file.metadata.row_groups());
        Some(Arc::new(counts.ok()?))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.file.metadata.row_groups().iter().map(|group| group.num_rows());
        let rows = rows.map(|rows| u64::try_from(rows).ok()).collect::<UInt64Array>();
        Some(Arc::new(rows))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
