//! [`PushToDrives`]: moves steps of a plan into the scans of its tables.
//!
//! Groups are formed in two stages: a drive returns the states of its row group's groups, and the
//! host combines them. First rows of an order are the first rows of each row group's first rows. A
//! step that plans do not have stays where it is, and the scan says so.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::scan::TableScan;
use crate::plan::{Aggregate, Column, Measure, Step};

/// Moves steps of a plan into the scans of its tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct PushToDrives;

/// A plan that may have changed.
type Changed = Transformed<Arc<dyn ExecutionPlan>>;

impl PhysicalOptimizerRule for PushToDrives {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(push).data()
    }

    fn name(&self) -> &'static str {
        "push to drives"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Moves a step into the scan below it, if there is one and plans have the step.
fn push(node: Arc<dyn ExecutionPlan>) -> Result<Changed> {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return push_aggregate(&node, aggregate);
    }
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return push_top(&node, sort);
    }
    if node.is::<FilterExec>() {
        return Ok(match absorbed(&node) {
            Some(Ok(scan)) => Transformed::yes(Arc::new(scan)),
            Some(Err(why)) => replaced(&node, &why)?,
            None => Transformed::no(node),
        });
    }
    Ok(Transformed::no(node))
}

/// A scan that takes in steps, or the reason in words why it cannot.
type Absorbed = std::result::Result<TableScan, String>;

/// Returns the scan that `node` is, with the filters and columns above it; `None` if it is
/// something else.
fn absorbed(node: &Arc<dyn ExecutionPlan>) -> Option<Absorbed> {
    if let Some(scan) = node.downcast_ref::<TableScan>() {
        return Some(Ok(scan.clone()));
    }
    if let Some(wrapper) = node.downcast_ref::<CooperativeExec>() {
        return absorbed(wrapper.input());
    }
    let (input, steps) = if let Some(filter) = node.downcast_ref::<FilterExec>() {
        if filter.fetch().is_some() {
            return None;
        }
        let mut steps = vec![Step::Filter(Arc::clone(filter.predicate()))];
        if let Some(projection) = filter.projection() {
            let schema = filter.input().schema();
            let column = |at: &usize| {
                let name = schema.field(*at).name();
                let value = datafusion::physical_expr::expressions::Column::new(name, *at);
                Column { value: Arc::new(value), name: name.clone() }
            };
            steps.push(Step::Project(projection.iter().map(column).collect()));
        }
        (filter.input(), steps)
    } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let column = |one: &datafusion::physical_plan::projection::ProjectionExpr| Column {
            value: Arc::clone(&one.expr),
            name: one.alias.clone(),
        };
        (projection.input(), vec![Step::Project(projection.expr().iter().map(column).collect())])
    } else {
        return None;
    };
    let with = |scan: TableScan, step| {
        let schema = match &step {
            Step::Filter(_) => scan.schema(),
            _ => node.schema(),
        };
        scan.with_step(step, &schema)
    };
    Some(absorbed(input)?.and_then(|scan| steps.into_iter().try_fold(scan, with)))
}

/// Returns the node with the scan at the end of its only branch replaced by one that says why it
/// has not taken in a step.
fn replaced(node: &Arc<dyn ExecutionPlan>, why: &str) -> Result<Changed> {
    Arc::clone(node).transform_down(|node| {
        Ok(match node.downcast_ref::<TableScan>() {
            Some(scan) => Transformed::yes(Arc::new(scan.clone().with_refused(why.to_owned()))),
            None => Transformed::no(node),
        })
    })
}

fn push_aggregate(node: &Arc<dyn ExecutionPlan>, aggregate: &AggregateExec) -> Result<Changed> {
    let unchanged = || Ok(Transformed::no(Arc::clone(node)));
    let is_whole = matches!(aggregate.mode(), AggregateMode::Single);
    if !is_whole || aggregate.group_expr().has_grouping_set() {
        return unchanged();
    }
    let scan = match absorbed(aggregate.input()) {
        Some(Ok(scan)) if scan.has_rows() => scan,
        Some(Err(why)) => return replaced(node, &why),
        _ => return unchanged(),
    };
    let functions = aggregate.aggr_expr().iter();
    if let Some(odd) = functions
        .clone()
        .find(|one| one.is_distinct() || one.ignore_nulls() || !one.order_bys().is_empty())
    {
        return replaced(node, &format!("function {}", odd.name()));
    }
    let measure = |(function, filter): (&Arc<_>, &Option<_>)| {
        let function: &datafusion::physical_expr::aggregate::AggregateFunctionExpr = function;
        Measure {
            function: Arc::new(function.fun().clone()),
            arguments: function.expressions(),
            filter: filter.clone(),
        }
    };
    let measures = functions.zip(aggregate.filter_expr()).map(measure).collect();
    let group =
        |(value, name): &(Arc<_>, String)| Column { value: Arc::clone(value), name: name.clone() };
    let groups = aggregate.group_expr().expr().iter().map(group).collect();
    let step = Step::Aggregate(Aggregate { groups, measures });
    let partial = AggregateExec::try_new(
        AggregateMode::Partial,
        aggregate.group_expr().clone(),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        Arc::new(scan.clone()),
        aggregate.input_schema(),
    )?;
    let with = match scan.with_step(step, &partial.schema()) {
        Ok(with) => with,
        Err(why) => return replaced(node, &why),
    };
    let last = AggregateExec::try_new(
        AggregateMode::Final,
        aggregate.group_expr().as_final(),
        aggregate.aggr_expr().to_vec(),
        vec![None; aggregate.aggr_expr().len()],
        Arc::new(with),
        aggregate.input_schema(),
    )?;
    Ok(Transformed::yes(Arc::new(last.with_limit_options(aggregate.limit_options()))))
}

fn push_top(node: &Arc<dyn ExecutionPlan>, sort: &SortExec) -> Result<Changed> {
    let Some(rows) = sort.fetch() else { return Ok(Transformed::no(Arc::clone(node))) };
    let scan = match absorbed(sort.input()) {
        Some(Ok(scan)) if scan.has_rows() => scan,
        Some(Err(why)) => return replaced(node, &why),
        _ => return Ok(Transformed::no(Arc::clone(node))),
    };
    let step = Step::Top { keys: sort.expr().iter().cloned().collect(), rows };
    let schema = scan.schema();
    match scan.with_step(step, &schema) {
        Ok(with) => {
            let sort = SortExec::new(sort.expr().clone(), Arc::new(with)).with_fetch(Some(rows));
            Ok(Transformed::yes(Arc::new(sort)))
        }
        Err(why) => replaced(node, &why),
    }
}
