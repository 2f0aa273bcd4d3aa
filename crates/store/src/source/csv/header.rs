//! Decision about the first row of a CSV file: header or values.
//!
//! Nothing in a file says so. It is certain only when a column is chosen by name, when the row's
//! cell is a number, or when all its cells are names and another column goes on with a number.
//! Everything else is for the user to say.

use std::fmt;

use super::records::Row;

/// The user's word about the first row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Nothing: it must be certain.
    #[default]
    Auto,
    /// It holds names.
    Yes,
    /// It holds values.
    No,
}

/// Column and header as they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Number of the column, from 1.
    pub column: usize,
    /// Number of columns of the first row; 0 in a file without a row.
    pub width: usize,
    /// Line of the first row.
    pub line: u64,
    /// The column's name in the header, if there is one.
    pub header: Option<String>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, width, line, header } = self;
        match (width, header) {
            (0, _) => write!(f, "no rows"),
            (_, None) => write!(f, "column {column} of {width}, no header"),
            (_, Some(name)) => {
                write!(f, "column {column} of {width}, {name:?}, header in line {line}")
            }
        }
    }
}

/// First look at the first row, for the column with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It holds values.
    Values,
    /// All its cells are names: it is a header if [`goes_on_with_a_number`].
    Names,
    /// Neither.
    Uncertain,
}

pub(super) fn look(row: &Row, index: usize) -> Look {
    let cells: Vec<String> = row.texts().collect();
    match cells.get(index).map(String::as_str) {
        Some("") if cells.iter().all(|cell| cell.is_empty() || is_number(cell)) => Look::Values,
        Some(cell) if is_number(cell) => Look::Values,
        _ if cells.len() > 1 && are_names(&cells) => Look::Names,
        _ => Look::Uncertain,
    }
}

/// Returns true if the second row has a number in another column than this one. A wrong value in
/// the first row can be in any column, but a row of wrong values alone is none.
pub(super) fn goes_on_with_a_number(first: &[String], second: &Row, index: usize) -> bool {
    let mut pairs = first.iter().zip(second.texts()).enumerate();
    pairs.any(|(at, (name, cell))| at != index && !name.is_empty() && is_number(&cell))
}

/// Returns true if all cells are names and no two are alike. The first may be empty: the column of
/// row numbers that many programs write has no name.
fn are_names(cells: &[String]) -> bool {
    let differ = cells.iter().enumerate().all(|(at, cell)| !cells[..at].contains(cell));
    let is_name = |(at, cell): (usize, &String)| (at == 0 && cell.is_empty()) || is_name(cell);
    differ && cells.iter().enumerate().all(is_name)
}

/// Words that stand for a missing value.
const MISSING: [&str; 7] = ["na", "n/a", "nil", "none", "null", "missing", "unknown"];

fn is_name(cell: &str) -> bool {
    let begins = cell.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
    begins && !is_number(cell) && !MISSING.contains(&cell.to_lowercase().as_str())
}

/// Returns true for a number of any type.
fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}
