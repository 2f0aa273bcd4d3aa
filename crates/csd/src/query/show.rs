//! Rows of an answer: as a table, as JSON, in a file.

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::ArrayWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::Value;

use super::Answered;
use crate::cli::query::Query;
use crate::report::Failure;
use crate::table::{Align, Table};
use crate::target::Target;

/// Formats rows for a terminal.
pub(super) fn table(columns: &SchemaRef, batches: &[RecordBatch]) -> Result<String, Failure> {
    let heads: Vec<_> = columns
        .fields()
        .iter()
        .map(|field| {
            let right = field.data_type().is_numeric();
            (field.name().as_str(), if right { Align::Right } else { Align::Left })
        })
        .collect();
    let mut table = Table::new(&heads);
    let options = FormatOptions::default().with_null("NULL");
    for batch in batches {
        let cells = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let cells = cells.collect::<Result<Vec<_>, _>>().map_err(Failure::run)?;
        for row in 0..batch.num_rows() {
            table.row(cells.iter().map(|column| column.value(row).to_string()).collect());
        }
    }
    Ok(table.render())
}

/// Returns rows as a list of objects.
pub(super) fn json(batches: &[RecordBatch]) -> Value {
    let mut writer = ArrayWriter::new(Vec::new());
    let written = writer.write_batches(&batches.iter().collect::<Vec<_>>());
    let bytes = written.and_then(|()| writer.finish()).map(|()| writer.into_inner());
    let parsed = bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    parsed.unwrap_or_else(|| Value::Array(Vec::new()))
}

/// Writes rows to the file that the options name; returns false if they name none.
pub(super) fn to_file(
    options: &Query,
    columns: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<bool, Failure> {
    let (file, is_csv) = match (&options.csv, &options.parquet) {
        (Some(file), _) => (file, true),
        (None, Some(file)) => (file, false),
        (None, None) => return Ok(false),
    };
    let (target, sink) = Target::open(file, options.force)?;
    let failed = |why: String| Failure::run(format!("{file}: {why}"));
    if is_csv {
        let mut writer = WriterBuilder::new().with_header(true).build(sink);
        if batches.is_empty() {
            let empty = RecordBatch::new_empty(SchemaRef::clone(columns));
            writer.write(&empty).map_err(|error| failed(error.to_string()))?;
        }
        for batch in batches {
            writer.write(batch).map_err(|error| failed(error.to_string()))?;
        }
    } else {
        let writer = ArrowWriter::try_new(sink, SchemaRef::clone(columns), None);
        let mut writer = writer.map_err(|error| failed(error.to_string()))?;
        for batch in batches {
            writer.write(batch).map_err(|error| failed(error.to_string()))?;
        }
        writer.close().map_err(|error| failed(error.to_string()))?;
    }
    target.finish()?;
    Ok(true)
}

/// Returns the bits of an answer: its rows in one batch, as a stream of Arrow IPC.
pub(super) fn bits(answered: &Answered) -> Result<Vec<u8>, Failure> {
    let whole = datafusion::arrow::compute::concat_batches(&answered.columns, &answered.batches);
    let whole = whole.map_err(Failure::run)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &answered.columns).map_err(Failure::run)?;
    writer.write(&whole).map_err(Failure::run)?;
    writer.into_inner().map_err(Failure::run)
}
