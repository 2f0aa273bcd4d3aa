//! Queries that had wrong answers once: in DataFusion, or in what is pushed to drives.

use std::sync::Arc;

use csd_query::Substrait;
use csd_query::host::{Runner, Session};
use csd_query::plan::Plan;
use csd_query::table::{Reading, Table};
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use datafusion::parquet::file::statistics::Statistics;

use crate::answers;
use crate::memory::{self, InMemory, Side};

/// Returns a table of these columns, in short row groups, and its bytes.
fn table(columns: Vec<(&str, ArrayRef)>) -> (Table, Arc<[u8]>) {
    memory::table_in_groups(columns, 4)
}

/// Returns the rows of an answer of drives, which is that of the host.
fn rows(sql: &str, (table, bytes): (Table, Arc<[u8]>)) -> Vec<String> {
    let table = Arc::new(table);
    let on = |side| {
        let (bytes, scans) = (Arc::clone(&bytes), Arc::default());
        let runner: Arc<dyn Runner> = Arc::new(InMemory { bytes, side, scans });
        answers::ours(sql, &table, &runner).unwrap()
    };
    let (drives, host) = (on(Side::Drives), on(Side::Host));
    assert!(answers::bits(&drives) == answers::bits(&host), "drives and host differ: {sql}");
    let text: Vec<_> = drives
        .schema()
        .fields()
        .iter()
        .map(|it| Field::new(it.name(), DataType::Utf8, true))
        .collect();
    answers::rows_in_words(&drives, &Arc::new(Schema::new(text)))
}

fn floats(values: &[f64]) -> (&'static str, ArrayRef) {
    ("x", Arc::new(Float64Array::from(values.to_vec())))
}

fn ids(count: i64) -> (&'static str, ArrayRef) {
    ("id", Arc::new(Int64Array::from_iter_values(0..count)))
}

#[test]
fn both_zeros_are_equal_in_the_first_rows_of_an_order() {
    let values = [-0.0, -0.0, 0.0, -0.0, 0.0, 0.0, -0.0, 0.0];
    let of_all = || table(vec![floats(&values), ids(8)]);
    let ascending = rows("select id from t order by x desc, id limit 5", of_all());
    assert_eq!(ascending, ["0", "1", "2", "3", "4"]);
    let descending = rows("select id from t order by x, id desc limit 3", of_all());
    assert_eq!(descending, ["7", "6", "5"]);
}

#[test]
fn both_zeros_are_equal_in_lists_and_in_what_a_join_asks_for() {
    let values = [0.0, 1.0, 2.0, 3.0, -0.0, 0.0, -0.0, 5.0];
    let of_all = || table(vec![floats(&values), ids(8)]);
    assert_eq!(
        rows("select id from t where x in (-0.0, 5.0)", of_all()),
        ["0", "4", "5", "6", "7"]
    );
    assert_eq!(rows("select id from t where x not in (0, 1, 2, 3)", of_all()), ["7"]);
    let join = "select b.id from (select x from t where id = 4) a join t b on a.x = b.x order by 1";
    assert_eq!(rows(join, of_all()), ["0", "4", "5", "6"]);
}

#[test]
fn a_nan_hides_no_smaller_number_of_its_group() {
    let values = [1.0, 9.0, f64::NAN, 5.0, 3.0, f64::NAN, 2.0, 4.0];
    let key: ArrayRef = Arc::new(StringArray::from(vec!["a"; 8]));
    let answer =
        rows("select min(x), max(x) from t group by k", table(vec![floats(&values), ("k", key)]));
    assert_eq!(answer, ["1.0|NaN"]);
}

#[test]
fn a_nan_is_above_the_greatest_number_of_statistics() {
    let values = [1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0, 6.0, 7.0];
    let of_all = || table(vec![floats(&values), ids(8)]);
    assert_eq!(rows("select id from t where x > 6", of_all()), ["2", "7"]);
    assert_eq!(rows("select max(x) from t", of_all()), ["NaN"]);
}

#[test]
fn a_function_that_drives_do_not_have_leaves_the_steps_below_it_once() {
    let values = [1.0, 2.0, 3.0, 3.0, 5.0, 6.0, 7.0, 8.0];
    let sql = "select count(distinct x), sum(case when x > 2 then 1 else 0 end), \
               count(case when x > 2 then id end) from t where id < 7";
    assert_eq!(rows(sql, table(vec![floats(&values), ids(8)])), ["6|5|5"]);
}

/// Old writers compared bytes as if they had a sign, and said so in fields of their own.
#[test]
fn least_and_greatest_bytes_of_old_writers_exclude_no_row_group() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "ä", "b", "c", "d", "e", "f", "g"]));
    let (mut table, bytes) = table(vec![("text", texts), ids(8)]);
    let file = &mut table.files[0];
    let old = |chunk: &ColumnChunkMetaData| {
        let (least, greatest) = (Some("c".into()), Some("a".into()));
        let statistics = Statistics::byte_array(least, greatest, None, Some(0), true);
        chunk.clone().into_builder().set_statistics(statistics).build().unwrap()
    };
    let groups = file.metadata.row_groups().iter().map(|group: &RowGroupMetaData| {
        let mut chunks = group.columns().to_vec();
        chunks[0] = old(&chunks[0]);
        group.clone().into_builder().set_column_metadata(chunks).build().unwrap()
    });
    let metadata = file.metadata.as_ref().clone().into_builder();
    let metadata = metadata.set_row_groups(groups.collect()).build();
    file.metadata = Arc::new(metadata);
    assert_eq!(rows("select id from t where text = 'ä'", (table, bytes)), ["1"]);
}

#[test]
fn a_name_with_points_is_one_object_and_keeps_its_case() {
    let names = |sql: &str| {
        let named = Session::new(sql).unwrap().tables().unwrap();
        named.into_iter().map(|name| (name.objects, name.is_pattern)).collect::<Vec<_>>()
    };
    let sql =
        "with w as (select 1) select * from A.Parquet, w, 'b/*.parquet', generate_series(1, 2)";
    assert_eq!(names(sql), [("A.Parquet".to_owned(), false), ("b/*.parquet".to_owned(), true)]);
    assert_eq!(names("select * from \"a.b\""), [("a.b".to_owned(), false)]);
}

/// Views of text share the bytes of their page.
#[test]
fn an_answer_has_the_bytes_of_its_own_rows_alone() {
    const ROWS: usize = 20_000;
    let texts: Vec<String> = (0..ROWS).map(|row| format!("{row:040}")).collect();
    let texts: ArrayRef = Arc::new(StringArray::from(texts));
    let (table, bytes) = memory::table_in_groups(vec![("text", texts)], ROWS);
    let plan = Plan { columns: Arc::clone(&table.columns), steps: Vec::new() };
    let plan = Substrait::plan(&plan.encode().unwrap()).unwrap();
    let reading = Reading::new(&table, &[0], |_| Vec::new()).unwrap();
    let (rows, answer) = memory::execute((&table, &bytes), &plan, &reading.pieces[0]).unwrap();
    assert_eq!(rows, ROWS as u64);
    assert!(answer.len() < 60 * ROWS, "{} bytes for rows of 40 and a view of 16", answer.len());
}
