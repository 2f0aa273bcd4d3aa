//! [`Plan`]: what is done with the rows of one table, part by part.
//!
//! A plan reads columns of a table and takes their rows through a chain of steps. Drives and hosts
//! build the same operators of DataFusion from it, so a part of a table gives the same bytes
//! wherever it is worked on. On the wire it is a plan of Substrait. Invariant: whatever the bytes
//! are, a plan is refused in words, or its steps fit the columns that they are given.
//!
//! Modules: `write` and `read` are the two directions of the wire form.

mod read;
mod write;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::refusal::Refusal;

/// Most bytes of a plan on the wire.
pub const BYTES_MAX: usize = 1 << 20;
/// Most steps of a plan.
pub const STEPS_MAX: usize = 16;
/// Most columns that a plan reads, and that a step returns.
pub const COLUMNS_MAX: usize = 4096;

/// Steps that the rows of a table go through.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Columns that are read.
    pub columns: SchemaRef,
    /// Steps that rows go through, first one first.
    pub steps: Vec<Step>,
}

/// A step that rows go through.
#[derive(Clone, Debug)]
pub enum Step {
    /// Keeps the rows for which a condition holds.
    Filter(Arc<dyn PhysicalExpr>),
    /// Returns these columns in place of the others.
    Project(Vec<Column>),
    /// Returns groups, with the states of their functions.
    Aggregate(Aggregate),
    /// Returns the first rows of an order.
    Top {
        /// Keys of the order, first key first.
        keys: Vec<PhysicalSortExpr>,
        /// Number of rows.
        rows: usize,
    },
    /// Returns the first rows.
    Limit(usize),
}

/// A column that a step returns.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its value.
    pub value: Arc<dyn PhysicalExpr>,
    /// Its name.
    pub name: String,
}

/// Groups of rows, and functions of each.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Values that are equal in a group.
    pub groups: Vec<Column>,
    /// The functions.
    pub measures: Vec<Measure>,
}

/// A function of the rows of a group.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The function.
    pub function: Arc<AggregateUDF>,
    /// Its arguments.
    pub arguments: Vec<Arc<dyn PhysicalExpr>>,
    /// Condition of the rows that count; all do without one.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Plan {
    /// Returns the operators that do the plan's steps to the rows of `source`, which has the plan's
    /// columns.
    ///
    /// # Errors
    /// A step that does not fit its columns.
    pub fn over(&self, source: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        self.steps.iter().try_fold(source, |input, step| step.over(input))
    }
}

impl Step {
    /// Returns the operator that does this step to the rows of `input`.
    ///
    /// # Errors
    /// It does not fit the columns.
    pub fn over(&self, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match self {
            Self::Filter(condition) => Arc::new(FilterExec::try_new(Arc::clone(condition), input)?),
            Self::Project(columns) => {
                let column = |column: &Column| ProjectionExpr {
                    expr: Arc::clone(&column.value),
                    alias: column.name.clone(),
                };
                Arc::new(ProjectionExec::try_new(columns.iter().map(column), input)?)
            }
            Self::Aggregate(aggregate) => Arc::new(aggregate.over(input)?),
            Self::Top { keys, rows } => match LexOrdering::new(keys.iter().cloned()) {
                Some(order) => Arc::new(SortExec::new(order, input).with_fetch(Some(*rows))),
                None => Arc::new(GlobalLimitExec::new(input, 0, Some(*rows))),
            },
            Self::Limit(rows) => Arc::new(GlobalLimitExec::new(input, 0, Some(*rows))),
        })
    }
}

impl Aggregate {
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Result<AggregateExec> {
        let schema = input.schema();
        let group = |group: &Column| (Arc::clone(&group.value), group.name.clone());
        let groups = PhysicalGroupBy::new_single(self.groups.iter().map(group).collect());
        let function = |(number, measure): (usize, &Measure)| {
            let builder =
                AggregateExprBuilder::new(Arc::clone(&measure.function), measure.arguments.clone());
            let named = builder.schema(Arc::clone(&schema)).alias(format!("measure {number}"));
            named.build().map(Arc::new)
        };
        let functions = self.measures.iter().enumerate().map(function).collect::<Result<_>>()?;
        let filters = self.measures.iter().map(|measure| measure.filter.clone()).collect();
        AggregateExec::try_new(AggregateMode::Partial, groups, functions, filters, input, schema)
    }
}

impl fmt::Display for Plan {
    /// Shows the steps in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "{}{step}", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |columns: &[Column]| {
            columns.iter().map(|column| column.value.to_string()).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Filter(condition) => write!(f, "filter {condition}"),
            Self::Project(columns) => write!(f, "columns {}", listed(columns)),
            Self::Aggregate(Aggregate { groups, measures }) => {
                let measures: Vec<_> = measures.iter().map(ToString::to_string).collect();
                write!(f, "{}", measures.join(", "))?;
                if groups.is_empty() { Ok(()) } else { write!(f, " by {}", listed(groups)) }
            }
            Self::Top { keys, rows } => {
                let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
                write!(f, "first {rows} by {}", keys.join(", "))
            }
            Self::Limit(rows) => write!(f, "first {rows}"),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<_> = self.arguments.iter().map(ToString::to_string).collect();
        write!(f, "{}({})", self.function.name(), arguments.join(", "))?;
        match &self.filter {
            Some(filter) => write!(f, " where {filter}"),
            None => Ok(()),
        }
    }
}

/// Returns the columns that a step returns for rows of `columns`.
///
/// # Errors
/// [`Refusal`] if the step does not fit them.
fn after(step: &Step, columns: &SchemaRef) -> Result<SchemaRef, Refusal> {
    let empty = datafusion::physical_plan::empty::EmptyExec::new(Arc::clone(columns));
    Ok(step.over(Arc::new(empty))?.schema())
}

/// Checks that there are not too many columns.
fn few(columns: &Schema) -> Result<(), Refusal> {
    match columns.fields().len() {
        count if count > COLUMNS_MAX => Err(Refusal::new(format!("{count} columns"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
