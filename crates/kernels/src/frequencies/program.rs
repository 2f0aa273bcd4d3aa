//! The program of frequencies: stream 0 holds a piece of a text. It writes the answer
//! ([`super::answer`]); the result is the number of items in it, by their counts.

use indexmap::IndexMap;

use super::{Extractor, Item, answer};
use crate::program::{Failure, Inputs, Output, Program, Step};
use crate::text_piece::{hand_back, take_line};

/// Bytes whose items are counted in one step: about a millisecond if each has one byte.
const STEP_BYTES: usize = 32 << 10;
/// Different items, and their bytes, at which those that were counted are written.
pub(super) const ITEMS_MAX: usize = 1 << 16;
pub(super) const ITEM_BYTES_MAX: usize = 4 << 20;
/// Items that are written in one step.
const STEP_ITEMS: usize = 1 << 12;

struct Counting {
    extractor: Extractor,
    /// True once the first newline has come.
    in_lines: bool,
    /// Beginning of a line whose end has not come, or a long line.
    line: Vec<u8>,
    /// Bytes of the long line that were counted, if there is one.
    long: Option<usize>,
    table: Table,
    /// Number of items of the table that were written, if it is being written.
    writing: Option<usize>,
    counted: u64,
}

/// Items that were counted, in the order in which they came.
#[derive(Default)]
struct Table {
    counts: IndexMap<Box<[u8]>, u64>,
    bytes: usize,
}

impl Table {
    fn add(&mut self, item: &[u8]) {
        match self.counts.get_mut(item) {
            Some(count) => *count += 1,
            None => {
                self.bytes += item.len();
                self.counts.insert(item.into(), 1);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.counts.len() >= ITEMS_MAX || self.bytes >= ITEM_BYTES_MAX
    }
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let item = Item::parse(parameters).map_err(Failure::parameters)?;
    Ok(Box::new(Counting {
        extractor: Extractor::new(item),
        in_lines: false,
        line: Vec::new(),
        long: None,
        table: Table::default(),
        writing: None,
        counted: 0,
    }))
}

impl Program for Counting {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        if let Some(written) = self.writing {
            self.write(written, output);
            return Ok(Step::More);
        }
        if let Some(counted) = self.long {
            self.long(counted);
            return Ok(Step::More);
        }
        let shown = inputs.peek(0);
        let shown = &shown[..shown.len().min(STEP_BYTES)];
        let used = match self.in_lines {
            false => self.head(shown, output),
            true => self.lines(shown)?,
        };
        output.count_work(used as u64);
        inputs.consume(0, used);
        if !inputs.is_over(0) {
            return Ok(Step::after(inputs, 0));
        }
        if self.long.is_some() {
            return Ok(Step::More);
        }
        if !self.table.counts.is_empty() {
            self.writing = Some(0);
            return Ok(Step::More);
        }
        if self.in_lines {
            output.append(&[0]);
            output.append(&self.line);
        }
        Ok(Step::Done { result: self.counted })
    }
}

impl Counting {
    /// Hands back the bytes up to the first newline; returns their number.
    fn head(&mut self, shown: &[u8], output: &mut Output) -> usize {
        let (used, is_over) = hand_back(shown, output);
        self.in_lines = is_over;
        used
    }

    /// Counts the whole lines at the beginning of `shown`, or takes more of one line; returns the
    /// number of bytes used.
    fn lines(&mut self, shown: &[u8]) -> Result<usize, Failure> {
        if let (true, Some(newline)) = (self.line.is_empty(), memchr::memrchr(b'\n', shown)) {
            self.count(&shown[..=newline]);
            return Ok(newline + 1);
        }
        let (used, is_over) = take_line(&mut self.line, shown)?;
        if is_over {
            self.long = Some(0);
        }
        Ok(used)
    }

    /// Counts the next part of a line.
    fn long(&mut self, counted: usize) {
        let line = std::mem::take(&mut self.line);
        let end = line.len().min(counted + STEP_BYTES);
        self.count(&line[counted..end]);
        let is_over = end == line.len();
        self.long = (!is_over).then_some(end);
        self.line = line;
        if is_over {
            // Its memory serves the next one.
            self.line.clear();
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        let Self { extractor, table, counted, .. } = self;
        extractor.feed(bytes, |item| {
            table.add(item);
            *counted += 1;
        });
        if self.table.is_full() {
            self.writing = Some(0);
        }
    }

    /// Writes the next items, and begins a new table behind the last one.
    fn write(&mut self, written: usize, output: &mut Output) {
        let mut bytes = Vec::new();
        let end = self.table.counts.len().min(written + STEP_ITEMS);
        for (item, count) in &self.table.counts[written..end] {
            answer::append(&mut bytes, item, *count);
        }
        output.append(&bytes);
        self.writing = (end < self.table.counts.len()).then_some(end);
        if self.writing.is_none() {
            self.table = Table::default();
        }
    }
}
