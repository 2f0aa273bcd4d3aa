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
use std::sync::Arc;

use csd_kernels::program::{Check, Chunk};
use csd_nvme::execute::{Execution, Place, SOURCE_BYTES_MAX, chunk_key};
use csd_nvme::memory::Range;
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::listing::Listing;
use super::{Compute, Failure};
use crate::namespace::block::Block;
use crate::namespace::kv::Value;
use crate::namespace::memory::LocalMemory;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};

/// Bytes of all streams that are read while the program computes.
const AHEAD_BYTES: usize = 8 << 20;
/// Longest piece of a source read at once.
const PIECE_BYTES: u32 = 1 << 20;

/// Returns the most memory of the streams of an execution that is not serial.
pub(super) fn held_bytes(streams: usize) -> u64 {
    2 * (AHEAD_BYTES as u64 + streams as u64 * u64::from(PIECE_BYTES))
}

/// One read of a source.
enum Read {
    Value { nsid: u16, prefix: [u8; 12], number: u32, skip: u32 },
    Inline { bytes: Vec<u8> },
    Blocks { slba: u64, skip: u64, bytes: u32 },
    Memory { start: u64, bytes: u32 },
    Keys(Listing),
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
    /// Listing that is being read.
    keys: Option<Listing>,
    /// Value of which reads of the first bytes have begun, with their number.
    value: Option<(Rc<Value>, u32)>,
    /// Bytes at the beginning of that value that are not shown to the program.
    skip: u32,
    /// Reads that have begun, in order.
    under_way: VecDeque<UnderWay>,
    under_way_bytes: usize,
}

/// A read that has begun.
struct UnderWay {
    bytes: usize,
    /// Value whose last part is read. Its checksum is known when its first part is.
    ends: Option<Rc<Value>>,
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
                let (page, is_last) = keys.page(compute).await?;
                self.begin_piece(page);
                if is_last {
                    self.keys = None;
                }
                continue;
            }
            if self.value.is_none() {
                let Some(read) = self.left.next() else { break };
                match open(compute, read).await? {
                    Opened::Value(value, skip) => {
                        (self.value, self.skip) = (Some((Rc::new(value), 0)), skip);
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
        let (value, at) = self.value.take()?;
        let bytes = (value.bytes() - at).min(PIECE_BYTES);
        let skip = self.skip.saturating_sub(at).min(bytes) as usize;
        self.begin_piece(Piece::Value { value: Rc::clone(&value), at, bytes, skip });
        if at + bytes < value.bytes() {
            self.value = Some((value, at + bytes));
        }
        Some(bytes.into())
    }

    fn begin_piece(&mut self, piece: Piece) {
        let (bytes, ends) = (piece.bytes(), piece.ends());
        let chunk = spawn(Class::Background, piece.read());
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
        if let (Ok(read), Some(value)) = (&mut chunk, ends) {
            match value.checksum() {
                Some(checksum) => read.check = Check::End(checksum),
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
    pub(super) fn plan(compute: &Compute, execution: &Execution) -> Result<Self, Failure> {
        let mut streams: Vec<Vec<Read>> = (0..execution.streams()).map(|_| Vec::new()).collect();
        let mut inline = &execution.inline[..];
        for source in &execution.sources {
            let reads = &mut streams[usize::from(source.stream)];
            match source.place {
                Place::KvChunks { nsid, prefix, first, count, stride } => {
                    let (nsid, skip) = (values_of(nsid)?, 0);
                    let numbers = (0..count).map(|step| first + step * stride);
                    reads.extend(numbers.map(|number| Read::Value { nsid, prefix, number, skip }));
                }
                Place::KvTail { nsid, prefix, number, skip } => {
                    let nsid = values_of(nsid)?;
                    reads.push(Read::Value { nsid, prefix, number, skip });
                }
                Place::Keys { nsid, from } => {
                    reads.push(Read::Keys(Listing::begin(compute, execution, nsid, from)?));
                }
                Place::Inline { bytes } => {
                    let cut = inline.split_at_checked(bytes as usize);
                    let (bytes, rest) = cut.ok_or(Status::INVALID_PROGRAM_DATA)?;
                    reads.push(Read::Inline { bytes: bytes.to_vec() });
                    inline = rest;
                }
                Place::Blocks { nsid, slba, skip, bytes } => {
                    if nsid != NSID_BLOCK {
                        return Err(no_namespace("block", nsid));
                    }
                    plan_blocks(&compute.block, (slba, skip, bytes), reads)?;
                }
                Place::Memory { nsid, start, bytes } => {
                    let range = Range { start, length: bytes.into() };
                    compute.shared.memory.check_of(nsid, range)?;
                    plan_memory(range, reads);
                }
            }
        }
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

    /// Returns the next chunk of a value of which a part was read; `None` when none is left.
    pub(super) async fn next_part(&mut self, stream: usize) -> Option<Result<Chunk, Status>> {
        let stream = &mut self.streams[stream];
        if stream.under_way.is_empty() {
            stream.begin_part()?;
        }
        stream.oldest().await
    }

    /// Waits for all reads that have begun, so that none outlives its execution.
    pub(super) async fn settle(mut self) {
        for stream in &mut self.streams {
            while stream.oldest().await.is_some() {}
        }
    }
}

fn no_namespace(kind: &str, nsid: u32) -> Failure {
    let reason = format!("namespace {nsid} is no {kind} namespace of this drive");
    Failure::new(Status::INVALID_NAMESPACE, reason)
}

/// Checks that a namespace is a kv namespace.
pub(super) fn values_of(nsid: u32) -> Result<u16, Failure> {
    match nsid {
        NSID_OBJECTS | NSID_KV => Ok(u16::try_from(nsid).expect("2 or 3")),
        _ => Err(no_namespace("key-value", nsid)),
    }
}

fn plan_blocks(
    block: &Block,
    (slba, skip, bytes): (u64, u32, u32),
    reads: &mut Vec<Read>,
) -> Result<(), Status> {
    let block_bytes = u64::from(block.block_bytes());
    let blocks = (u64::from(skip) + u64::from(bytes)).div_ceil(block_bytes);
    let blocks = u32::try_from(blocks).map_err(|_| Status::LBA_OUT_OF_RANGE)?;
    block.length(Extent { slba, blocks })?;
    let mut done = 0;
    while done < bytes {
        let length = PIECE_BYTES.min(bytes - done);
        let skip = u64::from(skip) + u64::from(done);
        reads.push(Read::Blocks { slba, skip, bytes: length });
        done += length;
    }
    Ok(())
}

fn plan_memory(range: Range, reads: &mut Vec<Read>) {
    let (mut start, mut left) = (range.start, range.length);
    while left > 0 {
        let bytes = PIECE_BYTES.min(u32::try_from(left).unwrap_or(u32::MAX));
        reads.push(Read::Memory { start, bytes });
        (start, left) = (start + u64::from(bytes), left - u64::from(bytes));
    }
}

async fn open(compute: &Compute, read: Read) -> Result<Opened, Failure> {
    match read {
        Read::Value { nsid, prefix, number, skip } => {
            let value = compute.kv.open(nsid, chunk_key(&prefix, number)).await?;
            let missing = |reason| Failure::new(Status::SOURCE_MISSING, reason);
            let Some(value) = value else {
                return Err(missing(format!("there is no chunk {number} in namespace {nsid}")));
            };
            if skip > 0 && skip >= value.bytes() {
                return Err(missing(format!("chunk {number} has no byte {skip}")));
            }
            Ok(Opened::Value(value, skip))
        }
        Read::Keys(keys) => Ok(Opened::Keys(keys)),
        Read::Inline { bytes } => {
            Ok(Opened::Piece(Piece::Inline { bytes: Buffer::from_slice(&bytes) }))
        }
        Read::Blocks { slba, skip, bytes } => {
            let block = compute.block.clone();
            Ok(Opened::Piece(Piece::Blocks { block, slba, skip, bytes }))
        }
        Read::Memory { start, bytes } => {
            let memory = Arc::clone(&compute.shared.memory);
            Ok(Opened::Piece(Piece::Memory { memory, start, bytes }))
        }
    }
}

/// An opened read: a value of known size, whose version is pinned, one piece, or a listing.
enum Opened {
    Value(Value, u32),
    Piece(Piece),
    Keys(Listing),
}

/// One read of at most [`PIECE_BYTES`].
pub(super) enum Piece {
    Value { value: Rc<Value>, at: u32, bytes: u32, skip: usize },
    Blocks { block: Block, slba: u64, skip: u64, bytes: u32 },
    Memory { memory: Arc<LocalMemory>, start: u64, bytes: u32 },
    Inline { bytes: Buffer },
}

impl Piece {
    fn bytes(&self) -> usize {
        match self {
            Self::Value { bytes, .. } | Self::Blocks { bytes, .. } | Self::Memory { bytes, .. } => {
                *bytes as usize
            }
            Self::Inline { bytes } => bytes.len(),
        }
    }

    /// Returns the value whose last part this is.
    fn ends(&self) -> Option<Rc<Value>> {
        match self {
            Self::Value { value, at, bytes, .. } if at + bytes == value.bytes() => {
                Some(Rc::clone(value))
            }
            _ => None,
        }
    }

    async fn read(self) -> Result<Chunk, Status> {
        match self {
            Self::Value { value, at, bytes, skip } => {
                let bytes = value.read_unchecked(at, bytes).await?;
                Ok(Chunk { bytes, skip, check: Check::Part })
            }
            Self::Blocks { block, slba, skip, bytes } => {
                let buffer = Buffer::with_room(0, bytes as usize, 0);
                let bytes = block.read(slba, skip, buffer).await?;
                Ok(Chunk { bytes, skip: 0, check: Check::Nothing })
            }
            Self::Inline { bytes } => Ok(Chunk { bytes, skip: 0, check: Check::Nothing }),
            Self::Memory { memory, start, bytes } => {
                let mut buffer = Buffer::with_room(0, bytes as usize, 0);
                memory.read_in_turns(start, &mut buffer).await;
                Ok(Chunk { bytes: buffer, skip: 0, check: Check::Nothing })
            }
        }
    }
}
