//! [`Output`]: the bytes that a program writes, gathered in chunks, and the work that it counts.
//!
//! A program appends; its caller takes the full chunks between two steps and stores them. Bytes
//! that the caller did not request are dropped. Invariant: every chunk but the last has the
//! requested size.

use std::collections::VecDeque;

use csd_buffer::Buffer;

/// Number of gathered bytes at which a program is asked to wait.
pub const FULL_BYTES: usize = 8 << 20;

/// Size of the chunks in which a sequence of bytes is gathered.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Output of a program. The default drops what is written.
#[derive(Default)]
pub struct Output {
    /// Size of a chunk; `None` if only the result is wanted.
    chunk_bytes: Option<usize>,
    full: VecDeque<Buffer>,
    /// The chunk that is being filled, and the number of its bytes that are written.
    open: Option<(Buffer, usize)>,
    gathered: usize,
    /// Number of gathered bytes at which a program is asked to wait.
    full_bytes: usize,
    written: u64,
    work: u64,
}

impl Output {
    /// Makes an output that gathers chunks of this many bytes.
    #[must_use]
    pub fn in_chunks(chunk_bytes: usize) -> Self {
        Self { chunk_bytes: Some(chunk_bytes), full_bytes: FULL_BYTES, ..Self::default() }
    }

    /// Sets the number of gathered bytes at which the program is asked to wait.
    #[must_use]
    pub fn with_full_bytes(self, full_bytes: usize) -> Self {
        Self { full_bytes, ..self }
    }

    /// Returns true if the bytes are wanted; if not, they may be written and are dropped.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.chunk_bytes.is_some()
    }

    /// Returns true if a program should end its step with [`super::Step::Full`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_wanted() && self.gathered >= self.full_bytes
    }

    /// Returns contiguous space for 1 to `most` bytes; [`Self::commit`] says how many of them were
    /// written.
    ///
    /// # Panics
    /// If the output is not wanted, or `most` is 0.
    pub fn space(&mut self, most: usize) -> &mut [u8] {
        let chunk_bytes = self.chunk_bytes.expect("space in an output that is not wanted");
        assert!(most > 0, "space for no byte");
        let open = || (Buffer::with_room(0, chunk_bytes, 0), 0);
        let (buffer, filled) = self.open.get_or_insert_with(open);
        let end = chunk_bytes.min(*filled + most);
        &mut buffer[*filled..end]
    }

    /// Appends the first `bytes` bytes of the last [`Self::space`].
    pub fn commit(&mut self, bytes: usize) {
        let Some((buffer, filled)) = &mut self.open else { return };
        *filled += bytes;
        self.gathered += bytes;
        self.written += bytes as u64;
        if *filled == buffer.len() {
            self.full.extend(self.open.take().map(|(buffer, _)| buffer));
        }
    }

    /// Appends bytes, if they are wanted.
    pub fn append(&mut self, mut bytes: &[u8]) {
        while self.is_wanted() && !bytes.is_empty() {
            let space = self.space(bytes.len());
            let count = space.len();
            let (head, rest) = bytes.split_at(count);
            space.copy_from_slice(head);
            self.commit(count);
            bytes = rest;
        }
    }

    /// Counts work done, in the program's unit: elements, edges or bytes.
    pub fn count_work(&mut self, work: u64) {
        self.work += work;
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the work counted.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Takes the full chunks, and with `last` the chunk that is not full too.
    pub fn take(&mut self, last: bool) -> VecDeque<Buffer> {
        let mut chunks = std::mem::take(&mut self.full);
        if last && let Some((mut buffer, filled)) = self.open.take() {
            buffer.truncate(filled);
            chunks.push_back(buffer);
        }
        self.gathered = self.open.as_ref().map_or(0, |(_, filled)| *filled);
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_gathered_in_chunks_and_the_rest_comes_last() {
        let mut output = Output::in_chunks(4);
        output.append(b"abcdefghij");
        output.count_work(3);
        let lengths = |chunks: VecDeque<Buffer>| chunks.iter().map(|c| c.len()).collect::<Vec<_>>();
        assert_eq!(lengths(output.take(false)), [4, 4]);
        output.space(9)[..1].copy_from_slice(b"k");
        output.commit(1);
        let rest = output.take(true);
        assert_eq!(rest[0][..], b"ijk"[..]);
        assert_eq!((output.written(), output.work(), output.take(true).len()), (11, 3, 0));
    }

    #[test]
    fn a_full_output_says_so_until_it_is_drained() {
        let mut output = Output::in_chunks(1 << 20);
        output.append(&vec![1; FULL_BYTES - 1]);
        assert!(!output.is_full());
        output.append(&[1]);
        assert!(output.is_full());
        output.take(false);
        assert!(!output.is_full());
    }

    #[test]
    fn an_output_that_is_not_wanted_takes_no_memory() {
        let mut output = Output::default();
        output.append(&[1; 100]);
        assert!(!output.is_full());
        assert_eq!((output.is_wanted(), output.written(), output.take(true).len()), (false, 0, 0));
    }
}
