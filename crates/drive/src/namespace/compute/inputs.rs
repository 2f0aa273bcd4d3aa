//! [`Inputs`]: what a program reads, as streams of bytes at hand.
//!
//! Bytes come in chunks, in order; a program sees one chunk of each stream at a time and says how
//! much of it it has used. Never: I/O. Invariant: a byte is shown only after the checksum of its
//! chunk held, which is looked at in the lane, where the bytes are about to be read anyway.

use std::collections::VecDeque;

use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::Failure;

/// What one read of a source gave.
pub(super) struct Chunk {
    pub(super) bytes: Buffer,
    /// Of a value; checked before it is shown.
    pub(super) checksum: Option<u32>,
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
    /// The first chunk's checksum held.
    admitted: bool,
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
        stream.left += chunk.bytes.len();
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
            let Some(first) = stream.chunks.front().filter(|_| !stream.admitted) else { continue };
            if first.checksum.is_some_and(|sum| sum != crc32c::crc32c(&first.bytes)) {
                let reason = format!("a value of stream {index} does not match its checksum");
                return Err(Failure::new(Status::UNRECOVERED_ERROR, reason));
            }
            stream.admitted = true;
        }
        Ok(())
    }
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

    fn chunk(bytes: &[u8], checksum: Option<u32>) -> Chunk {
        Chunk { bytes: Buffer::from_slice(bytes), checksum }
    }

    #[test]
    fn one_chunk_is_shown_at_a_time_and_an_empty_one_never() {
        let mut inputs = Inputs::new(2);
        for bytes in [&b"abc"[..], b"", b"de"] {
            inputs.push(0, chunk(bytes, Some(crc32c::crc32c(bytes))));
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
        inputs.push(0, chunk(b"ab", None));
        inputs.push(0, chunk(b"c", None));
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
        inputs.push(0, chunk(b"ab", Some(1)));
        assert_eq!(inputs.admit().unwrap_err().status, Status::UNRECOVERED_ERROR);
        assert_eq!(inputs.peek(0), b"");
    }
}
