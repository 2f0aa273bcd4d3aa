//! Plans over the row groups of a table.

use std::sync::Arc;

use csd_kernels::program::{Compiled, Limits, run};
use csd_query::plan::{Aggregate, Column, Measure, Plan, Step};
use csd_query::table::{Piece, Reading, Table};
use csd_query::{CompiledPlan, Substrait};
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as ColumnExpr, lit};

use crate::memory;

const ROWS: i64 = 10_000;
const GROUP_ROWS: usize = 1500;

/// Returns a table of numbers, their thirds, and names, and the bytes of its file.
fn table() -> (Table, Arc<[u8]>) {
    let third = |number: i64| (number % 3 == 0).then_some(number / 3);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let thirds: ArrayRef = Arc::new((0..ROWS).map(third).collect::<Int64Array>());
    let names = (0..ROWS).map(|number| format!("n{}", number % 7));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let columns = vec![("number", numbers), ("third", thirds), ("name", names)];
    let (table, bytes) = memory::table_in_groups(columns, GROUP_ROWS);
    assert_eq!(
        table.files[0].entry.parts.as_ref().map(|it| it.parts().len()),
        Some(8),
        "one for each row group, one for the rest"
    );
    (table, bytes)
}

/// Runs a plan over a row group; returns its rows.
fn execute(table: &Table, bytes: &[u8], plan: &CompiledPlan, piece: &Piece) -> Vec<RecordBatch> {
    let (rows, answer) = memory::execute((table, bytes), plan, piece).unwrap();
    let batches: Vec<_> =
        StreamReader::try_new(&answer[..], None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>());
    batches
}

fn column(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(ColumnExpr::new(name, index))
}

fn more_than(column: Arc<dyn PhysicalExpr>, number: i64) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(column, Operator::Gt, lit(ScalarValue::from(number))))
}

/// Returns a plan over the columns `third` and `name`, as a drive reads it.
fn compiled(table: &Table, steps: Vec<Step>) -> CompiledPlan {
    let columns = Arc::new(table.columns.project(&[1, 2]).unwrap());
    let bytes = Plan { columns, steps }.encode().unwrap();
    Substrait::plan(&bytes).unwrap()
}

#[test]
fn rows_of_all_row_groups_are_the_rows_of_the_file() {
    let (table, bytes) = table();
    let plan = compiled(&table, vec![Step::Filter(more_than(column("third", 0), 1000))]);
    let reading = Reading::new(&table, &[1, 2], |_| Vec::new()).unwrap();
    assert_eq!((reading.pieces.len(), reading.rows()), (7, 10_000));
    assert!(reading.bytes() < bytes.len() as u64, "column `number` is not read");
    assert!(reading.pieces.iter().all(|piece| piece.apart.is_none()));
    let batches = reading.pieces.iter().flat_map(|piece| execute(&table, &bytes, &plan, piece));
    let batches: Vec<_> = batches.collect();
    let rows = concat_batches(&batches[0].schema(), &batches).unwrap();
    let thirds = rows.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    let expected: Vec<i64> = (1001..=9999 / 3).collect();
    assert_eq!(thirds.values().to_vec(), expected);
}

#[test]
fn sums_of_row_groups_are_the_sum_of_the_table() {
    let (table, bytes) = table();
    let measures =
        vec![Measure { function: sum_udaf(), arguments: vec![column("third", 0)], filter: None }];
    let groups = vec![Column { value: column("name", 1), name: "name".to_owned() }];
    let plan = compiled(&table, vec![Step::Aggregate(Aggregate { groups, measures })]);
    let reading = Reading::new(&table, &[1, 2], |_| Vec::new()).unwrap();
    let mut sum = 0;
    for piece in &reading.pieces {
        for batch in execute(&table, &bytes, &plan, piece) {
            let sums = batch.column(1).as_any().downcast_ref::<Int64Array>().unwrap();
            sum += sums.iter().flatten().sum::<i64>();
            assert_eq!((batch.num_rows(), batch.column(0).null_count()), (7, 0));
        }
    }
    assert_eq!(
        sum,
        (0..ROWS).filter(|number| number % 3 == 0).map(|number| number / 3).sum::<i64>()
    );
}

#[test]
fn row_groups_are_excluded_by_their_statistics() {
    let (table, _) = table();
    let columns: SchemaRef = Arc::new(table.columns.project(&[1, 2]).unwrap());
    let filter = more_than(column("third", 0), 2700);
    let reading = Reading::new(&table, &[1, 2], |file| file.excluded(&filter, &columns)).unwrap();
    assert_eq!((reading.pieces.len(), reading.excluded), (2, 5));
    let statistics = table.statistics();
    assert_eq!(statistics.num_rows.get_value(), Some(&10_000));
}

#[test]
fn parameters_and_bytes_of_strangers_are_refused_or_answered() {
    let (table, bytes) = table();
    let plan = compiled(&table, Vec::new());
    let reading = Reading::new(&table, &[1, 2], |_| Vec::new()).unwrap();
    let parameters = &reading.pieces[0].group.parameters;
    let stream = || {
        vec![vec![csd_buffer::Buffer::from_slice(
            &bytes[..usize::try_from(reading.pieces[0].bytes).unwrap()],
        )]]
    };
    let mut refused = 0;
    for at in 0..parameters.len() {
        let mut changed = parameters.clone();
        changed[at] ^= 0x11;
        let Ok(program) = plan.start(&changed, &Limits::default()) else {
            refused += 1;
            continue;
        };
        // A reader of Parquet may panic; the drive that runs it then fails the execution.
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(program, stream())));
        refused += usize::from(!matches!(ran, Ok(Ok(_))));
    }
    assert!(refused > parameters.len() / 4, "{refused} of {}", parameters.len());
}

#[test]
fn files_of_other_columns_are_no_one_table() {
    let (one, mut other) = (table().0.files.remove(0), table().0.files.remove(0));
    other.entry.name = "u".to_owned();
    other.columns = Arc::new(table().0.columns.project(&[0, 2]).unwrap());
    let refused = Table::new("t*", vec![one, other]).unwrap_err().to_string();
    let expected = "\"t\" and \"u\" are no one table: the first has column \"third\" where the \
                    other has \"name\"";
    assert_eq!(refused, expected);
    let none = Table::new("t*", Vec::new()).unwrap_err().to_string();
    assert_eq!(none, "no object matches \"t*\"");
}
