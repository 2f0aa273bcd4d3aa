//! Reads of an execution's sources: from the payload's sources to pieces of bytes.
//!
//! Invariants: every source is read in pieces of at most [`PIECE_BYTES`]; with digests, no piece of
//! blocks belongs to two of them.

use std::rc::Rc;
use std::sync::Arc;

use csd_kernels::program::{Check, Chunk};
use csd_kvlog::Value;
use csd_nvme::memory::Range;
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_BLOCK;
use csd_nvme::vendor::execute::{Execution, SourceData, chunk_key};
use csd_reactor::{Buffer, yield_now};

use super::key_source::KeySource;
use super::{Compute, Failure, values_of};
use crate::namespace::block::Block;
use crate::namespace::memory::LocalMemory;

/// Longest piece of a source read at once.
pub(super) const PIECE_BYTES: u32 = 1 << 20;

/// Longest piece of inline bytes, which are copied.
const INLINE_BYTES: usize = 128 << 10;

/// CRC-32C of no bytes.
const EMPTY: u32 = 0;

/// One read of a source.
pub(super) enum Read {
    Value { nsid: u16, prefix: [u8; 12], number: u32, skip: u32, digest: Option<u32> },
    Inline { bytes: Buffer },
    Blocks(Run),
    Memory { start: u64, bytes: u32 },
    Keys(KeySource),
}

/// Bytes of a run of logical blocks.
pub(super) struct Run {
    slba: u64,
    /// Bytes to skip from there.
    skip: u64,
    bytes: u32,
    /// Bytes at the beginning that are read for the checksum, and not shown to the program.
    hidden: usize,
    check: Check,
}

/// Plans the reads of every stream, and checks them as far as that needs no reading.
pub(super) async fn plan(
    compute: &Compute,
    execution: &Execution,
) -> Result<Vec<Vec<Read>>, Failure> {
    let mut streams: Vec<Vec<Read>> = (0..execution.streams()).map(|_| Vec::new()).collect();
    let mut inline = &execution.inline[..];
    let mut digests =
        execution.digests.as_ref().map(|digests| digests.of_sources(&execution.sources));
    for source in &execution.sources {
        let reads = &mut streams[usize::from(source.stream)];
        let unit_bytes = execution.unit_of(source);
        let sums = digests.as_mut().and_then(Iterator::next).filter(|sums| !sums.is_empty());
        let sum = |index: usize| sums.map(|sums| sums[index]);
        match source.data {
            SourceData::KvChunks { nsid, prefix, first, count, stride } => {
                let (nsid, skip) = (values_of(nsid)?, 0);
                let numbers = (0..count).map(|step| first + step * stride).enumerate();
                reads.extend(numbers.map(|(index, number)| {
                    let digest = sum(index);
                    Read::Value { nsid, prefix, number, skip, digest }
                }));
            }
            SourceData::KvTail { nsid, prefix, number, skip } => {
                let (nsid, digest) = (values_of(nsid)?, sum(0));
                reads.push(Read::Value { nsid, prefix, number, skip, digest });
            }
            SourceData::Keys { nsid, from } => {
                reads.push(Read::Keys(KeySource::begin(compute, execution, nsid, from)?));
            }
            SourceData::Inline { bytes } => {
                let cut = inline.split_at_checked(bytes as usize);
                let (bytes, rest) = cut.ok_or(Status::INVALID_PROGRAM_DATA)?;
                for piece in bytes.chunks(INLINE_BYTES) {
                    yield_now().await;
                    reads.push(Read::Inline { bytes: Buffer::from_slice(piece) });
                }
                inline = rest;
            }
            SourceData::Blocks { nsid, slba, skip, bytes } => {
                if nsid != NSID_BLOCK {
                    return Err(Failure::no_namespace("block", nsid));
                }
                let sums = unit_bytes.zip(sums);
                plan_blocks(&compute.block, (slba, skip, bytes), sums, reads)?;
            }
            SourceData::Memory { nsid, start, bytes } => {
                let range = Range { start, length: bytes.into() };
                compute.shared.memory.check_of(nsid, range)?;
                plan_memory(range, reads);
            }
        }
    }
    Ok(streams)
}

/// Plans the reads of blocks; with digests, each of a unit of so many bytes, from the first byte of
/// the first block on.
fn plan_blocks(
    block: &Block,
    (slba, skip, bytes): (u64, u32, u32),
    digests: Option<(u32, &[u32])>,
    reads: &mut Vec<Read>,
) -> Result<(), Failure> {
    let (block_bytes, end) = (block.block_bytes(), u64::from(skip) + u64::from(bytes));
    let blocks = end.div_ceil(block_bytes.into());
    let blocks = u32::try_from(blocks).map_err(|_| Status::LBA_OUT_OF_RANGE)?;
    block.length(Extent { slba, blocks })?;
    let Some((unit_bytes, sums)) = digests else {
        let unit = (skip.into(), end);
        plan_unit((slba, skip.into()), unit, None, reads);
        return Ok(());
    };
    if !unit_bytes.is_multiple_of(block_bytes) {
        return Err(Failure::misuse("a digest does not cover whole blocks"));
    }
    let mut start = 0;
    for sum in sums {
        let unit = (start, end.min(start + u64::from(unit_bytes)));
        plan_unit((slba, skip.into()), unit, Some(*sum), reads);
        start = unit.1;
    }
    Ok(())
}

/// Plans the reads of bytes `start` to `end`, counted from block `slba`; the program is shown those
/// from byte `first` on.
fn plan_unit(
    (slba, first): (u64, u64),
    (start, end): (u64, u64),
    digest: Option<u32>,
    reads: &mut Vec<Read>,
) {
    let mut at = start;
    while at < end {
        let bytes = u64::from(PIECE_BYTES).min(end - at);
        let check = match digest {
            None => Check::Nothing,
            Some(sum) if at + bytes == end => Check::End(sum),
            Some(_) => Check::Part,
        };
        let hidden = first.saturating_sub(at).min(bytes);
        let hidden = usize::try_from(hidden).expect("at most a piece");
        let bytes = u32::try_from(bytes).expect("at most a piece");
        reads.push(Read::Blocks(Run { slba, skip: at, bytes, hidden, check }));
        at += u64::from(bytes);
    }
}

fn plan_memory(range: Range, reads: &mut Vec<Read>) {
    let (mut start, mut left) = (range.start, range.length);
    while left > 0 {
        let bytes = PIECE_BYTES.min(u32::try_from(left).unwrap_or(u32::MAX));
        reads.push(Read::Memory { start, bytes });
        (start, left) = (start + u64::from(bytes), left - u64::from(bytes));
    }
}

/// An opened read: a value of known size, whose version is pinned, one piece, or a listing.
pub(super) enum Opened {
    Value { value: Value, skip: u32, digest: Option<u32> },
    Piece(InputPiece),
    Keys(KeySource),
}

/// Opens a read.
pub(super) async fn open(compute: &Compute, read: Read) -> Result<Opened, Failure> {
    match read {
        Read::Value { nsid, prefix, number, skip, digest } => {
            let value = compute.kv.open(nsid, chunk_key(&prefix, number)).await?;
            let missing = |reason| Failure::new(Status::SOURCE_MISSING, reason);
            let Some(value) = value else {
                return Err(missing(format!("there is no chunk {number} in namespace {nsid}")));
            };
            // No step of a program comes to an empty value, where the digest would be looked at.
            if value.bytes() == 0 && digest.is_some_and(|digest| digest != EMPTY) {
                let reason = format!("chunk {number} is empty, which is not its checksum");
                return Err(Failure::new(Status::UNRECOVERED_ERROR, reason));
            }
            if skip > 0 && skip >= value.bytes() {
                return Err(missing(format!("chunk {number} has no byte {skip}")));
            }
            Ok(Opened::Value { value, skip, digest })
        }
        Read::Keys(keys) => Ok(Opened::Keys(keys)),
        Read::Inline { bytes } => Ok(Opened::Piece(InputPiece::Inline { bytes })),
        Read::Blocks(run) => {
            Ok(Opened::Piece(InputPiece::Blocks { block: compute.block.clone(), run }))
        }
        Read::Memory { start, bytes } => {
            let memory = Arc::clone(&compute.shared.memory);
            Ok(Opened::Piece(InputPiece::Memory { memory, start, bytes }))
        }
    }
}

/// One read of at most [`PIECE_BYTES`].
pub(super) enum InputPiece {
    Value { value: Rc<Value>, at: u32, bytes: u32, hidden: usize },
    Blocks { block: Block, run: Run },
    Memory { memory: Arc<LocalMemory>, start: u64, bytes: u32 },
    Inline { bytes: Buffer },
}

impl InputPiece {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Blocks { run, .. } => run.bytes as usize,
            Self::Value { bytes, .. } | Self::Memory { bytes, .. } => *bytes as usize,
            Self::Inline { bytes } => bytes.len(),
        }
    }

    pub(super) async fn read(self) -> Result<Chunk, Status> {
        match self {
            Self::Value { value, at, bytes, hidden } => {
                let bytes = value.read_unchecked(at, bytes).await?;
                Ok(Chunk { bytes, skip: hidden, check: Check::Part })
            }
            Self::Blocks { block, run } => {
                let buffer = Buffer::with_room(0, run.bytes as usize, 0);
                let bytes = block.read(run.slba, run.skip, buffer).await?;
                Ok(Chunk { bytes, skip: run.hidden, check: run.check })
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
