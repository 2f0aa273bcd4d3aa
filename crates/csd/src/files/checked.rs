//! [`Checked`]: a reader whose content must have a digest.

use std::io::{self, Read};

use super::hash::{Function, Hasher};
use crate::units::hex;

/// A reader that fails at its end if its content, behind a header, has another digest.
pub(super) struct Checked<R> {
    inner: R,
    /// Bytes of the header that are still to come.
    header: u64,
    hasher: Hasher,
    /// BLAKE3 as hexadecimal digits, if there is one to compare with.
    expected: Option<String>,
}

impl<R: Read> Checked<R> {
    pub(super) fn new(inner: R, header: u64, expected: Option<String>) -> Self {
        Self { inner, header, hasher: Hasher::new(Function::Blake3), expected }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        if read == 0 && !out.is_empty() {
            let is_right = |expected: &String| *expected == hex(&self.hasher.finish());
            return match self.expected.as_ref().is_none_or(is_right) {
                true => Ok(0),
                false => Err(io::Error::other("its bytes are not those that were exported")),
            };
        }
        let skipped = usize::try_from(self.header).unwrap_or(usize::MAX).min(read);
        self.header -= skipped as u64;
        self.hasher.update(&out[skipped..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_compared_without_its_header() {
        let digest = hex(blake3::hash(b"content").as_bytes());
        let read = |text: &str, header| {
            let mut reader = Checked::new(text.as_bytes(), header, Some(digest.clone()));
            reader.read_to_end(&mut Vec::new())
        };
        assert_eq!(read("content", 0).unwrap(), 7);
        assert_eq!(read("head content", 5).unwrap(), 12);
        assert!(read("content", 1).is_err() && read("contenu", 0).is_err());
    }
}
