//! [`Inputs`]: what a program reads, as streams of bytes at hand.
//!
//! Bytes come in chunks, in order; a program sees one chunk of each stream at a time and says how
//! much of it it has used. It does no I/O. Invariants: the last bytes of a value are shown only
//! after the value's checksum held, which is looked at in the lane, where the bytes are about to be
//! read anyway; of a value that comes in several chunks the first ones are shown before, and the
//! execution fails when the checksum does not hold, even if the program ends before
//! ([`Inputs::check_rest`]).

use std::collections::VecDeque;

use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::Failure;

/// What one read of a source gave.
pub(super) struct Chunk {
    pub(super) bytes: Buffer,
    /// Bytes at its beginning that no program is shown.
    pub(super) skip: usize,
    pub(super) check: Check,
}

/// What a chunk is checked against.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// Nothing: it is of blocks or memory.
    Nothing,
    /// It is of a value that goes on in the next chunk.
    Part,
    /// It ends a value, whose checksum this is.
    End(u32),
}

/// The checksum of a value that has come in part.
#[derive(Default)]
struct Running(Option<u32>);

impl Running {
    /// Goes on with the next chunk; false when a checksum does not hold.
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

/// The streams that a program reads. The default has none.
#[derive(Default)]
pub struct Inputs {
    streams: Vec<Stream>,
    consumed: u64,
    /// Used up in the lane, whose thread has no use for their memory: the core's has.
    spent: Vec<Chunk>,
}

#[derive(Default)]
struct Stream {
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are used.
    at: usize,
    /// The first chunk was checked.
    admitted: bool,
    running: Running,
    /// Bytes not used of all chunks at hand.
    left: usize,
    /// No chunk comes after those at hand.
    ended: bool,
}

impl Inputs {
    pub(super) fn new(streams: usize) -> Self {
        let streams = (0..streams).map(|_| Stream::default()).collect();
        Self { streams, consumed: 0, spent: Vec::new() }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The next bytes of a stream; empty when none are at hand in this step.
    pub fn peek(&self, stream: usize) -> &[u8] {
        let shown = self.streams.get(stream).filter(|stream| stream.admitted);
        shown.map_or(&[], |stream| &stream.chunks[0].bytes[stream.at..])
    }

    /// Says that a program has used the first `bytes` of what [`Self::peek`] shows. What comes
    /// after the last of them is shown in the next step.
    ///
    /// # Panics
    /// When it was not shown as many.
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

    /// Whether nothing comes after the bytes that [`Self::peek`] shows. A stream without sources
    /// is at its end from the beginning.
    pub fn is_last(&self, stream: usize) -> bool {
        self.streams.get(stream).is_none_or(|stream| stream.ended && stream.left == shown(stream))
    }

    /// Whether nothing is left of a stream.
    pub fn is_over(&self, stream: usize) -> bool {
        self.is_last(stream) && self.peek(stream).is_empty()
    }

    /// Bytes used of all streams.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Bytes at hand and not used, of every stream.
    pub(super) fn all_left(&self) -> Vec<usize> {
        self.streams.iter().map(|stream| stream.left).collect()
    }

    /// Whether a stream has a chunk at hand that was not shown yet.
    pub(super) fn has_unseen(&self, stream: usize) -> bool {
        self.streams.get(stream).is_some_and(|stream| !stream.admitted && !stream.chunks.is_empty())
    }

    pub(super) fn push(&mut self, stream: usize, chunk: Chunk) {
        let stream = &mut self.streams[stream];
        stream.left += chunk.bytes.len() - chunk.skip;
        stream.chunks.push_back(chunk);
        stream.drop_used(&mut self.spent);
    }

    /// Frees the chunks that are used up. Called where chunks are read, because memory is kept
    /// for the next one by the thread that frees it.
    pub(super) fn free_spent(&mut self) {
        self.spent.clear();
    }

    pub(super) fn end(&mut self, stream: usize) {
        self.streams[stream].ended = true;
    }

    /// Checks the chunks that the next step shows for the first time.
    pub(super) fn admit(&mut self) -> Result<(), Failure> {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            while let Some(first) = stream.chunks.front().filter(|_| !stream.admitted) {
                if !stream.running.check(first) {
                    return Err(wrong_checksum(index));
                }
                (stream.admitted, stream.at) = (true, first.skip);
                // One that is skipped as a whole is followed by the next.
                stream.drop_used(&mut self.spent);
            }
        }
        Ok(())
    }

    /// A stream of which the program was shown the beginning of a value whose end has not come.
    pub(super) fn midway(&self) -> Option<usize> {
        self.streams.iter().position(|stream| stream.running.0.is_some())
    }

    /// Checks what is at hand of such a value, which the program does not want.
    pub(super) fn check_rest(&mut self, index: usize) -> Result<(), Failure> {
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
    let reason = format!("a value of stream {stream} does not match its checksum");
    Failure::new(Status::UNRECOVERED_ERROR, reason)
}

impl Stream {
    /// Takes off chunks that are used up, empty ones too.
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
            (inputs.peek(0), inputs.all_left()[0], inputs.has_unseen(0)),
            (&b""[..], 5, true)
        );
        inputs.admit().unwrap();
        assert_eq!(inputs.peek(0), b"abc");
        inputs.consume(0, 3);
        assert_eq!((inputs.peek(0), inputs.has_unseen(0)), (&b""[..], true));
        inputs.admit().unwrap();
        inputs.consume(0, 1);
        assert_eq!((inputs.peek(0), inputs.all_left()[0], inputs.consumed()), (&b"e"[..], 1, 4));
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
        assert_eq!(inputs.admit().unwrap_err().status, Status::UNRECOVERED_ERROR);
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
            assert_eq!((inputs.all_left()[0], inputs.is_over(0)), (3, false));
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
