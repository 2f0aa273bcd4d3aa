//! Commands of the Subsystem Local Memory command set: data between the wire, memory and blocks.
//!
//! It does not know where a byte lies. Invariants: a range is checked before any of its data moves;
//! a Copy that fails does not say how far it came.

use csd_nvme::memory::{Command, Range, Source, memory_sources, sources};
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_BLOCK;
use csd_reactor::yield_now;

use super::super::data_pdu::DataPdu;
use super::super::request::{Done, Payload, Request};
use crate::drive::Core;
use crate::namespace::block::{COPY_BYTES_MAX, PIECE_BYTES};

/// Bytes of a source descriptor.
const DESCRIPTOR_BYTES: u32 = 32;

/// Runs a command of the memory namespace.
pub(super) async fn run(request: &mut Request) -> Result<Done, Status> {
    let core = request.core.clone();
    let memory = &core.shared.memory;
    match Command::parse(&request.sqe)? {
        Command::Read(range) => read(request, range).await,
        Command::Write(range) => {
            memory.check(range)?;
            let bytes = transfer_bytes(&core, range)?;
            let Payload { pieces, held } = request.payload(bytes).await?;
            let mut at = range.start;
            for piece in &pieces {
                memory.write_in_turns(at, piece).await;
                at += piece.len() as u64;
                yield_now().await;
            }
            drop(held);
            Ok(Done::Result(0))
        }
        Command::Fill(range) => memory.fill(range).await.map(|()| Done::Result(0)),
        Command::Copy { to, sources: count, format } => {
            memory.check(to)?;
            let bytes = u32::from(count) * DESCRIPTOR_BYTES;
            let data = request.payload(bytes).await?.joined().await;
            copy(request, &sources(format, &data), to).await.map(|()| Done::Result(0))
        }
    }
}

/// Returns the length of a range that one transfer moves.
fn transfer_bytes(core: &Core, range: Range) -> Result<u32, Status> {
    let bytes = u32::try_from(range.length).map_err(|_| Status::INVALID_FIELD)?;
    let most = core.shared.subsystem.transfer_bytes_max();
    if bytes > most { Err(Status::INVALID_FIELD) } else { Ok(bytes) }
}

async fn read(request: &Request, range: Range) -> Result<Done, Status> {
    let core = &request.core;
    core.shared.memory.check(range)?;
    request.check_buffer(range.length)?;
    let bytes = transfer_bytes(core, range)?;
    let mut pdu = DataPdu::new(request, bytes, true);
    while pdu.next_bytes() > 0 {
        let room = pdu.room(false).await;
        let mut piece = pdu.buffer();
        core.shared.memory.read_in_turns(range.start + u64::from(pdu.offset()), &mut piece).await;
        pdu.put(piece, room);
    }
    pdu.end(Ok(())).await?;
    Ok(Done::Data(0))
}

/// Copies to memory, from blocks or from memory (Memory Copy).
async fn copy(request: &Request, sources: &[Source], to: Range) -> Result<(), Status> {
    let core = &request.core;
    let memory = &core.shared.memory;
    let (mut extents, mut ranges, mut bytes) = (Vec::new(), Vec::new(), 0u64);
    for source in sources {
        match *source {
            Source::Blocks { nsid, extent } => {
                check_block_namespace(core, nsid)?;
                bytes = bytes.saturating_add(core.block.length(extent)?);
                extents.push(extent);
            }
            Source::Memory { nsid, range } => {
                memory.check_of(nsid, range.aligned()?)?;
                bytes = bytes.saturating_add(range.length);
                ranges.push(range);
            }
        }
    }
    if bytes != to.length {
        return Err(Status::INVALID_FIELD);
    }
    if extents.is_empty() {
        return memory.copy(&ranges, to).await;
    }
    // One piece of the sources is in memory at a time, as in Verify.
    let budget = request.link.host.there(core.budget.grant(PIECE_BYTES)).await;
    let mut at = to.start;
    for extent in &extents {
        at = from_blocks(core, *extent, at).await?;
    }
    drop(budget);
    Ok(())
}

/// Checks that a source of blocks names the block namespace.
fn check_block_namespace(core: &Core, nsid: u32) -> Result<(), Status> {
    match core.shared.subsystem.namespace(nsid) {
        Some(_) if nsid == NSID_BLOCK => Ok(()),
        Some(_) => Err(Status::INCOMPATIBLE_NAMESPACE),
        None => Err(Status::INVALID_NAMESPACE),
    }
}

/// Copies an extent to byte `at`. Returns the offset behind its last byte.
async fn from_blocks(core: &Core, extent: Extent, at: u64) -> Result<u64, Status> {
    let bytes = core.block.length(extent)?;
    let mut done = 0;
    while done < bytes {
        let piece = core.block.piece(extent.slba, done, bytes).await?;
        core.shared.memory.write_in_turns(at + done, &piece).await;
        done += piece.len() as u64;
    }
    core.count_read(bytes);
    Ok(at + bytes)
}

/// Copies from memory to blocks (Copy with descriptor format 4h). Returns the number of bytes.
pub(super) async fn to_blocks(
    request: &Request,
    descriptors: &[u8],
    slba: u64,
    fua: bool,
) -> Result<u64, Status> {
    let core = &request.core;
    let memory = &core.shared.memory;
    let sources = memory_sources(descriptors);
    let mut bytes = 0u64;
    for (nsid, range) in &sources {
        memory.check_of(*nsid, range.aligned()?)?;
        bytes = bytes.saturating_add(range.length);
    }
    let block_bytes = u64::from(core.block.block_bytes());
    if bytes > u64::from(COPY_BYTES_MAX) {
        return Err(Status::COPY_LIMIT_EXCEEDED);
    }
    if !bytes.is_multiple_of(block_bytes) {
        return Err(Status::INVALID_FIELD);
    }
    let blocks = u32::try_from(bytes / block_bytes).expect("within the limit");
    let extent = Extent { slba, blocks };
    core.block.length(extent)?;
    let bytes_max = u32::try_from(bytes).expect("within the limit");
    let budget = request.link.host.there(core.budget.grant(bytes_max)).await;
    let mut data = Vec::new();
    for (_, range) in sources {
        data.append(&mut memory.collect(range, PIECE_BYTES as usize).await);
    }
    core.block.write(extent, data, fua).await?;
    drop(budget);
    Ok(bytes)
}
