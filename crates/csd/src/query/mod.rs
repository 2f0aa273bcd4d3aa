//! `csd query`: SQL over tables in the array.
//!
//! Modules: `tables` finds the objects that a query names and reads their footers, `scans` runs
//! plans over row groups in drives or here, `sandbox` is the plan on this host, `show` prints rows,
//! `explain` says what was done where.

mod explain;
mod sandbox;
mod scans;
mod show;
pub(crate) mod tables;

use std::sync::Arc;

use csd_query::host::{QueryError, Runner, Session};
use csd_query::table::Table;
use csd_run::Mode;
use csd_store::array::Plan;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::ExecutionPlan;
use futures_util::TryStreamExt;
use serde_json::json;

use crate::cli::query::{On, Query};
use crate::clock::timed;
use crate::context::Context;
use crate::report::{Class, Failure, Report};
use crate::units::{counted, duration};

use scans::Scans;

/// Rows of a query, and how it went.
struct Answered {
    mode: Mode,
    columns: SchemaRef,
    batches: Vec<RecordBatch>,
    scans: Arc<Scans>,
    plan: Arc<dyn ExecutionPlan>,
    wall_s: f64,
}

impl Answered {
    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// Answers a query.
pub(crate) fn query(options: &Query, context: &Context) -> Result<Report, Failure> {
    let plan = context.plan()?;
    let session = Session::new(&options.sql).map_err(failure)?;
    let names = session.tables().map_err(failure)?;
    let tables = tables::open((context, &plan), &names)?;
    let mut answers = Vec::new();
    for mode in modes(options) {
        let answered = run((options, mode), (context, &plan), &tables)?;
        if let Some(first) = answers.first() {
            compare(first, &answered)?;
        }
        answers.push(answered);
    }
    let first = &answers[0];
    let mut warnings: Vec<String> =
        answers.iter().flat_map(|answered| answered.scans.warnings()).collect();
    warnings.dedup();
    let described = json!({
        "tables": tables.iter().map(|(name, table)| json!({
            "name": name.objects, "objects": table.files.len(), "bytes": table.bytes(),
            "row_groups": table.row_groups(),
        })).collect::<Vec<_>>(),
        "rows": first.rows(),
        "checked": answers.len() > 1,
        "runs": answers.iter().map(explain::describe).collect::<Vec<_>>(),
    });
    if options.explain {
        let text = answers.iter().map(explain::text).collect::<String>();
        return Ok(Report::new(text, described).with_warnings(warnings));
    }
    let to_file = show::to_file(options, &first.columns, &first.batches)?;
    let mut result = described;
    let mut text = String::new();
    if !to_file {
        result["answer"] = context.for_json(|| show::json(&first.batches));
        text = show::table(&first.columns, &first.batches)?;
    }
    if answers.len() > 1 {
        text += &ways(&answers);
    }
    Ok(Report::new(text, result).with_warnings(warnings))
}

fn ways(answers: &[Answered]) -> String {
    let line = |answered: &Answered| {
        let crossed = crate::units::size(answered.scans.crossed_bytes());
        let (mode, took) = (answered.mode, duration(answered.wall_s));
        format!("on {mode}: {took}, {crossed} crossed\n")
    };
    let lines: String = answers.iter().map(line).collect();
    format!("{lines}answers agree\n")
}

fn modes(options: &Query) -> Vec<Mode> {
    let both = options.check || options.on == On::All;
    match options.on {
        On::Host if both => vec![Mode::Host, Mode::Drives],
        On::Host => vec![Mode::Host],
        _ if both => vec![Mode::Drives, Mode::Host],
        _ => vec![Mode::Drives],
    }
}

/// Plans and runs the query once.
fn run(
    (options, mode): (&Query, Mode),
    (context, plan): (&Context, &Plan),
    tables: &[(csd_query::host::TableName, Arc<Table>)],
) -> Result<Answered, Failure> {
    let scans = Arc::new(Scans::new((context, plan), options, mode)?);
    let session = Session::new(&options.sql).map_err(failure)?;
    let runner: Arc<dyn Runner> = Arc::<Scans>::clone(&scans);
    for (name, table) in tables {
        session.add(name, Arc::clone(table), Arc::clone(&runner)).map_err(failure)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Failure::run)?;
    let (answered, wall_s) = timed(|| {
        runtime.block_on(async {
            let planned = session.plan().await?;
            let rows = session.rows(Arc::clone(&planned))?;
            let columns = rows.schema();
            let batches: Result<Vec<RecordBatch>, _> = rows.try_collect().await;
            let batches = batches.map_err(|error| QueryError::Run(error.strip_backtrace()))?;
            Ok((planned, columns, batches))
        })
    });
    // Scans that the query did not need to their end remove what they have in drives.
    drop(runtime);
    // The failure of a scan names its drive and has its class; the error of the plan does not.
    if let Some(failed) = scans.failed() {
        return Err(failed);
    }
    let (plan, columns, batches) = answered.map_err(failure)?;
    Ok(Answered { mode, columns, batches, scans, plan, wall_s })
}

fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Query(why) => Failure::usage(why),
        other => Failure::run(other),
    }
}

/// Fails with class "differ" if two answers differ in any bit.
fn compare(first: &Answered, other: &Answered) -> Result<(), Failure> {
    let (a, b) = (show::bits(first)?, show::bits(other)?);
    if a == b {
        return Ok(());
    }
    let (rows, others) = (first.rows() as u64, other.rows() as u64);
    let why = format!(
        "the answer on {} ({}) is not that on {} ({})",
        first.mode,
        counted(rows, "row"),
        other.mode,
        counted(others, "row")
    );
    Err(Failure::new(Class::Differ, format!("answers differ: {why}")))
}
