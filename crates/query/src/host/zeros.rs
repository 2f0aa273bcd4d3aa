//! [`EqualZeros`]: an order in which -0.0 and 0.0 are equal, as they are for `=`.
//!
//! DataFusion 55 compares both as equal in conditions and groups, and sorts one before the other. A
//! query for the first rows of an order then drops rows by a condition that is not that of the
//! order. Keys that are sums with 0.0 have only one of both zeros.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

/// Makes both zeros equal in orders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EqualZeros;

impl AnalyzerRule for EqualZeros {
    fn name(&self) -> &'static str {
        "equal zeros"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Sort(mut sort) = plan else { return Ok(Transformed::no(plan)) };
            let rows = sort.input.schema();
            for key in &mut sort.expr {
                key.expr = with_one_zero(std::mem::take(&mut key.expr), rows)?;
            }
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        })
        .data()
    }
}

fn with_one_zero(key: Expr, rows: &DFSchema) -> Result<Expr> {
    Ok(match key.get_type(rows)? {
        DataType::Float64 => key + lit(0.0f64),
        DataType::Float32 => key + lit(0.0f32),
        _ => key,
    })
}
