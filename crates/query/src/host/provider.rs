//! [`TableSource`]: a table as DataFusion's planner sees it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Statistics};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::utils::conjunction_opt;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_plan::ExecutionPlan;

use super::runner::Runner;
use super::scan::TableScan;
use crate::plan::{Column, Plan, Step};
use crate::table::Table;

/// A table as DataFusion's planner sees it.
#[derive(Debug)]
pub struct TableSource {
    table: Arc<Table>,
    runner: Arc<dyn Runner>,
}

impl TableSource {
    /// Returns the source of a table whose scans `runner` runs.
    #[must_use]
    pub fn new(table: Arc<Table>, runner: Arc<dyn Runner>) -> Self {
        Self { table, runner }
    }

    /// Returns true if plans have this condition.
    fn has_form(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs().into_iter();
        let mut columns: Vec<usize> =
            columns.filter_map(|column| self.table.columns.index_of(&column.name).ok()).collect();
        columns.sort_unstable();
        columns.dedup();
        let Ok(columns) = self.table.columns.project(&columns).map(Arc::new) else { return false };
        let condition = condition(filter, &columns);
        let plan =
            condition.map(|condition| Plan { columns, steps: vec![Step::Filter(condition)] });
        plan.is_ok_and(|plan| plan.encode().is_ok())
    }
}

/// Returns a condition over rows of these columns.
fn condition(filter: &Expr, columns: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    let schema = DFSchema::try_from(columns.as_ref().clone())?;
    // Names of the query's tables are not those of the columns.
    let filter = unnormalize_col(filter.clone());
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    create_physical_expr(&filter, &schema, &props, &context)
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table.columns)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.table.statistics())
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match self.has_form(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.table.columns.fields().len()).collect();
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let mut read = wanted.clone();
        for column in filters.iter().flat_map(Expr::column_refs) {
            read.extend(self.table.columns.index_of(&column.name));
        }
        read.sort_unstable();
        read.dedup();
        let mut scan = TableScan::new(&self.table, &self.runner, read.clone())?;
        let columns = scan.schema();
        let conditions = filters.iter().map(|filter| condition(filter, &columns));
        let fits = |why: String| datafusion::error::DataFusionError::Plan(why);
        if let Some(condition) = conjunction_opt(conditions.collect::<Result<Vec<_>>>()?) {
            scan = scan.with_step(Step::Filter(condition), &columns).map_err(fits)?;
        }
        if wanted != read {
            let column = |index: &usize| {
                let at = read.binary_search(index).expect("what is wanted is read");
                let name = columns.field(at).name();
                Column { value: Arc::new(ColumnExpr::new(name, at)), name: name.clone() }
            };
            let projected = Arc::new(self.table.columns.project(&wanted)?);
            let step = Step::Project(wanted.iter().map(column).collect());
            scan = scan.with_step(step, &projected).map_err(fits)?;
        }
        Ok(Arc::new(scan))
    }
}
