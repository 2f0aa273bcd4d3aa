//! Answers of a query: of drives, of the host, and of DataFusion over the local file.

use std::path::Path;
use std::sync::Arc;

use csd_query::host::{QueryError, Runner, Session, mended};
use csd_query::table::Table;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Schema, SchemaRef};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures_util::TryStreamExt;

/// Rows of an answer, or why there is none, in words.
pub(crate) type Answered = Result<RecordBatch, String>;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn together(columns: &SchemaRef, batches: &[RecordBatch]) -> Answered {
    concat_batches(columns, batches).map_err(|error| error.to_string())
}

/// Answers a query over a table whose scans `runner` runs.
pub(crate) fn ours(sql: &str, table: &Arc<Table>, runner: &Arc<dyn Runner>) -> Answered {
    let session = Session::new(sql).map_err(|error| error.to_string())?;
    let answered = block_on(async {
        for name in session.tables()? {
            session.add(&name, Arc::clone(table), Arc::clone(runner))?;
        }
        let rows = session.rows(session.plan().await?)?;
        let columns = rows.schema();
        let batches: Result<Vec<_>, _> = rows.try_collect().await;
        batches.map(|all| (columns, all)).map_err(|error| QueryError::Run(error.to_string()))
    });
    let (columns, batches) = answered.map_err(|error| error.to_string())?;
    together(&columns, &batches)
}

/// Answers a query over a file with DataFusion alone.
pub(crate) fn datafusion(sql: &str, file: &Path) -> Answered {
    block_on(async {
        // Its statistics exclude row groups that have a NaN above the greatest number.
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_collect_statistics(false)
            .with_parquet_pruning(false)
            .with_parquet_page_index_pruning(false)
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false);
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let context = SessionContext::new_with_state(mended(builder)?);
        context
            .register_parquet("t", file.to_str().unwrap(), ParquetReadOptions::default())
            .await?;
        let rows = context.sql(sql).await?;
        let columns: Schema = rows.schema().as_arrow().clone();
        Ok::<_, datafusion::error::DataFusionError>((columns, rows.collect().await?))
    })
    .map_err(|error| error.to_string())
    .and_then(|(columns, batches)| {
        // Columns that may be missing are so in batches alone.
        let columns = batches.first().map_or_else(|| Arc::new(columns), RecordBatch::schema);
        together(&columns, &batches)
    })
}

/// Returns the bits of an answer.
pub(crate) fn bits(rows: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema()).unwrap();
    writer.write(rows).unwrap();
    writer.into_inner().unwrap()
}

/// Returns rows as text that is equal if they are, of columns of these types.
pub(crate) fn rows_in_words(rows: &RecordBatch, types: &SchemaRef) -> Vec<String> {
    let columns = rows.columns().iter().zip(types.fields());
    let columns: Vec<Vec<String>> =
        columns.map(|(values, field)| in_words(values, field.data_type())).collect();
    let row = |row: usize| {
        columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join("|")
    };
    (0..rows.num_rows()).map(row).collect()
}

fn in_words(values: &ArrayRef, as_type: &DataType) -> Vec<String> {
    let values = cast(values, as_type).unwrap();
    let all = 0..values.len();
    let float = |is_null: bool, value: f64| match (is_null, value.is_nan()) {
        (true, _) => "NULL".to_owned(),
        (_, true) => "NaN".to_owned(),
        _ => format!("{:x}", value.to_bits()),
    };
    match as_type {
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>();
            all.map(|row| float(values.is_null(row), floats.value(row))).collect()
        }
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>();
            all.map(|row| float(values.is_null(row), floats.value(row).into())).collect()
        }
        _ => {
            let options = FormatOptions::default().with_null("NULL");
            let shown = ArrayFormatter::try_new(&values, &options).unwrap();
            all.map(|row| shown.value(row).to_string()).collect()
        }
    }
}
