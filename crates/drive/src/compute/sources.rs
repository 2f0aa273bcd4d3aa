//! [`Sources`]: an execution's sources, read ahead stream by stream.
//!
//! The medium stays busy: when half of the bytes being read has arrived, it is handed over, and as
//! much again is requested. Checksums are computed elsewhere. Invariants: a value's version is
//! pinned from when it is opened until it is read; every source is read in pieces of at most
//! [`PIECE_BYTES`]; of every stream at most twice [`AHEAD_BYTES`] divided by their number, and two
//! pieces more, are in memory ([`held_bytes`]); a serial execution is in memory whole, at most
//! [`SOURCE_BYTES_MAX`]. Of keys two pages are read ahead.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_kernels::program::{Check, Chunk};
use csd_kvlog::Value;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, SOURCE_BYTES_MAX};
use csd_reactor::{Class, JoinHandle, spawn};

use super::key_source::KeySource;
use super::reads::{self, InputPiece, Opened, PIECE_BYTES, Read};
use super::{Compute, Failure};

/// Bytes of all streams that are read while the program computes.
const AHEAD_BYTES: usize = 8 << 20;

/// Returns the most memory of the streams of an execution that is not serial.
pub(super) fn held_bytes(streams: usize) -> u64 {
    2 * (AHEAD_BYTES as u64 + streams as u64 * u64::from(PIECE_BYTES))
}

/// The reads of every stream.
#[derive(Default)]
pub(super) struct Sources {
    streams: Vec<Stream>,
    /// Bytes of all streams that are read at once.
    ahead_bytes: usize,
    /// Bytes that may still be read.
    left_bytes: u64,
}

/// The reads of one stream.
#[derive(Default)]
struct Stream {
    left: std::vec::IntoIter<Read>,
    /// Keys that are being listed.
    keys: Option<KeySource>,
    value: Option<Begun>,
    /// Reads that have begun, in order.
    under_way: VecDeque<UnderWay>,
    under_way_bytes: usize,
}

/// A value that is being read.
struct Begun {
    value: Rc<Value>,
    /// Number of bytes of which reads have begun.
    at: u32,
    /// Bytes at the beginning that are not shown to the program.
    skip: u32,
    /// Checksum that the value must have; else its own.
    digest: Option<u32>,
}

/// A read that has begun.
struct UnderWay {
    bytes: usize,
    /// Value whose last part is read, and the checksum that it must have. Its own is known when its
    /// first part is.
    ends: Option<(Rc<Value>, Option<u32>)>,
    chunk: JoinHandle<Result<Chunk, Status>>,
}

impl Stream {
    /// Begins reads, in order, until `bytes` bytes are being read.
    async fn begin(
        &mut self,
        compute: &Compute,
        bytes: usize,
        left_bytes: &mut u64,
    ) -> Result<(), Failure> {
        while self.under_way_bytes < bytes {
            if let Some(keys) = &mut self.keys {
                // A page at a time: the program may end at any key.
                if !self.under_way.is_empty() {
                    break;
                }
                let (bytes, is_last) = keys.page(compute).await?;
                self.begin_piece(InputPiece::Inline { bytes });
                if is_last {
                    self.keys = None;
                }
                continue;
            }
            if self.value.is_none() {
                let Some(read) = self.left.next() else { break };
                match reads::open(compute, read).await? {
                    Opened::Value { value, skip, digest } => {
                        self.value = Some(Begun { value: Rc::new(value), at: 0, skip, digest });
                    }
                    Opened::Piece(piece) => {
                        self.begin_piece(piece);
                        continue;
                    }
                    Opened::Keys(keys) => {
                        self.keys = Some(keys);
                        continue;
                    }
                }
            }
            let Some(bytes) = self.begin_part() else { break };
            let left = left_bytes.checked_sub(bytes);
            *left_bytes = left.ok_or_else(|| {
                Failure::misuse("the values of a serial execution come to more than 256 MiB")
            })?;
        }
        Ok(())
    }

    /// Begins to read the next part of the value that is being read. Returns its length.
    fn begin_part(&mut self) -> Option<u64> {
        let Begun { value, at, skip, digest } = self.value.take()?;
        let bytes = (value.bytes() - at).min(PIECE_BYTES);
        let hidden = skip.saturating_sub(at).min(bytes) as usize;
        let is_last = at + bytes == value.bytes();
        let ends = is_last.then(|| (Rc::clone(&value), digest));
        self.begin_read(InputPiece::Value { value: Rc::clone(&value), at, bytes, hidden }, ends);
        if !is_last {
            self.value = Some(Begun { value, at: at + bytes, skip, digest });
        }
        Some(bytes.into())
    }

    fn begin_piece(&mut self, piece: InputPiece) {
        self.begin_read(piece, None);
    }

    fn begin_read(&mut self, piece: InputPiece, ends: Option<(Rc<Value>, Option<u32>)>) {
        let bytes = piece.bytes();
        let chunk = spawn(Class::Execution, piece.read());
        self.under_way.push_back(UnderWay { bytes, ends, chunk });
        self.under_way_bytes += bytes;
    }

    /// Returns true if no read is left to begin.
    fn is_begun(&self) -> bool {
        self.value.is_none() && self.keys.is_none() && self.left.len() == 0
    }

    /// Waits for the oldest read that has begun.
    async fn oldest(&mut self) -> Option<Result<Chunk, Status>> {
        let UnderWay { bytes, ends, chunk } = self.under_way.pop_front()?;
        self.under_way_bytes -= bytes;
        let mut chunk = chunk.await;
        if let (Ok(read), Some((value, digest))) = (&mut chunk, ends) {
            match value.checksum() {
                Some(own) => read.check = Check::End(digest.unwrap_or(own)),
                // Its first part could not be read.
                None => chunk = Err(Status::UNRECOVERED_ERROR),
            }
        }
        Some(chunk)
    }

    /// Returns true if this round hands over the oldest read: it is of the older half of the bytes
    /// being read, it has ended, or nothing comes after the reads that have begun.
    fn is_due(&self, share: usize) -> bool {
        let Some(oldest) = self.under_way.front() else { return false };
        self.is_begun()
            || self.keys.is_some()
            || self.under_way_bytes > share / 2
            || oldest.chunk.is_finished()
    }
}

/// Result of a round of reads: chunks with their streams, in order, and the streams that ended.
pub(super) struct Batch {
    pub(super) chunks: Vec<(usize, Chunk)>,
    pub(super) ended: Vec<usize>,
    pub(super) bytes: u64,
}

impl Sources {
    /// Plans the reads of an execution's sources, and checks them as far as that needs no reading.
    pub(super) async fn plan(compute: &Compute, execution: &Execution) -> Result<Self, Failure> {
        let streams = reads::plan(compute, execution).await?;
        let stream = |reads: Vec<Read>| Stream { left: reads.into_iter(), ..Stream::default() };
        let streams = streams.into_iter().map(stream).collect();
        let (ahead_bytes, left_bytes) = match execution.serial {
            true => (usize::MAX, SOURCE_BYTES_MAX),
            false => (AHEAD_BYTES, u64::MAX),
        };
        Ok(Self { streams, ahead_bytes, left_bytes })
    }

    /// Reads streams of which less than their share is `at_hand`: opens values in order until their
    /// sizes fill the share, and waits for the older half of them.
    pub(super) async fn read(
        &mut self,
        compute: &Compute,
        at_hand: &[usize],
    ) -> Result<Batch, Failure> {
        let share = self.ahead_bytes / self.streams.len().max(1);
        for (stream, at_hand) in self.streams.iter_mut().zip(at_hand) {
            if *at_hand < share {
                stream.begin(compute, share, &mut self.left_bytes).await?;
            }
        }
        let mut batch = Batch { chunks: Vec::new(), ended: Vec::new(), bytes: 0 };
        for (index, stream) in self.streams.iter_mut().enumerate() {
            while stream.is_due(share) {
                let Some(chunk) = stream.oldest().await else { break };
                let chunk = chunk?;
                batch.bytes += chunk.bytes.len() as u64;
                batch.chunks.push((index, chunk));
            }
            if stream.is_begun() {
                batch.ended.push(index);
            }
        }
        Ok(batch)
    }

    /// Returns the next chunk of a stream, of which a checksum covers what was read before; `None`
    /// when none is left.
    pub(super) async fn next_part(
        &mut self,
        compute: &Compute,
        stream: usize,
    ) -> Result<Option<Chunk>, Failure> {
        let stream = &mut self.streams[stream];
        stream.begin(compute, 1, &mut self.left_bytes).await?;
        Ok(stream.oldest().await.transpose()?)
    }

    /// Waits for all reads that have begun, so that none outlives its execution.
    pub(super) async fn settle(mut self) {
        for stream in &mut self.streams {
            while stream.oldest().await.is_some() {}
        }
    }
}
