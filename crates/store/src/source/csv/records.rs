//! [`Records`]: the rows of a CSV file (RFC 4180) as cells.
//!
//! Cells are separated by commas, and lines end in LF, CR LF or CR. A UTF-8 mark at the beginning
//! is no part of the first cell. Errors are whatever readers of CSV take differently: a quote that
//! does not end, text behind the end of a quoted cell, and a quote behind blanks. Invariant: no
//! bytes make it panic, and it holds one row of limited length.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::ops::Range;

use crate::source::read_full;

/// Longest row that is read, bytes: a quote that is never closed must not fill the memory.
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Reason why there is no next row.
#[derive(Debug)]
pub(super) enum Fault {
    Read(io::Error),
    Malformed(String),
}

/// One row.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The cells without their quotes, one behind the other.
    bytes: Vec<u8>,
    /// End of each cell in `bytes`.
    ends: Vec<usize>,
    /// Line in which it begins, from 1.
    pub(super) line: u64,
    /// The lines before it that have no byte.
    pub(super) blank_lines: Range<u64>,
}

impl Row {
    /// Returns the number of cells.
    pub(super) fn width(&self) -> usize {
        self.ends.len()
    }

    /// Returns a cell as it is written, without quotes.
    pub(super) fn cell(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// Returns all cells as text without blanks around them.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        let cells = (0..self.width()).filter_map(|index| self.cell(index));
        cells.map(|cell| String::from_utf8_lossy(cell).trim().to_owned())
    }

    fn end_cell(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

/// Place of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The beginning of a cell.
    Begin,
    /// Behind blanks with which a cell begins.
    Blanks,
    /// In a cell without quotes.
    Plain,
    /// In a quoted cell.
    Quoted,
    /// Behind a quote in a quoted cell: its end, or the first one of two.
    Quote,
    /// Behind blanks that follow a quoted cell.
    Behind,
}

/// A reader of rows.
pub(super) struct Records<R> {
    input: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    state: State,
}

/// Everything but the input.
struct State {
    row: Row,
    at: At,
    /// Line of the next byte.
    line: u64,
    /// Line in which the last quote was opened.
    quote_line: u64,
    /// True if the last byte was CR: an LF is then no line of its own.
    after_cr: bool,
    /// True if a byte of this row was read.
    begun: bool,
}

impl<R: Read> Records<R> {
    /// Begins to read.
    pub(super) fn new(mut input: R) -> Result<Self, Fault> {
        let mut front = vec![0; 3];
        let filled = read_full(&mut input, &mut front).map_err(Fault::Read)?;
        front.truncate(filled);
        if matches!(front[..], [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
            return Err(Fault::Malformed("it is UTF-16: convert it to UTF-8".to_owned()));
        }
        if front == [0xEF, 0xBB, 0xBF] {
            front.clear();
        }
        let row = Row::default();
        let state =
            State { row, at: At::Begin, line: 1, quote_line: 0, after_cr: false, begun: false };
        let input = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(front).chain(input));
        Ok(Self { input, state })
    }

    /// Returns the row that was read last.
    pub(super) fn row(&self) -> &Row {
        &self.state.row
    }

    /// Goes on to the next row that has a byte; returns false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, Fault> {
        self.state.begin();
        loop {
            let bytes = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Fault::Read(error)),
            };
            if bytes.is_empty() {
                return self.state.finish();
            }
            let (used, whole) = self.state.take(bytes).map_err(Fault::Malformed)?;
            self.input.consume(used);
            if whole {
                return Ok(true);
            }
        }
    }
}

impl State {
    fn begin(&mut self) {
        self.row.bytes.clear();
        self.row.ends.clear();
        (self.row.line, self.row.blank_lines) = (self.line, self.line..self.line);
        (self.at, self.begun) = (At::Begin, false);
    }

    /// Takes bytes up to the end of the row, or all; returns their number and whether it is whole.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), String> {
        let mut used = 0;
        while used < bytes.len() {
            let run = self.take_run(&bytes[used..]);
            used += run;
            self.check_length()?;
            if run > 0 {
                continue;
            }
            used += 1;
            if self.take_byte(bytes[used - 1])? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    /// Takes bytes of a cell that have no meaning of their own; returns their number.
    fn take_run(&mut self, bytes: &[u8]) -> usize {
        let ends = |byte: &u8| match self.at {
            At::Plain => matches!(byte, b',' | b'\n' | b'\r'),
            At::Quoted => matches!(byte, b'"' | b'\n' | b'\r'),
            _ => true,
        };
        let run = bytes.iter().position(ends).unwrap_or(bytes.len());
        self.row.bytes.extend_from_slice(&bytes[..run]);
        self.after_cr &= run == 0;
        run
    }

    /// Takes one byte; returns true if it ends the row.
    fn take_byte(&mut self, byte: u8) -> Result<bool, String> {
        let ends_crlf = self.after_cr && byte == b'\n';
        self.after_cr = byte == b'\r';
        let is_end = matches!(byte, b'\n' | b'\r');
        if is_end && !ends_crlf {
            self.line += 1;
        }
        match (self.at, byte) {
            (At::Quoted, b'"') => self.at = At::Quote,
            (At::Quoted, _) => self.row.bytes.push(byte),
            _ if is_end => return Ok(!ends_crlf && self.end_line()),
            (_, b',') => {
                self.row.end_cell();
                (self.at, self.begun) = (At::Begin, true);
            }
            (At::Begin, b'"') => {
                (self.at, self.begun, self.quote_line) = (At::Quoted, true, self.line);
            }
            (At::Quote, b'"') => {
                self.row.bytes.push(byte);
                self.at = At::Quoted;
            }
            (At::Quote | At::Behind, b' ' | b'\t') => self.at = At::Behind,
            (At::Quote | At::Behind, _) => {
                return Err(format!(
                    "line {}: text follows a quoted cell that began in line {}: a quote within a \
                     quoted cell is written twice",
                    self.line, self.quote_line
                ));
            }
            (At::Blanks, b'"') => {
                let why = "a quote follows blanks at the beginning of a cell: remove the blanks";
                return Err(format!("line {}: {why}", self.line));
            }
            (at, byte) => {
                let is_blank = matches!(byte, b' ' | b'\t') && at != At::Plain;
                self.at = if is_blank { At::Blanks } else { At::Plain };
                self.row.bytes.push(byte);
                self.begun = true;
            }
        }
        Ok(false)
    }

    /// Ends a line; returns false if it has no byte.
    fn end_line(&mut self) -> bool {
        if self.begun {
            self.row.end_cell();
        } else {
            (self.row.line, self.row.blank_lines.end) = (self.line, self.line);
        }
        self.begun
    }

    /// Ends the file; returns false if there is no row more.
    fn finish(&mut self) -> Result<bool, Fault> {
        if self.at == At::Quoted {
            return Err(Fault::Malformed(self.open_quote("")));
        }
        Ok(self.end_line())
    }

    fn open_quote(&self, within: &str) -> String {
        format!("a quote that opens in line {} is not closed{within}", self.quote_line)
    }

    fn check_length(&self) -> Result<(), String> {
        if self.row.bytes.len() + size_of_val(&self.row.ends[..]) <= ROW_BYTES_MAX {
            return Ok(());
        }
        let limit = ROW_BYTES_MAX >> 20;
        Err(match self.at {
            At::Quoted => self.open_quote(&format!(" within {limit} MiB")),
            _ => format!("line {} is longer than {limit} MiB", self.row.line),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Rows = Vec<(u64, Vec<String>)>;

    /// Returns all rows with their lines, read in pieces of this length.
    fn rows(text: &[u8], piece: usize) -> Result<Rows, String> {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let length = self.1.min(out.len());
                self.0.read(&mut out[..length])
            }
        }
        let words = |fault| match fault {
            Fault::Malformed(why) => why,
            Fault::Read(error) => error.to_string(),
        };
        let mut records = Records::new(Pieces(text, piece)).map_err(words)?;
        let mut rows = Vec::new();
        while records.advance().map_err(words)? {
            let row = records.row();
            let cells = (0..row.width()).map(|index| row.cell(index).unwrap());
            let cells = cells.map(|cell| String::from_utf8_lossy(cell).into_owned());
            rows.push((row.line, cells.collect()));
        }
        Ok(rows)
    }

    fn expect(text: &str, expected: &[(u64, &[&str])]) {
        let expected: Rows = expected
            .iter()
            .map(|(line, cells)| (*line, cells.iter().map(|cell| (*cell).to_owned()).collect()))
            .collect();
        assert_eq!(rows(text.as_bytes(), 1000).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn rows_have_their_lines_and_cells() {
        expect("", &[]);
        expect("\n\n", &[]);
        expect("\u{feff}1,2\n3", &[(1, &["1", "2"]), (2, &["3"])]);
        expect("1\r2\r\n3\n\r\n4", &[(1, &["1"]), (2, &["2"]), (3, &["3"]), (5, &["4"])]);
        expect(",\n\"\"\n", &[(1, &["", ""]), (2, &[""])]);
        expect("\"a\"\"b,\r\nc\" ,2\r\n3,4", &[(1, &["a\"b,\r\nc", "2"]), (3, &["3", "4"])]);
        expect("5\" disk, 1 \n", &[(1, &["5\" disk", " 1 "])]);
    }

    #[test]
    fn what_readers_take_differently_names_its_line() {
        for (text, why) in [
            ("1\n2\n\"3\n4\n", "a quote that opens in line 3 is not closed"),
            ("1\n\"2\n3\n\"4\n5\n", "line 4: text follows a quoted cell that began in line 2"),
            ("a, \"b, c\"\n", "line 1: a quote follows blanks"),
            ("\"1\" \"2\"\n", "line 1: text follows a quoted cell"),
        ] {
            let error = rows(text.as_bytes(), 1000).unwrap_err();
            assert!(error.starts_with(why), "{text:?}: {error}");
        }
        for mark in [[0xFF, 0xFE], [0xFE, 0xFF]] {
            assert!(rows(&mark, 1).unwrap_err().contains("UTF-16"));
        }
        let endless = [b"1\n\"".to_vec(), vec![b'x'; ROW_BYTES_MAX + 1]].concat();
        let error = rows(&endless, 1 << 20).unwrap_err();
        assert_eq!(error, "a quote that opens in line 2 is not closed within 16 MiB");
        let error = rows(&vec![b','; ROW_BYTES_MAX], 1 << 20).err();
        assert_eq!(error.as_deref(), Some("line 1 is longer than 16 MiB"));
    }

    proptest! {
        /// The crate `csv` reads every file that this reader does not refuse, to the same cells.
        #[test]
        fn rows_are_those_of_another_reader(
            text in "[1a,\"\n\r \u{e9}]{0,40}", piece in 1usize..9,
        ) {
            let found = rows(text.as_bytes(), piece);
            prop_assert_eq!(&found, &rows(text.as_bytes(), 1000), "pieces change nothing");
            let mut builder = csv::ReaderBuilder::new();
            let mut reader =
                builder.has_headers(false).flexible(true).from_reader(text.as_bytes());
            let other: Vec<Vec<String>> = reader
                .records()
                .map(|record| record.unwrap().iter().map(str::to_owned).collect())
                .collect();
            if let Ok(found) = found {
                let cells: Vec<Vec<String>> = found.into_iter().map(|(_, cells)| cells).collect();
                let trimmed = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
                    let trim = |row: &Vec<String>| row.iter().map(|c| c.trim().into()).collect();
                    rows.iter().map(trim).collect()
                };
                prop_assert_eq!(trimmed(&cells), trimmed(&other));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _either = rows(&bytes, 7);
        }
    }
}
