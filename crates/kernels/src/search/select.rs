//! [`Selected`]: the lines of a buffer that a search selects.

use std::ops::Range;

use super::matcher::Matcher;

/// Lines that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// Their bytes.
    pub(super) bytes: Range<usize>,
    /// Their number.
    pub(super) count: u64,
}

/// The runs of selected lines in a buffer of whole lines, in order; neighbours may be apart or
/// not.
pub(super) struct Selected<'a> {
    matcher: &'a Matcher,
    lines: &'a [u8],
    invert: bool,
    at: usize,
}

impl<'a> Selected<'a> {
    /// Makes a search of `lines`, which ends with a newline or is empty.
    pub(super) fn new(matcher: &'a Matcher, lines: &'a [u8], invert: bool) -> Self {
        Self { matcher, lines, invert, at: 0 }
    }

    /// Returns the next line with a match.
    fn next_match(&mut self) -> Option<Range<usize>> {
        let found = self.matcher.first(self.lines, self.at)?;
        let start = memchr::memrchr(b'\n', &self.lines[self.at..found]);
        let start = start.map_or(self.at, |newline| self.at + newline + 1);
        let end = memchr::memchr(b'\n', &self.lines[found..]).expect("the last line ends");
        Some(start..found + end + 1)
    }
}

/// Returns the number of newlines.
pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

impl Iterator for Selected<'_> {
    type Item = Lines;

    fn next(&mut self) -> Option<Lines> {
        if !self.invert {
            let bytes = self.next_match()?;
            self.at = bytes.end;
            return Some(Lines { bytes, count: 1 });
        }
        while self.at < self.lines.len() {
            let whole = self.lines.len();
            let (end, next) =
                self.next_match().map_or((whole, whole), |line| (line.start, line.end));
            let bytes = std::mem::replace(&mut self.at, next)..end;
            if !bytes.is_empty() {
                let count = newlines(&self.lines[bytes.clone()]);
                return Some(Lines { bytes, count });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(pattern: &str, lines: &str, invert: bool) -> Vec<(String, u64)> {
        let matcher = Matcher::new(pattern, false).unwrap();
        let text = |run: Lines| (lines[run.bytes].to_owned(), run.count);
        Selected::new(&matcher, lines.as_bytes(), invert).map(text).collect()
    }

    fn expected(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
        lines.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
    }

    #[test]
    fn lines_with_a_match_come_one_by_one_and_the_others_in_runs() {
        let lines = "ab\n\nb\nxx\nyy\na\n";
        assert_eq!(selected("a", lines, false), expected(&[("ab\n", 1), ("a\n", 1)]));
        assert_eq!(selected("a", lines, true), expected(&[("\nb\nxx\nyy\n", 4)]));
        assert_eq!(selected("b", lines, true), expected(&[("\n", 1), ("xx\nyy\na\n", 3)]));
        assert_eq!(selected("^$", lines, false), expected(&[("\n", 1)]));
        assert_eq!(selected("", "\n\n", false), expected(&[("\n", 1), ("\n", 1)]));
        assert_eq!(selected("", "a\n", true), expected(&[]));
        assert_eq!(selected("$", "a\n", false), expected(&[("a\n", 1)]));
        assert_eq!(selected("a", "", true), expected(&[]));
        assert_eq!(selected(r"b\s*x", lines, false), expected(&[]), "no match over two lines");
    }
}
