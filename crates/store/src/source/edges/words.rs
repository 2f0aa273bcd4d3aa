//! Words of a line, and the numbers of nodes.

/// Returns the first word of a line, and the rest. Blanks and commas lie between words.
pub(super) fn first_word(text: &str) -> (&str, &str) {
    let is_gap = |c: char| c.is_whitespace() || c == ',';
    let text = text.trim_start_matches(is_gap);
    let end = text.find(is_gap).unwrap_or(text.len());
    (&text[..end], text[end..].trim_matches(is_gap))
}

/// Reads a node's number as it is written.
pub(super) fn node(word: &str) -> Result<u32, String> {
    let number = word.parse::<u32>().ok().filter(|node| *node != u32::MAX);
    number.ok_or_else(|| format!("{word:?} is no node number from 0 to 4294967294"))
}

/// The words of a line.
pub(super) struct Words<'a>(pub(super) &'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = first_word(self.0);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}
