//! [`Taken`]: what a text was taken for, which commands print.

use csd_store::source::CsvTaken;
use serde_json::{Value, json};

/// Form of a text as it was taken: its format, header, numbers.
pub(crate) struct Taken {
    /// A line for people.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: Value,
}

impl Taken {
    /// Describes what the CSV file of this name was taken for.
    pub(crate) fn csv(name: &str, taken: &CsvTaken) -> Self {
        let CsvTaken { column, line, header, .. } = taken;
        let json = json!({
            "format": "csv",
            "column": column,
            "header": header,
            "header_line": header.as_ref().map(|_| line),
        });
        Self { text: format!("{name}: CSV, {taken}"), json }
    }
}
