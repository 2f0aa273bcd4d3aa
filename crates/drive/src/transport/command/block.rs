//! Commands of the NVM command set: data between the wire and the block namespace.
//!
//! It does not know where a block lies. Invariants: an extent is checked before any of its data
//! moves; a fused pair has one outcome for each half.

use csd_nvme::nvm::{self, Command, Extent};
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_BLOCK;

use super::super::data_pdu::DataPdu;
use super::super::request::{Done, Payload, Request};
use super::memory;
use crate::controller::Change;
use crate::drive::Core;
use crate::namespace::block::{COPY_BYTES_MAX, PIECE_BYTES};

/// Longest list of ranges: 256 of Dataset Management, 128 of Copy.
const LIST_BYTES_MAX: u32 = 4096;

/// Runs a single command of the block namespace.
pub(super) async fn run(request: &mut Request) -> Result<Done, Status> {
    let (core, link) = (request.core.clone(), request.link.clone());
    let nothing = |()| Done::Result(0);
    match Command::parse(&request.sqe)? {
        Command::Flush => core.block.flush().await.map(nothing),
        Command::Read(extent) => read(request, extent).await,
        Command::Write { extent, fua } => {
            let data = extent_payload(request, extent).await?;
            core.count_write(core.block.length(extent)?);
            let Payload { pieces, held } = data;
            let change = begin(request)?;
            let written = core.block.write(extent, pieces, fua).await;
            drop((held, change));
            written.map(nothing)
        }
        Command::Compare(extent) => {
            let data = extent_payload(request, extent).await?;
            core.count_read(core.block.length(extent)?);
            core.block.compare(extent, &data.pieces).await.map(nothing)
        }
        Command::WriteZeroes { extent, fua, deallocate } => {
            let _change = begin(request)?;
            core.block.zero(extent, deallocate, fua).await.map(nothing)
        }
        Command::Dataset { ranges, deallocate } => {
            let data = list(request, u32::from(ranges) * 16).await?;
            // The attributes other than Deallocate are hints, and none of them helps here.
            if !deallocate {
                return Ok(Done::Result(0));
            }
            let _change = begin(request)?;
            core.block.deallocate(&nvm::dataset_ranges(&data)).await.map(nothing)
        }
        Command::Verify(extent) => {
            core.block.length(extent)?;
            let budget = link.host.there(core.budget.grant(PIECE_BYTES)).await;
            let verified = core.block.verify(extent).await;
            drop(budget);
            verified.map(nothing)
        }
        Command::Copy { slba, ranges, fua } => {
            let data = list(request, u32::from(ranges) * 32).await?;
            copy(request, &nvm::copy_ranges(&data), slba, fua).await
        }
        Command::CopyMemory { slba, ranges, fua } => {
            let data = request.payload(u32::from(ranges) * 32).await?.joined().await;
            let _change = begin(request)?;
            core.count_write(memory::to_blocks(request, &data, slba, fua).await?);
            Ok(Done::Result(0))
        }
    }
}

/// Begins a change of blocks by a command whose data is there.
fn begin(request: &Request) -> Result<Change<'_>, Status> {
    request.core.shared.inside_only.begin(request.link.side)
}

async fn copy(request: &Request, sources: &[Extent], to: u64, fua: bool) -> Result<Done, Status> {
    let core = &request.core;
    let _change = begin(request)?;
    // All sources are in memory at once: they take as much of it as a host's own data.
    let blocks: u64 = sources.iter().map(|source| u64::from(source.blocks)).sum();
    let bytes = blocks * u64::from(core.block.block_bytes());
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(COPY_BYTES_MAX);
    let budget = request.link.host.there(core.budget.grant(bytes)).await;
    let copied = core.block.copy(sources, to, fua).await;
    drop(budget);
    core.count_write(copied?);
    Ok(Done::Result(0))
}

async fn read(request: &Request, extent: Extent) -> Result<Done, Status> {
    let core = &request.core;
    let bytes = core.block.length(extent)?;
    request.check_buffer(bytes)?;
    let length = u32::try_from(bytes).expect("within the transfer limit");
    let mut pdu = DataPdu::new(request, length, true);
    let ended = read_pieces(core, extent.slba, &mut pdu).await;
    pdu.end(ended).await?;
    core.count_read(bytes);
    Ok(Done::Data(0))
}

async fn read_pieces(core: &Core, slba: u64, pdu: &mut DataPdu<'_>) -> Result<(), Status> {
    // Data of memory that is read long before it is sent has left the cache.
    let ahead = !core.block.is_synchronous();
    while pdu.next_bytes() > 0 {
        let room = pdu.room(ahead).await;
        let piece = core.block.read(slba, pdu.offset().into(), pdu.buffer()).await?;
        pdu.space().await;
        pdu.put(piece, room);
    }
    Ok(())
}

/// Receives a list of ranges of `bytes` bytes. Hosts may send more than that, up to the length of
/// the longest list: Linux does, for controllers that do not look at the number of ranges.
async fn list(request: &mut Request, bytes: u32) -> Result<Vec<u8>, Status> {
    let given = request.sqe.sgl().length();
    if given < bytes || given > bytes.max(LIST_BYTES_MAX) {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    let mut data = request.payload(given).await?.joined().await;
    data.truncate(bytes as usize);
    Ok(data)
}

/// Receives the data of an extent.
async fn extent_payload(request: &mut Request, extent: Extent) -> Result<Payload, Status> {
    let bytes = request.core.block.length(extent)?;
    if bytes > u64::from(request.core.shared.subsystem.transfer_bytes_max()) {
        return Err(Status::INVALID_FIELD);
    }
    request.payload(u32::try_from(bytes).expect("within the transfer limit")).await
}

type Ended = Result<(), Status>;

/// Runs a fused pair; returns the outcome of both halves.
pub(super) async fn pair(first: &mut Request, second: &mut Request) -> (Ended, Ended) {
    let core = first.core.clone();
    let failed = Status::ABORTED_FAILED_FUSED;
    let (extent, fua) = match nvm::compare_and_write(&first.sqe, &second.sqe) {
        Ok(both) if first.sqe.nsid() == NSID_BLOCK && core.shared.serves(NSID_BLOCK) => both,
        Ok(_) => return (Err(Status::INVALID_NAMESPACE), Err(Status::INVALID_NAMESPACE)),
        Err(status) => return (Err(status), Err(status)),
    };
    if core.shared.settings.refuses(NSID_BLOCK, second.sqe.opcode()) {
        return (Err(failed), Err(Status::NAMESPACE_WRITE_PROTECTED));
    }
    let compared = match extent_payload(first, extent).await {
        Ok(data) => data,
        Err(status) => return (Err(status), Err(failed)),
    };
    let data = match extent_payload(second, extent).await {
        Ok(data) => data,
        Err(status) => return (Err(failed), Err(status)),
    };
    let change = match begin(second) {
        Ok(change) => change,
        Err(status) => return (Err(failed), Err(status)),
    };
    core.count_write(u64::from(extent.blocks) * u64::from(core.block.block_bytes()));
    let both = (compared.pieces, data.pieces);
    let ended = core.block.compare_and_write(extent, both, fua).await;
    drop((compared.held, data.held, change));
    ended
}
