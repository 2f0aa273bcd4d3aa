//! A column of a CSV file as numbers.
//!
//! - this module: the column, its values and empty cells
//! - `header`: whether the first row is a header
//! - `records`: rows and cells
//!
//! A value that is not a number is an error, and is not skipped. An empty cell is an error too,
//! unless the user gives it a meaning ([`Empty`]); a line that ends before the column, and one with
//! more cells than the first row, are always errors. Invariant: an error names the line, the column
//! and the text; a row is left out only if it is certain, or said, that it is a header.

mod header;
mod records;

use std::fmt;
use std::io::Read;
use std::ops::Range;

use csd_kernels::ElementType;

use self::header::{Look, goes_on_with_a_number, look};
use self::records::{Fault, Records};
use super::Error;
use crate::words::counted;

pub use self::header::{Header, Taken};

/// Selection of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By number, from 1.
    Number(usize),
    /// By its name in the header.
    Name(String),
}

impl std::str::FromStr for Column {
    type Err = std::convert::Infallible;

    /// Parses a whole number of at least 1 as a column number, and anything else as a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(number) if number > 0 => Self::Number(number),
            _ => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// Meaning of an empty cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// An error.
    #[default]
    Refused,
    /// NaN, for element types that have it.
    Nan,
    /// The number 0.
    Zero,
    /// No element.
    Skip,
}

/// The user's words about a file.
#[derive(Clone, Debug, Default)]
pub struct CsvOptions {
    /// The column [default: the only one].
    pub column: Option<Column>,
    /// Use of the first row.
    pub header: Header,
    /// Meaning of empty cells.
    pub empty: Empty,
}

/// Addition to an error about an empty cell.
const EMPTY: &str = ": --empty says what an empty cell is";
/// Addition to an error about a first row that may be a header.
const HEADER: &str = ", and this first row may be a header: --header yes|no says whether it is";

/// The numbers of a column.
pub(super) struct Numbers {
    name: String,
    column: Column,
    index: usize,
    element: ElementType,
    empty: Empty,
    records: Records<Box<dyn Read + Send>>,
    taken: Taken,
    /// True if the row at hand was not looked at.
    pending: bool,
    /// Lines of empty cells before the row at hand.
    blank_lines: Range<u64>,
}

impl Numbers {
    pub(super) fn new(
        name: &str,
        reader: Box<dyn Read + Send>,
        element: ElementType,
        options: &CsvOptions,
    ) -> Result<Self, Error> {
        let records = Records::new(reader).map_err(|fault| failed(name, fault))?;
        let mut numbers = Self {
            name: name.to_owned(),
            column: options.column.clone().unwrap_or(Column::Number(1)),
            index: 0,
            element,
            empty: options.empty,
            records,
            taken: Taken::default(),
            pending: false,
            blank_lines: 0..0,
        };
        // An empty file has neither a header with names nor a value.
        if numbers.advance()? {
            numbers.find(options)?;
            let (line, width) = (numbers.records.row().line, numbers.records.row().width());
            let blank_lines = numbers.records.row().blank_lines.clone();
            let named = numbers.records.row().texts().nth(numbers.index);
            let has_header = numbers.has_header(options.header)?;
            numbers.pending |= !has_header;
            if width == 1 && !has_header {
                numbers.blank_lines = blank_lines;
            }
            let header = named.filter(|_| has_header);
            numbers.taken = Taken { column: numbers.index + 1, width, line, header };
        }
        Ok(numbers)
    }

    /// Returns what was taken for column and header.
    pub(super) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Returns true if the row at hand is a header. The row behind it may then be at hand.
    fn has_header(&mut self, said: Header) -> Result<bool, Error> {
        let row = self.records.row();
        let seen = match (said, &self.column) {
            (Header::Yes, _) | (Header::Auto, Column::Name(_)) => return Ok(true),
            (Header::No, _) => return Ok(false),
            (Header::Auto, Column::Number(_)) => look(row, self.index),
        };
        if seen == Look::Values {
            return Ok(false);
        }
        let (line, first) = (row.line, row.texts().collect::<Vec<_>>());
        if seen == Look::Names && self.advance()? {
            self.pending = true;
            if goes_on_with_a_number(&first, self.records.row(), self.index) {
                return Ok(true);
            }
        }
        Err(self.refused(line, &first[self.index], HEADER))
    }

    /// Fills `out` with whole elements; fills it partly only at the end.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let size = self.element.bytes();
        let mut filled = 0;
        while filled + size <= out.len() {
            let element = &mut out[filled..filled + size];
            let has_value = if let Some(line) = self.blank_lines.next() {
                self.value(line, "", element)?
            } else if std::mem::take(&mut self.pending) {
                self.row(element)?
            } else if self.advance()? {
                self.pending = true;
                false
            } else {
                break;
            };
            filled += if has_value { size } else { 0 };
        }
        Ok(filled)
    }

    /// Writes the element of the row at hand; returns false if it has none.
    fn row(&self, out: &mut [u8]) -> Result<bool, Error> {
        let row = self.records.row();
        let more = (self.taken.width..row.width()).filter_map(|index| row.cell(index));
        if more.into_iter().any(|cell| !cell.trim_ascii().is_empty()) {
            return Err(self.unusable(format!(
                "line {} has more cells than the first row: a cell that contains a comma needs \
                 quotes",
                row.line
            )));
        }
        let Some(cell) = row.cell(self.index) else {
            return Err(self.unusable(format!(
                "line {} has {}, so there is no column {}",
                row.line,
                counted(row.width() as u64, "column"),
                self.column
            )));
        };
        self.value(row.line, &String::from_utf8_lossy(cell), out)
    }

    /// Writes the element of a cell; returns false if it has none.
    fn value(&self, line: u64, cell: &str, out: &mut [u8]) -> Result<bool, Error> {
        let text = match (cell.trim(), self.empty) {
            ("", Empty::Skip) => return Ok(false),
            ("", Empty::Nan) => "NaN",
            ("", Empty::Zero) => "0",
            (text, _) => text,
        };
        match encode(self.element, text, out) {
            Some(()) => Ok(true),
            None => Err(self.refused(line, cell, if text.is_empty() { EMPTY } else { "" })),
        }
    }

    /// Finds the column in the first row, which is at hand.
    fn find(&mut self, options: &CsvOptions) -> Result<(), Error> {
        let row = self.records.row();
        let width = row.width();
        let named = |name: &str| -> Vec<usize> {
            let same = row.texts().enumerate().filter(|(_, cell)| cell == name);
            same.map(|(index, _)| index).collect()
        };
        let (name, found) = match &options.column {
            None if width == 1 => return Ok(()),
            None => {
                return Err(
                    self.unusable(format!("it has {width} columns: choose one by --column"))
                );
            }
            Some(Column::Name(name)) => (name.clone(), named(name)),
            Some(Column::Number(number)) => {
                let (name, number) = (number.to_string(), *number);
                match (named(&name), options.header) {
                    (found, Header::Yes) if !found.is_empty() => (name, found),
                    (found, _) if number > width => {
                        return Err(self.no_column(width, &name, !found.is_empty()));
                    }
                    _ => {
                        self.index = number - 1;
                        return Ok(());
                    }
                }
            }
        };
        let names = || row.texts().collect::<Vec<_>>().join(", ");
        match (options.header, &found[..]) {
            (Header::No, _) => Err(self.unusable(format!(
                "--header no says that its columns have no names: choose one by its number, not \
                 {name:?}"
            ))),
            (_, [index]) => {
                self.index = *index;
                self.column = Column::Name(name);
                Ok(())
            }
            (_, []) => {
                Err(self
                    .unusable(format!("its first row has no column {name:?}, but: {}", names())))
            }
            (_, [..]) => Err(self.unusable(format!(
                "its first row has more than one column {name:?}: choose one by its number"
            ))),
        }
    }

    fn no_column(&self, width: usize, number: &str, is_name: bool) -> Error {
        let columns = counted(width as u64, "column");
        let hint = match is_name {
            true => ": with --header yes it is a name in the first row",
            false => "",
        };
        self.unusable(format!("it has {columns}, so there is no column {number}{hint}"))
    }

    fn unusable(&self, why: String) -> Error {
        Error::Csv { name: self.name.clone(), why }
    }

    fn refused(&self, line: u64, cell: &str, hint: &'static str) -> Error {
        Error::Value {
            name: self.name.clone(),
            line,
            column: self.column.to_string(),
            text: cell.to_owned(),
            element: self.element,
            hint,
        }
    }

    /// Goes on to the next row.
    fn advance(&mut self) -> Result<bool, Error> {
        let any = self.records.advance().map_err(|fault| failed(&self.name, fault))?;
        // In a file of one column, a line without a byte is an empty cell.
        if any && self.taken.width == 1 {
            self.blank_lines = self.records.row().blank_lines.clone();
        }
        Ok(any)
    }
}

/// Returns the error of a file that cannot be read as CSV.
fn failed(name: &str, fault: Fault) -> Error {
    let name = name.to_owned();
    match fault {
        Fault::Read(source) => Error::Read { name, source },
        Fault::Malformed(why) => Error::Csv { name, why },
    }
}

/// Writes the number that `text` denotes, as little-endian bytes; returns `None` when it is not a
/// number.
fn encode(element: ElementType, text: &str, out: &mut [u8]) -> Option<()> {
    let size = element.bytes();
    match element {
        ElementType::I32 => out[..size].copy_from_slice(&text.parse::<i32>().ok()?.to_le_bytes()),
        ElementType::I64 => out[..size].copy_from_slice(&text.parse::<i64>().ok()?.to_le_bytes()),
        ElementType::F32 => {
            let value: f32 = text.parse().ok()?;
            in_range(value.is_infinite(), text)?;
            out[..size].copy_from_slice(&value.to_le_bytes());
        }
        ElementType::F64 => {
            let value: f64 = text.parse().ok()?;
            in_range(value.is_infinite(), text)?;
            out[..size].copy_from_slice(&value.to_le_bytes());
        }
        ElementType::C64 | ElementType::Bytes => return None,
    }
    Some(())
}

/// Returns `None` when digits overflowed to infinity: a number too large is an error, the word
/// `inf` is not.
fn in_range(is_infinite: bool, text: &str) -> Option<()> {
    (!is_infinite || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(())
}

#[cfg(test)]
mod tests;
