//! The program of range: stream 0 holds the entries of a list, without its count. Each entry is the
//! length of a key (u16, little-endian), the key, and zeros up to a multiple of 4 bytes.

use super::{KEY_BYTES_MAX, ListKey, Parameters};
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Ranging {
    parameters: Parameters,
    /// Last key read.
    last: Option<ListKey>,
    /// Number of keys read.
    read: u64,
    /// Number of keys in the range.
    found: u64,
    /// Beginning of an entry whose end has not come.
    cut: Vec<u8>,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    Ok(Box::new(Ranging { parameters, last: None, read: 0, found: 0, cut: Vec::new() }))
}

impl Program for Ranging {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        let shown = inputs.peek(0);
        let shown = &shown[..shown.len().min(STEP_BYTES)];
        let joined;
        let bytes = match self.cut.is_empty() {
            true => shown,
            false => {
                joined = [&self.cut[..], shown].concat();
                &joined[..]
            }
        };
        let before = self.read;
        let (used, is_done) = self.scan(bytes, output)?;
        output.count_work(self.read - before);
        let cut = bytes[used..].to_vec();
        let count = shown.len();
        inputs.consume(0, count);
        if is_done {
            return Ok(Step::Done { result: self.found });
        }
        self.cut = cut;
        match inputs.is_over(0) {
            false => Ok(Step::after(inputs, 0)),
            true if self.cut.is_empty() => Ok(Step::Done { result: self.found }),
            true => Err(Failure::new(Cause::InputType, "the list ends within a key")),
        }
    }
}

impl Ranging {
    /// Reads whole entries, and writes those in the range. Returns the number of bytes read, and
    /// true if no further key can be in the range.
    fn scan(&mut self, bytes: &[u8], output: &mut Output) -> Result<(usize, bool), Failure> {
        let Parameters { lower, upper, keys_max } = self.parameters;
        let (mut at, mut is_done) = (0, false);
        // Keys in the range follow one another.
        let mut found = None;
        while let Some((key, entry_bytes)) = first(&bytes[at..])? {
            if self.last.is_some_and(|last| last >= key) {
                return Err(Failure::new(
                    Cause::InputOrder,
                    format!(
                        "key {} of the list is not above the one before: the namespace keeps its \
                         keys in another order",
                        self.read + 1
                    ),
                ));
            }
            self.last = Some(key);
            self.read += 1;
            if upper.is_some_and(|upper| key > upper) {
                is_done = true;
                break;
            }
            if lower.is_none_or(|lower| key >= lower) {
                found.get_or_insert(at..at).end = at + entry_bytes;
                self.found += 1;
            }
            at += entry_bytes;
            if keys_max > 0 && self.found == keys_max {
                is_done = true;
                break;
            }
        }
        if let Some(found) = found {
            output.append(&bytes[found]);
        }
        Ok((at, is_done))
    }
}

/// Returns the key of the first entry, and the length of the entry; `None` if it is not whole.
fn first(bytes: &[u8]) -> Result<Option<(ListKey, usize)>, Failure> {
    let Some(length) = bytes.first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_le_bytes(*length));
    if !(1..=KEY_BYTES_MAX).contains(&length) {
        let reason = format!("a key of the list has {length} bytes");
        return Err(Failure::new(Cause::InputType, reason));
    }
    let entry_bytes = (2 + length).next_multiple_of(4);
    let entry = bytes.get(..entry_bytes);
    let key = entry.and_then(|entry| ListKey::new(&entry[2..2 + length]));
    Ok(key.map(|key| (key, entry_bytes)))
}

#[cfg(test)]
mod tests {
    use csd_buffer::Buffer;

    use super::*;
    use crate::program::run;

    fn entries(keys: &[&str]) -> Vec<u8> {
        let mut data = Vec::new();
        for key in keys {
            data.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
            data.extend(key.as_bytes());
            data.resize(data.len().next_multiple_of(4), 0);
        }
        data
    }

    fn ranged(
        (lower, upper, keys_max): (&str, &str, u64),
        pieces: Vec<&[u8]>,
    ) -> Result<(u64, Vec<u8>), Failure> {
        let [lower, upper] = [lower, upper].map(|key| ListKey::new(key.as_bytes()));
        let parameters = Parameters { lower, upper, keys_max }.encode();
        let stream = pieces.into_iter().map(Buffer::from_slice).collect();
        run(start(&parameters).unwrap(), vec![stream])
    }

    const KEYS: [&str; 7] = ["a", "b", "aa", "ab", "ba", "abc", "sixteen byte key"];

    #[test]
    fn keys_between_the_bounds_are_counted_and_copied_however_the_list_was_cut() {
        let all = entries(&KEYS);
        for (bounds, found) in [
            (("", "", 0), &KEYS[..]),
            (("b", "ab", 0), &["b", "aa", "ab"]),
            (("c", "az", 0), &["aa", "ab"]),
            (("aa", "", 0), &KEYS[2..]),
            (("", "b", 0), &["a", "b"]),
            (("ac", "ad", 0), &[]),
            (("zzz", "", 0), &KEYS[6..]),
            (("b", "", 3), &["b", "aa", "ab"]),
        ] {
            let expected = Ok((found.len() as u64, entries(found)));
            for piece in [1, 3, 4, 5, 21, all.len()] {
                assert_eq!(ranged(bounds, all.chunks(piece).collect()), expected, "{bounds:?}");
            }
        }
        assert_eq!(ranged(("", "", 0), vec![]), Ok((0, vec![])));
    }

    #[test]
    fn a_range_ends_at_the_first_key_above_it_and_reads_no_further() {
        let wrong = [entries(&["a", "b", "c"]), vec![0xFF; 8]].concat();
        assert_eq!(ranged(("", "b", 0), vec![&wrong]), Ok((2, entries(&["a", "b"]))));
        assert_eq!(ranged(("", "", 2), vec![&wrong]), Ok((2, entries(&["a", "b"]))));
        let refused = ranged(("", "", 0), vec![&wrong]).unwrap_err();
        assert_eq!(refused.cause, Cause::InputType);
        assert_eq!(refused.reason, "a key of the list has 65535 bytes");
    }

    #[test]
    fn keys_out_of_order_twice_or_cut_are_refused() {
        for keys in [["b", "a"], ["a", "a"], ["aa", "b"]] {
            let refused = ranged(("", "", 0), vec![&entries(&keys)]).unwrap_err();
            assert_eq!(refused.cause, Cause::InputOrder);
            assert!(refused.reason.starts_with("key 2 of the list is not above"), "{refused}");
        }
        let cut = &entries(&["a", "abc"])[..9];
        let refused = ranged(("", "", 0), vec![cut]).unwrap_err();
        assert_eq!(refused.reason, "the list ends within a key");
        assert!(ranged(("", "", 0), vec![&[0; 4]]).is_err(), "an empty key");
    }
}
