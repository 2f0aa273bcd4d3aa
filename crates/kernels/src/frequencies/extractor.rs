//! [`Extractor`]: the items of lines that come in any parts.

use super::Item;
use crate::word_count::is_space;

/// Finds items in lines. Parts of the lines may end anywhere; an item counts once the byte behind
/// it has come, and the last line of a text must end with a newline.
#[derive(Debug)]
pub struct Extractor {
    item: Item,
    /// Beginning of an item whose end has not come.
    begun: Vec<u8>,
    /// Number of the fields or words of the line that have ended.
    ended: u32,
}

impl Extractor {
    /// Makes an extractor at the beginning of a line.
    #[must_use]
    pub fn new(item: Item) -> Self {
        Self { item, begun: Vec::new(), ended: 0 }
    }

    /// Continues with bytes of the lines; calls `each` for the items that end in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        loop {
            let Some(end) = self.end_in(bytes) else {
                if self.is_wanted() {
                    self.begun.extend_from_slice(bytes);
                } else if self.begun.is_empty() && !bytes.is_empty() {
                    // It only matters that something has begun.
                    self.begun.push(bytes[0]);
                }
                return;
            };
            let (part, rest) = bytes.split_at(end);
            let (by, rest) = rest.split_first().expect("it ends with a byte");
            let is_one = self.keeps_empty() || !self.begun.is_empty() || !part.is_empty();
            if is_one && self.is_wanted() {
                match self.begun.is_empty() {
                    true => each(part),
                    false => {
                        self.begun.extend_from_slice(part);
                        each(&self.begun);
                    }
                }
            }
            self.begun.clear();
            self.ended = match (*by == b'\n', is_one) {
                (true, _) => 0,
                (false, true) => self.ended.saturating_add(1),
                (false, false) => self.ended,
            };
            bytes = rest;
        }
    }

    /// Returns the place of the byte that ends an item.
    fn end_in(&self, bytes: &[u8]) -> Option<usize> {
        match self.item {
            Item::Line => memchr::memchr(b'\n', bytes),
            Item::Word | Item::WordNumber(_) => bytes.iter().position(|byte| is_space(*byte)),
            Item::Field { separator, .. } => memchr::memchr2(separator, b'\n', bytes),
        }
    }

    /// Returns true if an item may be empty.
    fn keeps_empty(&self) -> bool {
        matches!(self.item, Item::Line | Item::Field { .. })
    }

    /// Returns true if the next item is counted.
    fn is_wanted(&self) -> bool {
        match self.item {
            Item::Line | Item::Word => true,
            Item::WordNumber(number) | Item::Field { number, .. } => self.ended == number - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(item: Item, text: &[u8], cut: usize) -> Vec<String> {
        let (mut extractor, mut found) = (Extractor::new(item), Vec::new());
        for part in text.chunks(cut) {
            extractor.feed(part, |item| found.push(String::from_utf8(item.to_vec()).unwrap()));
        }
        found
    }

    #[test]
    fn items_are_those_of_awk_and_cut_wherever_parts_end() {
        let text = b"one,two  three\n\n ,x\tfour\n,\nlast\n";
        for cut in 1..=text.len() {
            let of = |item| items(item, text, cut);
            assert_eq!(of(Item::Line), ["one,two  three", "", " ,x\tfour", ",", "last"]);
            assert_eq!(of(Item::Word), ["one,two", "three", ",x", "four", ",", "last"]);
            assert_eq!(of(Item::WordNumber(1)), ["one,two", ",x", ",", "last"]);
            assert_eq!(of(Item::WordNumber(2)), ["three", "four"]);
            assert!(of(Item::WordNumber(3)).is_empty());
            let field = |number| of(Item::Field { number, separator: b',' });
            assert_eq!(field(1), ["one", "", " ", "", "last"]);
            assert_eq!(field(2), ["two  three", "x\tfour", ""]);
            assert!(field(3).is_empty());
        }
    }
}
