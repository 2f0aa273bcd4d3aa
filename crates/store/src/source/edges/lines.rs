//! [`Lines`]: the lines of a text, with their numbers for messages.

use std::io::{self, BufRead};

use crate::source::Error;

/// Longest line that is read, bytes: a file that is no text must not fill the memory.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Reader of lines, which end in LF, CR LF or CR. Bytes that are no UTF-8 are replaced.
pub(super) struct Lines<'a, R> {
    name: &'a str,
    reader: R,
    /// Bytes up to an LF, and the beginning of those that were not returned.
    bytes: Vec<u8>,
    rest: usize,
    /// Number of the line that was returned last, from 1.
    number: u64,
    /// True if the next call returns that line again.
    again: bool,
    line: String,
}

impl<'a, R> Lines<'a, R> {
    pub(super) fn new(name: &'a str, reader: R) -> Self {
        let (bytes, line) = (Vec::new(), String::new());
        Self { name, reader, bytes, rest: 0, number: 0, again: false, line }
    }

    /// Returns the line returned last once more.
    pub(super) fn back(&mut self) {
        self.again = true;
    }

    /// Returns the error that the line returned last is wrong.
    pub(super) fn wrong(&self, why: &str) -> Error {
        self.wrong_file(&format!(", line {}: {why}", self.number.max(1)))
    }

    /// Returns the error that the file is wrong: what follows its name.
    pub(super) fn wrong_file(&self, why: &str) -> Error {
        Error::Edges { name: self.name.to_owned(), why: why.to_owned() }
    }
}

impl<R: BufRead> Lines<'_, R> {
    /// Returns the next line without blanks around it.
    pub(super) fn next(&mut self) -> Result<Option<&str>, Error> {
        if !std::mem::take(&mut self.again) && !self.advance()? {
            return Ok(None);
        }
        Ok(Some(self.line.trim()))
    }

    fn advance(&mut self) -> Result<bool, Error> {
        if self.rest == self.bytes.len() && !self.fill()? {
            return Ok(false);
        }
        let rest = &self.bytes[self.rest..];
        let end = rest.iter().position(|byte| *byte == b'\r').unwrap_or(rest.len());
        self.line.clear();
        self.line.push_str(&String::from_utf8_lossy(&rest[..end]));
        self.rest += (end + 1).min(rest.len());
        self.number += 1;
        Ok(true)
    }

    /// Reads the bytes up to the next LF.
    fn fill(&mut self) -> Result<bool, Error> {
        self.rest = 0;
        self.bytes.clear();
        let mut limited = io::Read::take(&mut self.reader, LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.bytes);
        read.map_err(|source| Error::Read { name: self.name.to_owned(), source })?;
        if self.bytes.len() as u64 == LINE_BYTES_MAX {
            let why = format!(" has a line of more than {} MiB", LINE_BYTES_MAX >> 20);
            return Err(self.wrong_file(&why));
        }
        if self.number == 0 {
            if matches!(self.bytes[..], [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
                return Err(self.wrong_file(" is UTF-16: convert it to UTF-8"));
            }
            if self.bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
                self.bytes.drain(..3);
            }
        }
        // LF and CR LF become the CR that ends a line.
        if self.bytes.pop_if(|byte| *byte == b'\n').is_some() && !self.bytes.ends_with(b"\r") {
            self.bytes.push(b'\r');
        }
        Ok(!self.bytes.is_empty())
    }
}
