//! [`Inputs`]: the streams of bytes that a program reads.
//!
//! Bytes arrive in chunks, in order. A program sees one chunk of each stream at a time and says how
//! many of its bytes it has used. Checksums are verified right before a step, while the bytes are
//! about to be read anyway. Invariants: the last bytes that a checksum covers are shown only after
//! it held; the first ones, if they arrive in several chunks, are shown before that, and the
//! execution fails if the checksum does not hold, even if the program ends earlier
//! ([`Inputs::check_rest`]).

use std::collections::VecDeque;

use csd_buffer::Buffer;

use super::{Cause, Failure};

/// Bytes of an input, as one read returned them.
pub struct Chunk {
    /// The bytes.
    pub bytes: Buffer,
    /// Number of bytes at the beginning that the program is not shown.
    pub skip: usize,
    /// Checksum that covers the chunk.
    pub check: Check,
}

impl From<Buffer> for Chunk {
    /// Makes a whole chunk without a checksum.
    fn from(bytes: Buffer) -> Self {
        Self { bytes, skip: 0, check: Check::Nothing }
    }
}

/// Checksum that covers a chunk.
#[derive(Clone, Copy)]
pub enum Check {
    /// None: nothing is known of the chunk's bytes, as of memory.
    Nothing,
    /// The chunk belongs to a value, or to blocks, whose checksum comes with a later chunk.
    Part,
    /// The chunk ends a value, or blocks, with this CRC-32C.
    End(u32),
}

/// Checksum of a value, or of blocks, of which some chunks have arrived.
#[derive(Default)]
struct Running(Option<u32>);

impl Running {
    /// Continues with the next chunk; returns false if a checksum does not hold.
    fn check(&mut self, chunk: &Chunk) -> bool {
        let sum = |running: Option<u32>| crc32c::crc32c_append(running.unwrap_or(0), &chunk.bytes);
        match chunk.check {
            Check::Nothing => true,
            Check::Part => {
                self.0 = Some(sum(self.0));
                true
            }
            Check::End(expected) => sum(self.0.take()) == expected,
        }
    }
}

/// The streams that a program reads. The default has no stream.
#[derive(Default)]
pub struct Inputs {
    streams: Vec<Stream>,
    consumed: u64,
    /// Chunks that are used up. The thread that reads the inputs frees them: it reuses their
    /// memory, the thread that runs the program would not.
    spent: Vec<Chunk>,
}

#[derive(Default)]
struct Stream {
    chunks: VecDeque<Chunk>,
    /// Number of bytes of the first chunk that are used.
    at: usize,
    /// True if the first chunk was checked.
    admitted: bool,
    running: Running,
    /// Number of unused bytes in all chunks at hand.
    left: usize,
    /// True if no chunk follows those at hand.
    ended: bool,
}

impl Inputs {
    /// Makes inputs of this many streams, all empty.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        let streams = (0..streams).map(|_| Stream::default()).collect();
        Self { streams, consumed: 0, spent: Vec::new() }
    }

    /// Makes inputs of complete streams, each in chunks.
    #[must_use]
    pub fn complete(streams: Vec<Vec<Buffer>>) -> Self {
        let mut inputs = Self::new(streams.len());
        for (stream, chunks) in streams.into_iter().enumerate() {
            chunks.into_iter().for_each(|bytes| inputs.push(stream, bytes.into()));
            inputs.end(stream);
        }
        inputs
    }

    /// Returns the number of streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the next bytes of a stream; none if nothing is at hand in this step.
    #[must_use]
    pub fn peek(&self, stream: usize) -> &[u8] {
        let shown = self.streams.get(stream).filter(|stream| stream.admitted);
        shown.map_or(&[], |stream| &stream.chunks[0].bytes[stream.at..])
    }

    /// Takes off the first `bytes` bytes of those that [`Self::peek`] returns. When none is left,
    /// the next chunk is shown in the next step.
    ///
    /// # Panics
    /// If `peek` returns fewer.
    pub fn consume(&mut self, stream: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        assert!(bytes <= self.peek(stream).len(), "more was used than there was");
        let stream = &mut self.streams[stream];
        stream.at += bytes;
        stream.left -= bytes;
        self.consumed += bytes as u64;
        stream.drop_used(&mut self.spent);
    }

    /// Returns true if no bytes follow those that [`Self::peek`] returns. A stream that does not
    /// exist has ended.
    #[must_use]
    pub fn is_last(&self, stream: usize) -> bool {
        self.streams.get(stream).is_none_or(|stream| stream.ended && stream.left == shown(stream))
    }

    /// Returns true if every byte of a stream was used.
    #[must_use]
    pub fn is_over(&self, stream: usize) -> bool {
        self.is_last(stream) && self.peek(stream).is_empty()
    }

    /// Returns the number of bytes used, of all streams together.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the number of unused bytes at hand, of every stream, with those that the program is
    /// not shown.
    #[must_use]
    pub fn all_held(&self) -> Vec<usize> {
        let held = |stream: &Stream| -> usize {
            stream.chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>() - stream.at
        };
        self.streams.iter().map(held).collect()
    }

    /// Returns true if a stream has a chunk at hand that was not shown yet.
    #[must_use]
    pub fn has_unseen(&self, stream: usize) -> bool {
        self.streams.get(stream).is_some_and(|stream| !stream.admitted && !stream.chunks.is_empty())
    }

    /// Appends a chunk to a stream.
    pub fn push(&mut self, stream: usize, chunk: Chunk) {
        let stream = &mut self.streams[stream];
        stream.left += chunk.bytes.len() - chunk.skip;
        stream.chunks.push_back(chunk);
        stream.drop_used(&mut self.spent);
    }

    /// Frees the chunks that are used up. The thread that reads the inputs calls this, because a
    /// thread keeps the memory that it frees for its own next buffer.
    pub fn free_spent(&mut self) {
        self.spent.clear();
    }

    /// Marks a stream as complete.
    pub fn end(&mut self, stream: usize) {
        self.streams[stream].ended = true;
    }

    /// Verifies the chunks that the next step shows for the first time.
    ///
    /// # Errors
    /// [`Cause::Corrupt`] if a checksum does not hold.
    pub fn admit(&mut self) -> Result<(), Failure> {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            while let Some(first) = stream.chunks.front().filter(|_| !stream.admitted) {
                if !stream.running.check(first) {
                    return Err(wrong_checksum(index));
                }
                (stream.admitted, stream.at) = (true, first.skip);
                // If all of a chunk is skipped, the next one is checked as well.
                stream.drop_used(&mut self.spent);
            }
        }
        Ok(())
    }

    /// Returns a stream of which the program was shown the beginning of a value, or of blocks with
    /// a checksum, but not the end.
    #[must_use]
    pub fn midway(&self) -> Option<usize> {
        self.streams.iter().position(|stream| stream.running.0.is_some())
    }

    /// Verifies the chunks at hand of what [`Self::midway`] found, without showing them
    /// to the program.
    ///
    /// # Errors
    /// [`Cause::Corrupt`] if the checksum does not hold.
    pub fn check_rest(&mut self, index: usize) -> Result<(), Failure> {
        let stream = &mut self.streams[index];
        if std::mem::take(&mut stream.admitted) {
            stream.chunks.pop_front();
            stream.at = 0;
        }
        while stream.running.0.is_some() {
            let Some(chunk) = stream.chunks.pop_front() else { break };
            if !stream.running.check(&chunk) {
                return Err(wrong_checksum(index));
            }
        }
        Ok(())
    }
}

fn wrong_checksum(stream: usize) -> Failure {
    let reason = format!("bytes of stream {stream} do not match their checksum");
    Failure::new(Cause::Corrupt, reason)
}

impl Stream {
    /// Removes chunks that are used up, empty ones too.
    fn drop_used(&mut self, spent: &mut Vec<Chunk>) {
        while self.chunks.front().is_some_and(|first| first.bytes.len() == self.at) {
            spent.extend(self.chunks.pop_front());
            self.at = 0;
            self.admitted = false;
        }
    }
}

fn shown(stream: &Stream) -> usize {
    if stream.admitted { stream.chunks[0].bytes.len() - stream.at } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: &[u8], check: Check) -> Chunk {
        Chunk { bytes: Buffer::from_slice(bytes), skip: 0, check }
    }

    #[test]
    fn one_chunk_is_shown_at_a_time_and_an_empty_one_never() {
        let mut inputs = Inputs::new(2);
        for bytes in [&b"abc"[..], b"", b"de"] {
            inputs.push(0, chunk(bytes, Check::End(crc32c::crc32c(bytes))));
        }
        assert_eq!(
            (inputs.peek(0), inputs.all_held()[0], inputs.has_unseen(0)),
            (&b""[..], 5, true)
        );
        inputs.admit().unwrap();
        assert_eq!(inputs.peek(0), b"abc");
        inputs.consume(0, 3);
        assert_eq!((inputs.peek(0), inputs.has_unseen(0)), (&b""[..], true));
        inputs.admit().unwrap();
        inputs.consume(0, 1);
        assert_eq!((inputs.peek(0), inputs.all_held()[0], inputs.consumed()), (&b"e"[..], 1, 4));
    }

    #[test]
    fn the_end_is_told_before_and_after_the_last_byte() {
        let mut inputs = Inputs::new(1);
        inputs.push(0, chunk(b"ab", Check::Nothing));
        inputs.push(0, chunk(b"c", Check::Nothing));
        inputs.end(0);
        inputs.admit().unwrap();
        assert!(!inputs.is_last(0));
        inputs.consume(0, 2);
        assert!(!inputs.is_last(0), "a chunk was not shown yet");
        inputs.admit().unwrap();
        assert!(inputs.is_last(0) && !inputs.is_over(0));
        inputs.consume(0, 1);
        assert!(inputs.is_over(0));
        assert!(inputs.is_over(7), "a stream without sources");
    }

    #[test]
    fn a_wrong_checksum_is_found_before_a_byte_is_shown() {
        let mut inputs = Inputs::new(1);
        inputs.push(0, chunk(b"ab", Check::End(1)));
        assert_eq!(inputs.admit().unwrap_err().cause, Cause::Corrupt);
        assert_eq!(inputs.peek(0), b"");
    }

    #[test]
    fn what_is_skipped_is_checked_and_not_shown() {
        let whole = crc32c::crc32c(b"abcdef");
        for (sum, holds) in [(whole, true), (whole ^ 1, false)] {
            let mut inputs = Inputs::new(1);
            inputs.push(0, Chunk { skip: 2, ..chunk(b"ab", Check::Part) });
            inputs.push(0, Chunk { skip: 1, ..chunk(b"cdef", Check::End(sum)) });
            inputs.end(0);
            assert_eq!((inputs.all_held()[0], inputs.is_over(0)), (6, false));
            assert_eq!(inputs.admit().is_ok(), holds);
            let shown = if holds { &b"def"[..] } else { b"" };
            assert_eq!((inputs.peek(0), inputs.is_last(0)), (shown, holds));
        }
    }

    #[test]
    fn a_value_in_parts_is_checked_at_its_end_even_if_nobody_reads_on() {
        let whole = crc32c::crc32c(b"abcdef");
        for (sum, holds) in [(whole, true), (whole ^ 1, false)] {
            let mut read = Inputs::new(1);
            let mut left = Inputs::new(1);
            for (bytes, check) in
                [(b"ab", Check::Part), (b"cd", Check::Part), (b"ef", Check::End(sum))]
            {
                read.push(0, chunk(bytes, check));
                left.push(0, chunk(bytes, check));
            }
            for shown in [b"ab", b"cd"] {
                read.admit().unwrap();
                assert_eq!((read.peek(0), read.midway()), (&shown[..], Some(0)));
                read.consume(0, 2);
            }
            assert_eq!(read.admit().is_ok(), holds, "read to its end");
            assert_eq!(read.peek(0).len(), if holds { 2 } else { 0 });
            left.admit().unwrap();
            assert_eq!(left.check_rest(0).is_ok(), holds, "left after its beginning");
            assert_eq!(left.midway(), None);
        }
        let mut begun = Inputs::new(2);
        begun.push(1, chunk(b"ab", Check::Part));
        begun.admit().unwrap();
        begun.check_rest(1).unwrap();
        assert_eq!(begun.midway(), Some(1), "its end has not come");
    }
}
