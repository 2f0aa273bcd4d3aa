//! The form of the answer to a piece of a text.
//!
//! The bytes up to the first newline, with it. If there is none, that is all. Then items of the
//! lines up to the last newline: count and length as numbers in base 128 ([`crate::varint`]), and
//! the item. A count of 0 ends them; the bytes after the last newline follow.

use crate::varint;

/// An answer that has another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a drive's answer has another form")]
pub struct Unreadable;

/// Appends an item.
pub(super) fn append(bytes: &mut Vec<u8>, item: &[u8], count: u64) {
    varint::append(bytes, count);
    varint::append(bytes, item.len() as u64);
    bytes.extend_from_slice(item);
}

/// Returns the bytes up to the first newline, with it, and what follows; `None` if there is none.
pub(super) fn head(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memchr(b'\n', answer).map(|newline| answer.split_at(newline + 1))
}

/// Calls `each` for the items, and returns the bytes that follow them.
pub(super) fn items<'a, E: From<Unreadable>>(
    mut rest: &'a [u8],
    mut each: impl FnMut(&'a [u8], u64) -> Result<(), E>,
) -> Result<&'a [u8], E> {
    loop {
        let count = varint::take(&mut rest).ok_or(Unreadable)?;
        if count == 0 {
            return Ok(rest);
        }
        let length = varint::take(&mut rest).ok_or(Unreadable)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let (item, behind) = rest.split_at(length.ok_or(Unreadable)?);
        rest = behind;
        each(item, count)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items with their counts, and the bytes behind them.
    type Read<'a> = (Vec<(&'a [u8], u64)>, &'a [u8]);

    fn read(bytes: &[u8]) -> Result<Read<'_>, Unreadable> {
        let mut found = Vec::new();
        let rest = items(bytes, |item, count| {
            found.push((item, count));
            Ok::<_, Unreadable>(())
        })?;
        Ok((found, rest))
    }

    #[test]
    fn items_are_read_as_they_were_written_and_other_bytes_are_refused() {
        let mut bytes = Vec::new();
        append(&mut bytes, b"often", 300);
        append(&mut bytes, b"", 1);
        bytes.extend_from_slice(b"\0tail");
        assert_eq!(bytes[..3], [0xAC, 2, 5]);
        assert_eq!(read(&bytes), Ok((vec![(&b"often"[..], 300), (&b""[..], 1)], &b"tail"[..])));
        for end in 0..bytes.len() - 5 {
            assert_eq!(read(&bytes[..end]), Err(Unreadable), "cut to {end}");
        }
        assert_eq!(read(&[1, 9, b'x', 0]), Err(Unreadable));
        assert_eq!(head(b"head\nrest"), Some((&b"head\n"[..], &b"rest"[..])));
        assert_eq!(head(b"none"), None);
    }
}
