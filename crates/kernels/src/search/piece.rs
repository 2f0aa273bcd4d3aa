//! [`Piece`]: the form of the answer to a piece of a text.
//!
//! The bytes up to the first newline, with it. If there is none, that is all. Then runs of selected
//! lines: the number of other lines before them (0 unless lines are numbered), their own number,
//! both in base 128 with the lowest digits first and bit 7 set in all but the last byte, and their
//! bytes. A run of no lines is the last one; the bytes after the last newline follow. The first
//! line of the piece is in no run. Invariant: the form says where everything ends.

use super::select::newlines;
use crate::varint;

/// Selected lines that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// Number of lines before them that are not selected, since the run before.
    pub skipped: u64,
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub lines: &'a [u8],
}

/// The answer to a piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The bytes up to the first newline, with it; all of the piece if it has none.
    pub head: &'a [u8],
    /// Runs, and what follows them; `None` if the piece has no newline.
    runs: Option<&'a [u8]>,
}

impl<'a> Piece<'a> {
    /// Reads an answer.
    #[must_use]
    pub fn new(answer: &'a [u8]) -> Self {
        match memchr::memchr(b'\n', answer) {
            Some(newline) => {
                let (head, runs) = answer.split_at(newline + 1);
                Self { head, runs: Some(runs) }
            }
            None => Self { head: answer, runs: None },
        }
    }

    /// Calls `each` for the runs in order. Returns the number of lines after the last one that are
    /// not selected, and the bytes after the last newline; `None` if the piece has no newline.
    ///
    /// # Errors
    /// `each`'s, or `Unreadable` if the answer has another form.
    pub fn runs<E: From<Unreadable>>(
        &self,
        mut each: impl FnMut(Run<'a>) -> Result<(), E>,
    ) -> Result<Option<(u64, &'a [u8])>, E> {
        let Some(mut rest) = self.runs else { return Ok(None) };
        loop {
            let skipped = varint::take(&mut rest).ok_or(Unreadable)?;
            let count = varint::take(&mut rest).ok_or(Unreadable)?;
            if count == 0 {
                return Ok(Some((skipped, rest)));
            }
            let end = end_of_lines(rest, count).ok_or(Unreadable)?;
            let (lines, behind) = rest.split_at(end);
            rest = behind;
            each(Run { skipped, count, lines })?;
        }
    }
}

/// An answer that has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a drive's answer to a search has another form")]
pub struct Unreadable;

/// Returns the number of bytes of the first `count` lines.
fn end_of_lines(bytes: &[u8], count: u64) -> Option<usize> {
    let nth = usize::try_from(count).ok()?.checked_sub(1)?;
    memchr::memchr_iter(b'\n', bytes).nth(nth).map(|newline| newline + 1)
}

/// Writes what is between runs.
pub(super) struct Writer {
    /// True if the lines that are not selected are counted.
    numbered: bool,
    /// Lines before the next run that are not selected.
    skipped: u64,
}

impl Writer {
    /// Makes a writer before the first run.
    pub(super) fn new(numbered: bool) -> Self {
        Self { numbered, skipped: 0 }
    }

    /// Passes over lines that are not selected.
    pub(super) fn skip(&mut self, lines: &[u8]) {
        if self.numbered {
            self.skipped += newlines(lines);
        }
    }

    /// Returns what precedes a run of `count` lines; 0 ends the runs.
    pub(super) fn head(&mut self, count: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(4);
        varint::append(&mut head, std::mem::take(&mut self.skipped));
        varint::append(&mut head, count);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read<'a> = (Vec<Run<'a>>, Option<(u64, &'a [u8])>);

    fn read(answer: &[u8]) -> Result<Read<'_>, Unreadable> {
        let mut runs = Vec::new();
        let end = Piece::new(answer).runs(|run| {
            runs.push(run);
            Ok::<_, Unreadable>(())
        })?;
        Ok((runs, end))
    }

    #[test]
    fn runs_are_read_as_they_were_written() {
        let mut writer = Writer::new(true);
        let mut answer = b"head\n".to_vec();
        writer.skip(&[b'\n'; 300]);
        answer.extend(writer.head(2));
        answer.extend(b"one\n\n");
        answer.extend(writer.head(1));
        answer.extend(b"three\n");
        writer.skip(b"x\n");
        answer.extend(writer.head(0));
        answer.extend(b"tail");
        assert_eq!(answer[5..8], [0xAC, 2, 2]);
        let runs = vec![
            Run { skipped: 300, count: 2, lines: b"one\n\n" },
            Run { skipped: 0, count: 1, lines: b"three\n" },
        ];
        assert_eq!(read(&answer), Ok((runs, Some((1, &b"tail"[..])))));
        assert_eq!(Piece::new(&answer).head, b"head\n");
        assert_eq!(read(b"no newline"), Ok((vec![], None)));
    }

    #[test]
    fn other_bytes_are_refused() {
        for wrong in [&b"\n"[..], b"\n\0", b"\n\x80", b"\n\0\x02one\n", b"\n\0\x01one"] {
            assert_eq!(read(wrong), Err(Unreadable), "{wrong:?}");
        }
        let long = [&b"\n"[..], &[0xFF; 10], &[0, 0]].concat();
        assert_eq!(read(&long), Err(Unreadable));
        let mut greatest = b"\n".to_vec();
        varint::append(&mut greatest, u64::MAX);
        greatest.push(0);
        assert_eq!(read(&greatest), Ok((vec![], Some((u64::MAX, &b""[..])))));
        let many = [&greatest[..1], &[0], &greatest[1..11], b"x\n"].concat();
        assert_eq!(read(&many), Err(Unreadable));
    }
}
