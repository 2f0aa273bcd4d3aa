//! Comparison of the pages of a piece, a value or blocks, with the checksums of a page list.
//!
//! Reads a value without comparing its own checksum, so that a damaged value's pages can be named.
//! Writes nothing. Invariant: at most `PART_BYTES` bytes, or one page, are in memory at once.

use csd_kernels::verify::{self, Plan};
use csd_kvlog::{Kv, Value};
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::chunk_key;
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{List, NONE, Piece};
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};
use csd_reactor::{Buffer, class, compute_fn};

use crate::namespace::block::Block;

/// Bytes that are read at once.
const PART_BYTES: u32 = 1 << 20;

/// Pages that differ from their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Differing {
    /// The first of them, or [`NONE`].
    pub first: u32,
    /// Number of them.
    pub count: u32,
    /// Bytes read.
    pub bytes: u64,
}

/// Reader of a piece.
enum PieceReader<'a> {
    Value(Value),
    Blocks { block: &'a Block, start: u64 },
}

/// Pages of a piece of a list.
pub(crate) struct Pages<'a> {
    /// The piece.
    pub piece: Piece,
    /// Checksums of all its pages.
    pub sums: &'a [u32],
    /// First page to compare.
    pub from: u32,
}

/// Compares pages of a piece of a list. The checksums are computed in the class of the task that
/// asks.
///
/// # Errors
/// [`Status::SOURCE_MISSING`] if the piece is missing or has another length, else the status of the
/// medium.
pub(crate) async fn compare(
    kv: &Kv,
    block: &Block,
    list: &List,
    Pages { piece, sums, from }: &Pages<'_>,
) -> Result<Differing, Status> {
    let mut found = Differing { first: NONE, count: 0, bytes: 0 };
    let reader = match list.kind {
        LocationKind::VALUE => {
            let number = u32::try_from(piece.start).map_err(|_| Status::SOURCE_MISSING)?;
            let key = chunk_key(&list.object, number);
            let value = kv.open(values(list.nsid)?, key).await?.ok_or(Status::SOURCE_MISSING)?;
            if value.bytes() != piece.bytes {
                return Err(Status::SOURCE_MISSING);
            }
            PieceReader::Value(value)
        }
        _ => {
            let start = check_blocks(block, list.nsid, piece.start, piece.bytes)?;
            PieceReader::Blocks { block, start }
        }
    };
    let page_bytes = list.page_bytes;
    let at_once = (PART_BYTES / page_bytes).max(1);
    let mut page = *from;
    while let Some(begin) = page.checked_mul(page_bytes).filter(|begin| *begin < piece.bytes) {
        let length = (piece.bytes - begin).min(at_once * page_bytes);
        let bytes = reader.read(begin, length).await?;
        found.bytes += u64::from(length);
        let work = move || verify::checksums(Plan::sequential(page_bytes), &bytes);
        // The simulated clock is charged 10 GB/s, as of other programs.
        let summed = compute_fn(class(), u64::from(length) / 10, work).await;
        let summed = summed.map_err(|_| Status::INTERNAL_ERROR)?;
        for (page, (sum, expected)) in (page..).zip(summed.iter().zip(&sums[page as usize..])) {
            if sum != expected {
                found.first = found.first.min(page);
                found.count += 1;
            }
        }
        page += at_once;
    }
    Ok(found)
}

impl PieceReader<'_> {
    /// Reads bytes of the piece from byte `begin` on.
    async fn read(&self, begin: u32, length: u32) -> Result<Buffer, Status> {
        match self {
            Self::Value(value) => value.read_unchecked(begin, length).await,
            Self::Blocks { block, start } => {
                let buffer = Buffer::with_room(0, length as usize, 0);
                block.read(0, start + u64::from(begin), buffer).await
            }
        }
    }
}

fn values(nsid: u32) -> Result<u16, Status> {
    match nsid {
        NSID_KV | NSID_OBJECTS => u16::try_from(nsid).map_err(|_| Status::INVALID_NAMESPACE),
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

/// Checks that bytes are on the block namespace; returns the first.
fn check_blocks(block: &Block, nsid: u32, start: u64, bytes: u32) -> Result<u64, Status> {
    let block_bytes = u64::from(block.block_bytes());
    let skip = start % block_bytes;
    let blocks = (skip + u64::from(bytes)).div_ceil(block_bytes);
    let blocks = u32::try_from(blocks).map_err(|_| Status::LBA_OUT_OF_RANGE)?;
    block.length(Extent { slba: start / block_bytes, blocks })?;
    match nsid {
        NSID_BLOCK => Ok(start),
        _ => Err(Status::INVALID_NAMESPACE),
    }
}
