//! [`Session`]: a query from its text to its rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, TableFactor, Visit, Visitor, visit_relations_mut,
};

use super::provider::TableSource;
use super::pushdown::PushToDrives;
use super::runner::Runner;
use super::zeros::EqualZeros;
use crate::extremes::extremes;
use crate::part::BATCH_ROWS;
use crate::table::Table;

/// Reason why a query has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is no query that can be answered: the user's fault.
    #[error("{0}")]
    Query(String),
    /// It failed while it ran.
    #[error("{0}")]
    Run(String),
}

/// A table that a query names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// Name or pattern of objects.
    pub objects: String,
    /// True if it is a pattern: it stands in single quotes.
    pub is_pattern: bool,
    reference: TableReference,
}

/// Relations of a query that are no tables with a plain name.
#[derive(Default)]
struct Relations {
    /// Tables that stand in single quotes.
    patterns: Vec<String>,
    /// Functions that return rows.
    functions: Vec<String>,
}

impl Visitor for Relations {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, args, .. } = factor else {
            return ControlFlow::Continue(());
        };
        for ident in name.0.iter().filter_map(|part| part.as_ident()) {
            if args.is_some() {
                self.functions.push(ident.value.clone());
            } else if ident.quote_style == Some('\'') {
                self.patterns.push(ident.value.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

/// A query in progress.
pub struct Session {
    context: SessionContext,
    statement: Statement,
}

impl Session {
    /// Parses a query.
    ///
    /// # Errors
    /// [`QueryError::Query`] if it is none.
    pub fn new(sql: &str) -> Result<Self, QueryError> {
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_batch_size(BATCH_ROWS)
            .with_information_schema(false);
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_physical_optimizer_rule(Arc::new(PushToDrives));
        let state = mended(builder).map_err(|error| of_query(&error))?;
        let dialect = state.config_options().sql_parser.dialect;
        let mut statement =
            state.sql_to_statement(sql, &dialect).map_err(|error| of_query(&error))?;
        join_names(&mut statement);
        Ok(Self { context: SessionContext::new_with_state(state), statement })
    }

    /// Returns the tables that the query names.
    ///
    /// # Errors
    /// [`QueryError::Query`] if it is more or less than one query.
    pub fn tables(&self) -> Result<Vec<TableName>, QueryError> {
        let state = self.context.state();
        let references = state.resolve_table_references(&self.statement);
        let references = references.map_err(|error| of_query(&error))?;
        let Relations { patterns, functions } = self.relations();
        let named = references.into_iter().map(|reference| {
            let objects = reference.table().to_owned();
            let is_pattern = patterns.contains(&objects);
            TableName { objects, is_pattern, reference }
        });
        Ok(named.filter(|name| !functions.contains(&name.objects)).collect())
    }

    /// Returns the relations that are no tables with a plain name.
    fn relations(&self) -> Relations {
        let mut relations = Relations::default();
        if let Statement::Statement(statement) = &self.statement {
            let _all = statement.visit(&mut relations);
        }
        relations
    }

    /// Makes a table known that the query names.
    ///
    /// # Errors
    /// [`QueryError::Query`] if its name is taken.
    pub fn add(
        &self,
        name: &TableName,
        table: Arc<Table>,
        runner: Arc<dyn Runner>,
    ) -> Result<(), QueryError> {
        let source = Arc::new(TableSource::new(table, runner));
        let added = self.context.register_table(name.reference.clone(), source);
        added.map(drop).map_err(|error| of_query(&error))
    }

    /// Plans the query.
    ///
    /// # Errors
    /// [`QueryError::Query`] if its tables do not have what it names, or it would change something.
    pub async fn plan(&self) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let state = self.context.state();
        let plan = state.statement_to_plan(self.statement.clone()).await;
        let plan: LogicalPlan = plan.map_err(|error| of_query(&error))?;
        let only_reads = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        only_reads.verify_plan(&plan).map_err(|error| of_query(&error))?;
        state.create_physical_plan(&plan).await.map_err(|error| of_query(&error))
    }

    /// Runs a plan of the query; returns its rows.
    ///
    /// # Errors
    /// [`QueryError::Run`].
    pub fn rows(
        &self,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<SendableRecordBatchStream, QueryError> {
        let rows = execute_stream(plan, self.context.task_ctx());
        rows.map_err(|error| QueryError::Run(error.strip_backtrace()))
    }
}

/// Makes names with points in them the names of one object each: there are no schemas.
fn join_names(statement: &mut Statement) {
    let Statement::Statement(statement) = statement else { return };
    let _all = visit_relations_mut(statement, |name: &mut ObjectName| {
        let parts: Option<Vec<&str>> =
            name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str())).collect();
        if let Some(parts) = parts.filter(|parts| parts.len() > 1) {
            let joined = Ident::with_quote('"', parts.join("."));
            name.0 = vec![ObjectNamePart::Identifier(joined)];
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Returns DataFusion with what differs here: see [`extremes`] and [`EqualZeros`].
///
/// # Errors
/// It has no place for functions.
pub fn mended(builder: SessionStateBuilder) -> Result<SessionState, DataFusionError> {
    let mut state = builder.with_analyzer_rule(Arc::new(EqualZeros)).build();
    for function in extremes() {
        state.register_udaf(function)?;
    }
    Ok(state)
}

fn of_query(error: &DataFusionError) -> QueryError {
    QueryError::Query(error.strip_backtrace())
}
