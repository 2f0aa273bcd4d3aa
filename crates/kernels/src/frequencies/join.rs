//! [`Join`]: the answers to the pieces of a text, put together in order.

use std::collections::HashMap;

use super::answer::{self, Unreadable};
use super::{Extractor, Item};
use crate::text_piece::JOINED_LINE_BYTES_MAX;

/// Memory that an item takes besides its bytes, about: entry, allocation, and room of the table.
const ITEM_OVERHEAD_BYTES: usize = 64;

/// Why answers cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjoined {
    /// One has another form.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A line is too long.
    #[error("a line has more than {JOINED_LINE_BYTES_MAX} bytes")]
    Long,
    /// The different items take more memory than they may.
    #[error("the different items take more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
}

/// The frequencies of whole texts.
#[derive(Debug)]
pub struct Join {
    extractor: Extractor,
    /// Beginning of a line whose end has not come.
    line: Vec<u8>,
    counts: HashMap<Box<[u8]>, u64>,
    memory_bytes: usize,
    memory_bytes_max: usize,
}

impl Join {
    /// Begins a text. The different items may take so much memory, about.
    #[must_use]
    pub fn new(item: Item, memory_bytes_max: usize) -> Self {
        let (extractor, counts) = (Extractor::new(item), HashMap::new());
        Self { extractor, line: Vec::new(), counts, memory_bytes: 0, memory_bytes_max }
    }

    /// Adds the answer to the next piece.
    ///
    /// # Errors
    /// [`Unjoined`].
    pub fn add(&mut self, answer: &[u8]) -> Result<(), Unjoined> {
        let (head, rest) = match answer::head(answer) {
            Some((head, rest)) => (head, Some(rest)),
            None => (answer, None),
        };
        if self.line.len() + head.len() > JOINED_LINE_BYTES_MAX {
            return Err(Unjoined::Long);
        }
        self.line.extend_from_slice(head);
        let Some(rest) = rest else { return Ok(()) };
        self.end_line();
        let tail = answer::items(rest, |item, count| self.count(item, count))?;
        self.line.extend_from_slice(tail);
        Ok(())
    }

    /// Ends a text, whose last line may have no newline; another one may follow.
    ///
    /// # Errors
    /// [`Unjoined::Memory`].
    pub fn end(&mut self) -> Result<(), Unjoined> {
        if !self.line.is_empty() {
            self.line.push(b'\n');
            self.end_line();
        }
        self.check()
    }

    /// Adds the counts of other texts.
    ///
    /// # Errors
    /// [`Unjoined::Memory`].
    pub fn merge(&mut self, other: Self) -> Result<(), Unjoined> {
        other.counts.into_iter().try_for_each(|(item, count)| self.count(&item, count))
    }

    /// Returns the items with their counts, in no order.
    #[must_use]
    pub fn into_counts(self) -> Vec<(Box<[u8]>, u64)> {
        self.counts.into_iter().collect()
    }

    /// Counts the items of the line that has ended.
    fn end_line(&mut self) {
        let Self { extractor, line, counts, memory_bytes, .. } = self;
        extractor.feed(line, |item| add(counts, memory_bytes, item, 1));
        line.clear();
    }

    fn count(&mut self, item: &[u8], count: u64) -> Result<(), Unjoined> {
        add(&mut self.counts, &mut self.memory_bytes, item, count);
        self.check()
    }

    fn check(&self) -> Result<(), Unjoined> {
        match self.memory_bytes > self.memory_bytes_max {
            true => Err(Unjoined::Memory(self.memory_bytes_max)),
            false => Ok(()),
        }
    }
}

fn add(counts: &mut HashMap<Box<[u8]>, u64>, memory_bytes: &mut usize, item: &[u8], count: u64) {
    match counts.get_mut(item) {
        Some(before) => *before = before.saturating_add(count),
        None => {
            *memory_bytes += item.len() + ITEM_OVERHEAD_BYTES;
            counts.insert(item.into(), count);
        }
    }
}
