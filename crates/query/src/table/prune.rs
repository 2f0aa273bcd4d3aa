//! Exclusion of row groups by their statistics, before anything is read.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
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
}

impl PruningStatistics for RowGroups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_mins(self.file.metadata.row_groups()).ok()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_maxes(self.file.metadata.row_groups()).ok()
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
