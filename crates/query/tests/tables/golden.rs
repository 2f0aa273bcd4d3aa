//! Plans, parameters and answers against the golden files.
//!
//! `CSD_GOLDEN=write` writes the files again, after a change that is meant.

use std::path::PathBuf;
use std::sync::Arc;

use csd_kernels::program::{Compiled, Limits, run};
use csd_query::Substrait;
use csd_query::part::{Part, PartKind};
use csd_query::plan::{Aggregate, Column, Measure, Plan, Step};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::{count::count_udaf, sum::sum_udaf};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as ColumnExpr, lit};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use prost::Message;

use crate::answers::rows_in_words;

fn path(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/golden/query");
    root.join(name)
}

fn hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(line).collect::<Vec<_>>().join("\n") + "\n"
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Asserts that bytes are those of a golden file.
fn agree(name: &str, bytes: &[u8]) {
    if std::env::var("CSD_GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(path(name), hex(bytes)).unwrap();
    }
    let expected = std::fs::read_to_string(path(name)).unwrap();
    assert!(hex(bytes) == expected, "{name} differs: {}", hex(bytes));
}

fn golden(name: &str) -> Vec<u8> {
    unhex(&std::fs::read_to_string(path(name)).unwrap())
}

fn columns() -> SchemaRef {
    let zone = Some("Europe/Berlin".into());
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("word", DataType::Utf8View, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, zone), true),
        Field::new(
            "row",
            DataType::Struct(Fields::from(vec![Field::new("x", DataType::Int32, true)])),
            true,
        ),
    ]))
}

fn column(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(ColumnExpr::new(name, index))
}

/// Sums of `id` by `word`, of rows after the first in which `word` is there.
fn sums() -> Plan {
    let later = BinaryExpr::new(column("id", 0), Operator::Gt, lit(1i64));
    let named = |value, name: &str| Column { value, name: name.to_owned() };
    let measure = |function, arguments| Measure { function, arguments, filter: None };
    // Plans have no names for columns of their own: a reader gives them these.
    let (id, word) = (column("column 0", 0), column("column 1", 1));
    let sum = measure(sum_udaf(), vec![id]);
    let count = measure(count_udaf(), vec![lit(1i64)]);
    let aggregate = Aggregate { groups: vec![named(word, "group 0")], measures: vec![sum, count] };
    Plan {
        columns: columns(),
        steps: vec![
            Step::Filter(Arc::new(later)),
            Step::Project(vec![
                named(column("id", 0), "column 0"),
                named(column("word", 1), "column 1"),
            ]),
            Step::Aggregate(aggregate),
        ],
    }
}

/// The two latest rows.
fn latest() -> Plan {
    let zone = Some("Europe/Berlin".into());
    let day = ScalarValue::TimestampMicrosecond(Some(86_400_000_000), zone);
    let after = BinaryExpr::new(column("at", 2), Operator::GtEq, lit(day));
    let options = SortOptions { descending: true, nulls_first: false };
    let keys = vec![PhysicalSortExpr { expr: column("at", 2), options }];
    let steps = vec![Step::Filter(Arc::new(after)), Step::Top { keys, rows: 2 }];
    Plan { columns: columns(), steps }
}

/// Runs a golden plan over the golden row group; returns the answer.
fn answer(plan: &str) -> (u64, Vec<u8>) {
    let stream = csd_buffer::Buffer::from_slice(&golden("row-group.hex"));
    let plan = Substrait::plan(&golden(plan)).unwrap();
    let program = plan.start(&golden("parameters.hex"), &Limits::default()).unwrap();
    run(program, vec![vec![stream]]).unwrap()
}

fn rows(answer: &[u8]) -> Vec<String> {
    let batches: Result<Vec<RecordBatch>, _> =
        StreamReader::try_new(answer, None).unwrap().collect();
    let shown = |batch: &RecordBatch| {
        let text = |it: &Arc<Field>| Field::new(it.name(), it.data_type().clone(), true);
        let types = Schema::new(batch.schema().fields().iter().map(text).collect::<Vec<_>>());
        rows_in_words(batch, &Arc::new(types))
    };
    batches.unwrap().iter().flat_map(shown).collect()
}

#[test]
fn plans_are_written_to_their_bytes_and_read_from_them() {
    for (name, plan) in [("sums.plan.hex", sums()), ("latest.plan.hex", latest())] {
        agree(name, &plan.encode().unwrap());
        let read = Plan::decode(&golden(name)).unwrap();
        assert_eq!((&read.columns, read.steps.len()), (&plan.columns, plan.steps.len()));
        assert!(read.encode().unwrap() == golden(name), "{name}: it is written the same again");
    }
}

#[test]
fn parameters_are_read_from_their_bytes() {
    let part = Part::decode(&golden("parameters.hex")[..]).unwrap();
    assert_eq!(part.encode_to_vec(), golden("parameters.hex"));
    let Some(PartKind::RowGroup(group)) = part.kind else { panic!("a row group") };
    let bytes: u64 = group.ranges.iter().map(|range| range.bytes).sum();
    assert_eq!(bytes, golden("row-group.hex").len() as u64);
}

#[test]
fn answers_are_those_of_the_golden_plans() {
    let (count, bytes) = answer("sums.plan.hex");
    agree("sums.answer.hex", &bytes);
    assert_eq!(
        (count, rows(&golden("sums.answer.hex"))),
        (2, vec!["b|6|2".into(), "NULL|3|1".into()])
    );
    let (count, bytes) = answer("latest.plan.hex");
    agree("latest.answer.hex", &bytes);
    let latest = ["4|b|1970-01-05T01:00:00+01:00|NULL", "3|NULL|1970-01-04T01:00:00+01:00|{x: 3}"];
    assert_eq!(
        (count, rows(&golden("latest.answer.hex"))),
        (2, latest.map(str::to_owned).to_vec())
    );
}
