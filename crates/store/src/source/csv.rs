//! A column of a CSV file as numbers.
//!
//! A value that is not a number is an error, and is not skipped. An empty cell is an error too,
//! unless the user gives it a meaning ([`Empty`]); a line that ends before the column is always an
//! error. Invariant: an error names the line, the column and the text. The first row is a header
//! when the column is given by name, or when the row's cell in the column is not a number. An empty
//! cell there is a value if the user gives it a meaning and the row's other cells are numbers or
//! empty.

use std::fmt;
use std::io::Read;

use csd_kernels::ElementType;

use super::Error;

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

/// The numbers of a column.
pub(super) struct Numbers {
    name: String,
    column: Column,
    index: usize,
    element: ElementType,
    empty: Empty,
    records: csv::Reader<Box<dyn Read + Send>>,
    record: csv::StringRecord,
    /// The first row, when it is not a header.
    pending: bool,
}

impl Numbers {
    pub(super) fn new(
        name: &str,
        reader: Box<dyn Read + Send>,
        column: Option<&Column>,
        element: ElementType,
        empty: Empty,
    ) -> Result<Self, Error> {
        let mut builder = csv::ReaderBuilder::new();
        let records = builder.has_headers(false).flexible(true).from_reader(reader);
        let mut numbers = Self {
            name: name.to_owned(),
            column: column.cloned().unwrap_or(Column::Number(1)),
            index: 0,
            element,
            empty,
            records,
            record: csv::StringRecord::new(),
            pending: false,
        };
        let any = numbers.next_record()?;
        numbers.index = numbers.find(column, any)?;
        numbers.pending =
            any && matches!(numbers.column, Column::Number(_)) && numbers.begins_with_a_value();
        Ok(numbers)
    }

    /// Returns true if the first row's cell in the column is a value, and not the column's name.
    fn begins_with_a_value(&self) -> bool {
        let mut scratch = [0; 8];
        let mut is = |element, cell: &str| encode(element, cell.trim(), &mut scratch).is_some();
        match self.record.get(self.index).map(str::trim) {
            Some("") if self.empty != Empty::Refused => {
                self.record.iter().all(|cell| cell.trim().is_empty() || is(ElementType::F64, cell))
            }
            Some(cell) => is(self.element, cell),
            None => false,
        }
    }

    /// Fills `out` with whole elements; fills it partly only at the end.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let size = self.element.bytes();
        let mut filled = 0;
        while filled + size <= out.len() {
            if !std::mem::take(&mut self.pending) && !self.next_record()? {
                break;
            }
            let line = self.record.position().map_or(0, csv::Position::line);
            let Some(cell) = self.record.get(self.index) else {
                return Err(self.unusable(format!(
                    "line {line} has {} columns, so there is no column {}",
                    self.record.len(),
                    self.column
                )));
            };
            let text = match (cell.trim(), self.empty) {
                ("", Empty::Skip) => continue,
                ("", Empty::Nan) => "NaN",
                ("", Empty::Zero) => "0",
                (text, _) => text,
            };
            if encode(self.element, text, &mut out[filled..filled + size]).is_none() {
                return Err(Error::Value {
                    name: self.name.clone(),
                    line,
                    column: self.column.to_string(),
                    text: cell.to_owned(),
                    element: self.element,
                });
            }
            filled += size;
        }
        Ok(filled)
    }

    fn find(&self, column: Option<&Column>, any: bool) -> Result<usize, Error> {
        let width = self.record.len();
        match column {
            // An empty file has neither a header with names nor a value.
            _ if !any => Ok(0),
            None if width == 1 => Ok(0),
            None => Err(self.unusable(format!("it has {width} columns: choose one by --column"))),
            Some(Column::Number(number)) if *number <= width => Ok(number - 1),
            Some(Column::Number(number)) => {
                Err(self
                    .unusable(format!("it has {width} columns, so there is no column {number}")))
            }
            Some(Column::Name(name)) => {
                let found = self.record.iter().position(|cell| cell.trim() == name);
                found.ok_or_else(|| {
                    let names = self.record.iter().collect::<Vec<_>>().join(", ");
                    self.unusable(format!("its first row has no column {name:?}, but: {names}"))
                })
            }
        }
    }

    fn unusable(&self, why: String) -> Error {
        Error::Csv { name: self.name.clone(), why }
    }

    fn next_record(&mut self) -> Result<bool, Error> {
        self.records.read_record(&mut self.record).map_err(|error| {
            let name = self.name.clone();
            let why = error.to_string();
            match error.into_kind() {
                csv::ErrorKind::Io(source) => Error::Read { name, source },
                _ => Error::Csv { name, why },
            }
        })
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
mod tests {
    use super::*;

    fn numbers(text: &str, column: Option<&str>) -> Result<Vec<i32>, String> {
        let reader = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        let column = column.map(|column| column.parse().unwrap());
        read(Numbers::new("t.csv", reader, column.as_ref(), ElementType::I32, Empty::Refused))
    }

    fn with_empty(text: &str, column: &str, empty: Empty) -> Result<Vec<i32>, String> {
        let reader = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        let column = column.parse().unwrap();
        read(Numbers::new("t.csv", reader, Some(&column), ElementType::I32, empty))
    }

    fn read(numbers: Result<Numbers, Error>) -> Result<Vec<i32>, String> {
        let mut numbers = numbers.map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        loop {
            let mut out = [0; 16];
            let filled = numbers.fill(&mut out).map_err(|error| error.to_string())?;
            found
                .extend(out[..filled].chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())));
            if filled < out.len() {
                return Ok(found);
            }
        }
    }

    #[test]
    fn columns_are_chosen_by_name_or_number() {
        let text = "id,price\n1, 10\n2,-20 \n3,30\n4,40\n5,50\n";
        assert_eq!(numbers(text, Some("price")), Ok(vec![10, -20, 30, 40, 50]));
        assert_eq!(numbers(text, Some("2")), Ok(vec![10, -20, 30, 40, 50]));
        assert_eq!(numbers("1,2\n3,4\n", Some("2")), Ok(vec![2, 4]));
        assert_eq!(numbers("7\n8\n", None), Ok(vec![7, 8]));
        assert_eq!(numbers("seven\n8\n", None), Ok(vec![8]));
    }

    #[test]
    fn a_value_that_is_not_a_number_is_named_with_its_place() {
        let error = numbers("id,price\n1,10\n2,abc\n", Some("price")).unwrap_err();
        assert_eq!(error, "t.csv, line 3, column \"price\": \"abc\" is not a valid i32");
        let error = numbers("1,10\n2,\n", Some("2")).unwrap_err();
        let hint = ": --empty says what an empty cell is";
        assert_eq!(error, format!("t.csv, line 2, column 2: \"\" is not a valid i32{hint}"));
        let error = numbers("1,10\n2\n", Some("2")).unwrap_err();
        assert!(error.contains("line 2 has 1 columns, so there is no column 2"), "{error}");
        let error = numbers("1\n99999999999\n", None).unwrap_err();
        assert_eq!(error, "t.csv, line 2, column 1: \"99999999999\" is not a valid i32");
    }

    #[test]
    fn an_empty_cell_is_what_the_user_says() {
        let text = "id,price\n1,10\n2,\n3, \n4,40\n";
        assert_eq!(with_empty(text, "price", Empty::Zero), Ok(vec![10, 0, 0, 40]));
        assert_eq!(with_empty(text, "2", Empty::Skip), Ok(vec![10, 40]));
        // Cells that are something else, and lines that end too early, are errors all the same.
        for (text, why) in [("1,2\n3,x\n", "\"x\" is not"), ("1,2\n3\n", "line 2 has 1 columns")] {
            for empty in [Empty::Zero, Empty::Skip, Empty::Nan] {
                assert!(with_empty(text, "2", empty).unwrap_err().contains(why));
            }
        }
        // The first row holds values if its other cells are numbers, and names otherwise.
        assert_eq!(with_empty(",2\n3,4\n", "1", Empty::Zero), Ok(vec![0, 3]));
        assert_eq!(with_empty(",price\n3,4\n", "1", Empty::Zero), Ok(vec![3]));
        assert_eq!(with_empty(",2\n3,4\n", "1", Empty::Skip), Ok(vec![3]));
    }

    #[test]
    fn a_column_that_is_not_there_is_an_error() {
        assert!(numbers("a,b\n1,2\n", Some("c")).unwrap_err().contains("no column \"c\", but: a"));
        assert!(numbers("1,2\n", Some("3")).unwrap_err().contains("no column 3"));
        assert!(numbers("1,2\n", None).unwrap_err().contains("--column"));
    }

    #[test]
    fn numbers_too_large_are_not_infinity() {
        let mut out = [0; 8];
        assert_eq!(encode(ElementType::F64, "1e400", &mut out), None);
        assert_eq!(encode(ElementType::F32, "1e39", &mut out), None);
        assert_eq!(encode(ElementType::F64, "-inf", &mut out), Some(()));
        assert_eq!(out, f64::NEG_INFINITY.to_le_bytes());
    }

    #[test]
    fn empty_files_and_bare_headers_hold_nothing() {
        assert_eq!(numbers("", None), Ok(vec![]));
        assert_eq!(numbers("", Some("price")), Ok(vec![]));
        assert_eq!(numbers("price\n", Some("price")), Ok(vec![]));
    }
}
