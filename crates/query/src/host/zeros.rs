//! [`EqualZeros`]: -0.0 and 0.0 are equal wherever numbers are compared.
//!
//! DataFusion 55 takes both for equal in comparisons with a constant and in groups. It sorts one
//! before the other, finds only one of them in a list, and joins them or not, as the case may be. A
//! query for the first rows of an order then drops rows by a condition that is not that of the
//! order. Sums with 0.0 have only one of both zeros.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};
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
            let (rows, names) = (rows_of_inputs(&plan), NamePreserver::new(&plan));
            let mut plan = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let compared = expr.transform_up(|expr| compared(expr, &rows))?;
                Ok(compared.update_data(|expr| name.restore(expr)))
            })?;
            let own = |key: &mut Expr| *key = with_one_zero(std::mem::take(key), &rows);
            match &mut plan.data {
                LogicalPlan::Sort(sort) => sort.expr.iter_mut().for_each(|key| own(&mut key.expr)),
                LogicalPlan::Join(join) => {
                    join.on.iter_mut().for_each(|(left, right)| {
                        own(left);
                        own(right);
                    });
                }
                _ => return Ok(plan),
            }
            plan.transformed = true;
            Ok(plan)
        })
        .data()
    }
}

/// Returns the columns that the expressions of a plan's node are over.
fn rows_of_inputs(plan: &LogicalPlan) -> DFSchema {
    let mut rows = DFSchema::empty();
    if let LogicalPlan::TableScan(scan) = plan {
        rows.merge(&scan.projected_schema);
    }
    plan.inputs().iter().for_each(|input| rows.merge(input.schema()));
    rows
}

/// Returns a comparison of values with one zero, if it is one of equality.
fn compared(expr: Expr, rows: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InList(list) => {
            let all = list.list.into_iter().map(|one| with_one_zero(one, rows)).collect();
            Transformed::yes(with_one_zero(*list.expr, rows).in_list(all, list.negated))
        }
        Expr::InSubquery(mut within) => {
            let of = LogicalPlanBuilder::from(within.subquery.subquery.as_ref().clone());
            let found = Arc::clone(of.schema());
            let own = |one: Column| {
                let name = one.name.clone();
                with_one_zero(Expr::Column(one), &found).alias(name)
            };
            let columns: Vec<_> = found.columns().into_iter().map(own).collect();
            within.subquery.subquery = Arc::new(of.project(columns)?.build()?);
            within.expr = Box::new(with_one_zero(*within.expr, rows));
            Transformed::yes(Expr::InSubquery(within))
        }
        Expr::BinaryExpr(both)
            if matches!(both.op, Operator::Eq | Operator::IsNotDistinctFrom)
                && both.left.any_column_refs()
                && both.right.any_column_refs() =>
        {
            let (left, right) = (with_one_zero(*both.left, rows), with_one_zero(*both.right, rows));
            Transformed::yes(binary_expr(left, both.op, right))
        }
        other => Transformed::no(other),
    })
}

fn with_one_zero(key: Expr, rows: &DFSchema) -> Expr {
    match key.get_type(rows) {
        Ok(DataType::Float64) => key + lit(0.0f64),
        Ok(DataType::Float32) => key + lit(0.0f32),
        _ => key,
    }
}
