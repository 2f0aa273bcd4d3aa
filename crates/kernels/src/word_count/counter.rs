//! [`Counts`]: lines and words of a piece of a text, and how it begins and ends.

/// Lines and words of a piece of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of newlines.
    pub lines: u64,
    /// Number of words, with those that begin before the piece or end after it.
    pub words: u64,
    /// True if the first byte belongs to a word.
    begins_in_word: bool,
    /// True if the last byte belongs to a word.
    ends_in_word: bool,
    /// True for no bytes.
    is_some: bool,
}

/// Most lines, and most words, that a result has room for.
const MOST: u64 = (1 << 31) - 1;

impl Counts {
    /// Counts a piece.
    #[must_use]
    pub fn of(piece: &[u8]) -> Self {
        let (Some(&first), Some(&last)) = (piece.first(), piece.last()) else {
            return Self::default();
        };
        let begins = |(before, byte): (&u8, &u8)| u8::from(is_space(*before) & !is_space(*byte));
        // Sums of bytes are wide vectors, and 255 of them have room in a byte.
        let pairs = piece.chunks(255).zip(piece[1..].chunks(255));
        let inner = pairs
            .map(|(before, bytes)| u64::from(before.iter().zip(bytes).map(begins).sum::<u8>()));
        let words = inner.sum::<u64>() + u64::from(!is_space(first));
        Self {
            lines: memchr::memchr_iter(b'\n', piece).count() as u64,
            words,
            begins_in_word: !is_space(first),
            ends_in_word: !is_space(last),
            is_some: true,
        }
    }

    /// Returns the counts of a piece and of the next one together.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        match (self.is_some, next.is_some) {
            (_, false) => self,
            (false, true) => next,
            (true, true) => Self {
                lines: self.lines.saturating_add(next.lines),
                // A word over the cut was counted twice.
                words: (self.words.saturating_add(next.words))
                    .saturating_sub(u64::from(self.ends_in_word && next.begins_in_word)),
                begins_in_word: self.begins_in_word,
                ends_in_word: next.ends_in_word,
                is_some: true,
            },
        }
    }

    /// Returns the counts as the result of an execution: from the lowest bit on lines and words in
    /// 31 bits each, whether the piece begins in a word, and whether it ends in one. `None` without
    /// room. No piece and one of white space have the same result, and mean the same to others.
    #[must_use]
    pub fn to_result(self) -> Option<u64> {
        let bits = u64::from(self.begins_in_word) << 62 | u64::from(self.ends_in_word) << 63;
        let has_room = self.lines <= MOST && self.words <= MOST;
        has_room.then_some(self.lines | self.words << 31 | bits)
    }

    /// Returns the counts of a result.
    #[must_use]
    pub fn from_result(result: u64) -> Self {
        Self {
            lines: result & MOST,
            words: result >> 31 & MOST,
            begins_in_word: result >> 62 & 1 == 1,
            ends_in_word: result >> 63 == 1,
            is_some: true,
        }
    }
}

/// Returns true for white space, as in the C locale.
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_pieces_are_those_of_the_whole() {
        let text = b"  one two\nthree\t\x0B\x0Cfour\r\n\n\x00 \xFF\xC3five six";
        let whole = Counts::of(text);
        assert_eq!((whole.lines, whole.words), (3, 7));
        for cut in 0..=text.len() {
            let (one, two) = text.split_at(cut);
            let parts = [one, two].map(|part| Counts::of(part).to_result().unwrap());
            let [one, two] = parts.map(Counts::from_result);
            let joined = one.then(two);
            // A result does not say that a piece is empty, so this is tried with counts, too.
            if cut > 0 && cut < text.len() {
                assert_eq!(joined, whole, "at {cut}");
            }
        }
        assert_eq!(Counts::default().then(whole).then(Counts::of(b"")), whole);
    }

    #[test]
    fn results_have_room_or_there_is_none() {
        let counts = |lines, words| Counts { lines, words, ..Counts::of(b"x") };
        assert_eq!(Counts::from_result(counts(MOST, 5).to_result().unwrap()), counts(MOST, 5));
        assert_eq!(counts(MOST + 1, 0).to_result(), None);
        assert_eq!(counts(0, MOST + 1).to_result(), None);
    }
}
