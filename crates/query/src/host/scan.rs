//! [`TableScan`]: a table in a plan of DataFusion, with the steps that its drives do.

use std::fmt;
use std::io::Cursor;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{InListExpr, Literal};
use datafusion::physical_expr::utils::{conjunction_opt, split_conjunction};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::limit::LimitStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::runner::{Runner, ScanJob};
use crate::plan::{Plan, Step};
use crate::table::{Reading, Table};

/// A table in a plan, with the steps that follow its rows.
#[derive(Clone, Debug)]
pub struct TableScan {
    table: Arc<Table>,
    runner: Arc<dyn Runner>,
    /// Columns that are read, by index; they ascend.
    columns: Vec<usize>,
    plan: Plan,
    /// Conditions that every row of the answer has, over the columns that are read.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Conditions of rows that matter, which become known as the query runs, and the number of
    /// steps before them.
    dynamic: (Vec<Arc<dyn PhysicalExpr>>, usize),
    fetch: Option<usize>,
    refused: Vec<String>,
    /// Reason why no drive can do it, in words: a column that no plan has.
    apart: Option<String>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl TableScan {
    /// Returns a scan of these columns, by index; they ascend.
    pub(super) fn new(
        table: &Arc<Table>,
        runner: &Arc<dyn Runner>,
        columns: Vec<usize>,
    ) -> Result<Self> {
        let read = Arc::new(table.columns.project(&columns)?);
        let plan = Plan { columns: Arc::clone(&read), steps: Vec::new() };
        let apart = plan.encode().err().map(|refusal| refusal.to_string());
        Ok(Self {
            table: Arc::clone(table),
            runner: Arc::clone(runner),
            columns,
            plan,
            conditions: Vec::new(),
            dynamic: (Vec::new(), 0),
            fetch: None,
            refused: Vec::new(),
            apart,
            properties: properties(&read),
            schema: read,
        })
    }

    /// Returns the scan with one step more, after which rows have these columns; the reason in
    /// words if a plan has no such step.
    pub(super) fn with_step(&self, step: Step, schema: &SchemaRef) -> Result<Self, String> {
        if self.fetch.is_some() {
            return Err("steps after the first rows".to_owned());
        }
        let mut next = self.clone();
        if let (Step::Filter(condition), true) = (&step, self.steps_are_filters()) {
            next.conditions.extend(split_conjunction(condition).into_iter().cloned());
        }
        next.plan.steps.push(step);
        if self.apart.is_none() {
            next.plan.encode().map_err(|refusal| refusal.to_string())?;
        }
        next.schema = Arc::clone(schema);
        next.properties = properties(schema);
        Ok(next)
    }

    /// Notes a part of the query that the host does.
    pub(super) fn with_refused(mut self, why: String) -> Self {
        self.refused.push(why);
        self
    }

    /// Returns true if rows have the columns that are read.
    fn steps_are_filters(&self) -> bool {
        self.plan.steps.iter().all(|step| matches!(step, Step::Filter(_)))
    }

    /// Returns true if its rows are rows of the table, as many as the filters leave.
    pub(super) fn has_rows(&self) -> bool {
        let groups = |step: &Step| !matches!(step, Step::Filter(_) | Step::Project(_));
        self.fetch.is_none() && !self.plan.steps.iter().any(groups)
    }

    /// Returns the plan with the conditions that are known by now, and these.
    fn plan_now(&self) -> Result<(Plan, Vec<Arc<dyn PhysicalExpr>>)> {
        let (mut plan, mut known) = (self.plan.clone(), Vec::new());
        for condition in &self.dynamic.0 {
            let now = snapshot_physical_expr(Arc::clone(condition))?;
            for part in split_conjunction(&now) {
                if lists_floats(part) {
                    continue;
                }
                // Not every condition has a form; without it more rows cross.
                let mut alone = self.plan.clone();
                alone.steps.truncate(self.dynamic.1);
                alone.steps.push(Step::Filter(Arc::clone(part)));
                if alone.encode().is_ok() {
                    known.push(Arc::clone(part));
                }
            }
        }
        if let Some(condition) = conjunction_opt(known.iter().cloned()) {
            plan.steps.insert(self.dynamic.1, Step::Filter(condition));
            if plan.encode().is_err() {
                return Ok((self.plan.clone(), Vec::new()));
            }
        }
        if !self.steps_are_filters() && self.dynamic.1 > 0 {
            // They may be over other columns than those that are read.
            known.clear();
        }
        Ok((plan, known))
    }

    fn job(&self) -> Result<ScanJob> {
        let (plan, known) = self.plan_now()?;
        let all = self.conditions.iter().cloned().chain(known);
        let reading = match conjunction_opt(all) {
            Some(filter) => Reading::new(&self.table, &self.columns, |file| {
                file.excluded(&filter, &self.plan.columns)
            }),
            None => Reading::new(&self.table, &self.columns, |_| Vec::new()),
        };
        let external = |refusal| DataFusionError::External(Box::new(refusal));
        Ok(ScanJob {
            table: Arc::clone(&self.table),
            reading: reading.map_err(external)?,
            bytes: match &self.apart {
                None => Ok(plan.encode().map_err(external)?),
                Some(apart) => Err(apart.clone()),
            },
            plan: Arc::new(plan),
            refused: self.refused.clone(),
        })
    }
}

fn properties(schema: &SchemaRef) -> Arc<PlanProperties> {
    let equivalences = EquivalenceProperties::new(Arc::clone(schema));
    let partitioning = Partitioning::UnknownPartitioning(1);
    let (emission, boundedness) = (EmissionType::Incremental, Boundedness::Bounded);
    let properties = PlanProperties::new(equivalences, partitioning, emission, boundedness);
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableScan: table={}, steps=[{}]", self.table.name, self.plan)?;
        if let Some(fetch) = self.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for TableScan {
    fn name(&self) -> &'static str {
        "TableScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expression in self.dynamic.0.iter().chain(&self.conditions) {
            recursion = f(expression)?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &datafusion::physical_plan::statistics::StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if !self.plan.steps.is_empty() || self.fetch.is_some() {
            let mut unknown = Statistics::new_unknown(&self.schema);
            unknown.num_rows = self.table.statistics().num_rows.to_inexact();
            return Ok(Arc::new(unknown));
        }
        let all = self.table.statistics();
        let unknown = ColumnStatistics::new_unknown();
        let columns = self.columns.iter();
        let column_statistics =
            columns.map(|at| all.column_statistics.get(*at).unwrap_or(&unknown).clone()).collect();
        let total_byte_size = Precision::Absent;
        Ok(Arc::new(Statistics { num_rows: all.num_rows, total_byte_size, column_statistics }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let rows = limit.filter(|_| self.has_rows())?;
        let mut limited = self.with_step(Step::Limit(rows), &self.schema).ok()?;
        limited.fetch = Some(rows);
        Some(Arc::new(limited))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// Takes conditions that become known as the query runs. The operators that have them check
    /// them again.
    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = child_pushdown_result.parent_filters;
        let answer = filters.iter().map(|_| PushedDown::No).collect();
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answer);
        let dynamic = filters.into_iter().map(|filter| filter.filter).filter(is_dynamic);
        let dynamic: Vec<_> = dynamic.collect();
        if dynamic.is_empty() || !self.has_rows() {
            return Ok(propagation);
        }
        let mut next = self.clone();
        if next.dynamic.0.is_empty() {
            next.dynamic.1 = next.plan.steps.len();
        }
        next.dynamic.0.extend(dynamic);
        Ok(propagation.with_updated_node(Arc::new(next)))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (this, schema) = (self.clone(), Arc::clone(&self.schema));
        // Conditions of joins are known once their other side was read: at the first poll.
        let started = stream::once(async move { Ok::<_, DataFusionError>(this.rows()?) });
        let rows = started.try_flatten();
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        let metrics = BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        Ok(match self.fetch {
            None => rows,
            fetch => Box::pin(LimitStream::new(rows, 0, fetch, metrics)),
        })
    }
}

/// Returns true if a condition looks for floating-point numbers in a list: it takes both zeros for
/// different numbers, and a join takes them for equal ones.
fn lists_floats(condition: &Arc<dyn PhysicalExpr>) -> bool {
    let is_float = |one: &Arc<dyn PhysicalExpr>| {
        let constant = one.downcast_ref::<Literal>();
        constant.is_some_and(|constant| constant.value().data_type().is_floating())
    };
    let found = condition.exists(|part| {
        let list = part.downcast_ref::<InListExpr>();
        Ok(list.is_some_and(|list| list.list().iter().any(is_float)))
    });
    found.unwrap_or(true)
}

fn is_dynamic(expression: &Arc<dyn PhysicalExpr>) -> bool {
    snapshot_physical_expr(Arc::clone(expression)).is_ok_and(|now| !Arc::ptr_eq(&now, expression))
}

impl TableScan {
    /// Starts the scan; returns its rows.
    fn rows(&self) -> Result<impl stream::Stream<Item = Result<RecordBatch>> + Send + use<>> {
        let mut answers = self.runner.start(self.job()?);
        let schema = Arc::clone(&self.schema);
        let answers = stream::poll_fn(move |context| answers.poll_recv(context));
        let batches = answers.map(move |answer| {
            let answer = answer.map_err(|why| DataFusionError::Execution(why))?;
            let batches = read(answer, &schema)?;
            Ok::<_, DataFusionError>(stream::iter(batches.into_iter().map(Ok)))
        });
        Ok(batches.try_flatten())
    }
}

/// Returns the rows of one answer, with the names that the host has for their columns.
fn read(answer: Vec<u8>, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let reader = StreamReader::try_new(Cursor::new(answer), None)?;
    let named = |batch: std::result::Result<RecordBatch, _>| {
        let batch = batch?;
        let columns = batch.columns().to_vec();
        let options = datafusion::arrow::array::RecordBatchOptions::new()
            .with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    };
    reader.map(named).collect()
}
