//! Columns of an object that is a table, for `csd stat`.

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use serde_json::{Value, json};

use crate::table::{Align, Table};
use crate::units::grouped;

/// Columns of a table.
pub(crate) struct Columns {
    rows: u64,
    row_groups: usize,
    /// Names, types in Arrow's words, and whether values may be missing.
    columns: Vec<(String, String, bool)>,
}

impl Columns {
    /// Returns the columns in words.
    pub(crate) fn text(&self) -> String {
        let mut table =
            Table::new(&[("column", Align::Left), ("type", Align::Left), ("", Align::Left)]);
        for (name, of, nullable) in &self.columns {
            let missing = if *nullable { "may be NULL" } else { "" };
            table.row(vec![name.clone(), of.clone(), missing.to_owned()]);
        }
        let groups = grouped(self.row_groups as u64);
        format!("{} rows in {groups} row groups\n{}", grouped(self.rows), table.render())
    }

    /// Returns the columns for programs.
    pub(crate) fn describe(&self) -> Value {
        json!({
            "rows": self.rows,
            "row_groups": self.row_groups,
            "columns": self.columns.iter().map(column).collect::<Vec<_>>(),
        })
    }
}

fn column((name, of, nullable): &(String, String, bool)) -> Value {
    json!({ "name": name, "type": of, "nullable": nullable })
}

/// Returns the columns of an object that was put as a table, or why they cannot be read; `None` if
/// it is none.
#[cfg(feature = "query")]
pub(crate) async fn of(array: &Array, entry: &Entry) -> Option<Result<Columns, String>> {
    use csd_store::layout::Kind;
    entry.parts.as_ref().filter(|parts| parts.kind() == Kind::Table)?;
    Some(match crate::query::tables::file(array, entry.clone()).await {
        Err(failure) => Err(failure.message),
        Ok(file) => Ok(Columns {
            rows: u64::try_from(file.metadata.file_metadata().num_rows()).unwrap_or_default(),
            row_groups: file.metadata.num_row_groups(),
            columns: file
                .columns
                .fields()
                .iter()
                .map(|it| (it.name().clone(), it.data_type().to_string(), it.is_nullable()))
                .collect(),
        }),
    })
}

/// Knows no tables: without the feature `query` nothing reads them.
#[cfg(not(feature = "query"))]
pub(crate) async fn of(_: &Array, _: &Entry) -> Option<Result<Columns, String>> {
    None
}
