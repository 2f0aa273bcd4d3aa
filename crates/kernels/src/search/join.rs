//! [`Join`]: the answers to the pieces of a text, put together in order.

use std::sync::Arc;

use super::matcher::Matcher;
use super::piece::{Piece, Run, Unreadable};
use super::{Parameters, Refused, Wants, known};
use crate::text_piece::JOINED_LINE_BYTES_MAX;

/// Selected lines that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Number of the first, from 1; only if lines are numbered.
    pub number: u64,
    /// The lines, each with a newline: also the last one of a text, which may have none there.
    pub lines: &'a [u8],
}

/// Why answers cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum Unjoined<E> {
    /// One has another form.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A line is too long.
    #[error("a line has more than {JOINED_LINE_BYTES_MAX} bytes")]
    Long,
    /// The caller's own reason.
    #[error("{0}")]
    Other(E),
}

/// The search of a whole text.
pub struct Join {
    matcher: Arc<Matcher>,
    invert: bool,
    wants: Wants,
    /// Beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Number of lines before it, if lines are numbered.
    lines: u64,
    selected: u64,
}

impl Join {
    /// Begins a text.
    ///
    /// # Errors
    /// [`Refused`] if the pattern cannot be searched for.
    pub fn new(parameters: &Parameters) -> Result<Self, Refused> {
        let matcher = known::matcher(&parameters.pattern, parameters.ignore_case)?;
        let Parameters { invert, wants, .. } = *parameters;
        Ok(Self { matcher, invert, wants, line: Vec::new(), lines: 0, selected: 0 })
    }

    /// Returns the number of selected lines so far; if only the first is wanted, 0 or more.
    #[must_use]
    pub fn selected(&self) -> u64 {
        self.selected
    }

    /// Returns the pattern, compiled.
    #[must_use]
    pub fn matcher(&self) -> &Arc<Matcher> {
        &self.matcher
    }

    /// Adds the answer to the next piece; calls `each` for selected lines if lines are wanted.
    ///
    /// # Errors
    /// [`Unjoined`].
    pub fn add<E>(
        &mut self,
        (result, answer): (u64, &[u8]),
        mut each: impl FnMut(Found<'_>) -> Result<(), E>,
    ) -> Result<(), Unjoined<E>> {
        if self.wants == Wants::First && result > 0 {
            // The answer ends where it was found.
            self.selected += result;
            return Ok(());
        }
        let piece = Piece::new(answer);
        if self.line.len() + piece.head.len() > JOINED_LINE_BYTES_MAX {
            return Err(Unjoined::Long);
        }
        self.line.extend_from_slice(piece.head);
        if !self.line.ends_with(b"\n") {
            return Ok(());
        }
        self.end_line(&mut each)?;
        let lists = matches!(self.wants, Wants::Lines | Wants::Numbered);
        if !lists {
            self.selected += result;
        }
        let (mut before, mut selected) = (self.lines, 0);
        let end = piece.runs(|Run { skipped, count, lines }| {
            let number = before.saturating_add(skipped).saturating_add(1);
            before = (number - 1).saturating_add(count);
            selected += count;
            each(Found { number, lines }).map_err(Unjoined::Other)
        })?;
        let (skipped, rest) = end.ok_or(Unreadable)?;
        self.lines = before.saturating_add(skipped);
        self.selected += selected;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the text.
    ///
    /// # Errors
    /// [`Unjoined::Other`].
    pub fn end<E>(
        &mut self,
        mut each: impl FnMut(Found<'_>) -> Result<(), E>,
    ) -> Result<(), Unjoined<E>> {
        if self.line.is_empty() {
            return Ok(());
        }
        self.line.push(b'\n');
        self.end_line(&mut each)
    }

    /// Searches the line that has ended.
    fn end_line<E>(
        &mut self,
        each: &mut impl FnMut(Found<'_>) -> Result<(), E>,
    ) -> Result<(), Unjoined<E>> {
        self.lines += 1;
        if self.matcher.matches(&self.line) != self.invert {
            self.selected += 1;
            if matches!(self.wants, Wants::Lines | Wants::Numbered) {
                let found = Found { number: self.lines, lines: &self.line };
                each(found).map_err(Unjoined::Other)?;
            }
        }
        self.line.clear();
        Ok(())
    }
}
