//! Commands of the memory namespace: what moves between the wire, memory and blocks.
//!
//! Never: where a byte is kept. Invariants: a range is checked before any of its data moves; of a
//! Copy that fails nobody is told how far it came.

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::Permit;
use csd_nvme::memory::{Command, Range, Source, memory_sources, sources};
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, yield_now};

use super::PDU_DATA_BYTES_MAX;
use super::command::{Done, Payload, check_buffer, payload};
use super::link::{HEADROOM, Link, TAILROOM};
use crate::drive::Core;
use crate::namespace::NSID_BLOCK;
use crate::namespace::block::{COPY_BYTES_MAX, PIECE_BYTES};

/// Bytes of a source descriptor.
const DESCRIPTOR_BYTES: u32 = 32;

/// Runs a command of the memory namespace.
pub(super) async fn run(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    let memory = &core.shared.memory;
    match Command::parse(sqe)? {
        Command::Read(range) => read(core, link, permit, sqe, range).await,
        Command::Write(range) => {
            memory.check(range)?;
            let bytes = transfer(core, range)?;
            let Payload { pieces, held } = payload(core, link, permit, sqe, capsule, bytes).await?;
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
            let data = payload(core, link, permit, sqe, capsule, bytes).await?.joined();
            copy(core, link, &sources(format, &data), to).await.map(|()| Done::Result(0))
        }
    }
}

/// Length of a range as one transfer.
fn transfer(core: &Core, range: Range) -> Result<u32, Status> {
    let bytes = u32::try_from(range.length).map_err(|_| Status::INVALID_FIELD)?;
    let most = core.shared.subsystem.transfer_bytes_max();
    if bytes > most { Err(Status::INVALID_FIELD) } else { Ok(bytes) }
}

async fn read(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    range: Range,
) -> Result<Done, Status> {
    core.shared.memory.check(range)?;
    check_buffer(core, sqe, range.length)?;
    let bytes = transfer(core, range)?;
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(PDU_DATA_BYTES_MAX);
        let _held = link.answer(length.into()).await;
        link.room().await;
        let _reserved = link.reserve(length.into()).await;
        let mut buffer = Buffer::with_room(HEADROOM, length as usize, TAILROOM);
        core.shared.memory.read_in_turns(range.start + u64::from(offset), &mut buffer).await;
        let at = offset;
        offset += length;
        link.send_data(permit, at, buffer, offset == bytes, true);
    }
    Ok(Done::Data(0))
}

/// Memory Copy: into memory, from blocks or from memory.
async fn copy(core: &Core, link: &Link, sources: &[Source], to: Range) -> Result<(), Status> {
    let memory = &core.shared.memory;
    let (mut extents, mut ranges, mut bytes) = (Vec::new(), Vec::new(), 0u64);
    for source in sources {
        match *source {
            Source::Blocks { nsid, extent } => {
                of_blocks(core, nsid)?;
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
    // What is read waits in memory for a moment: as much as a Verify may take.
    let budget = link.host.there(core.budget.grant(PIECE_BYTES)).await;
    let mut at = to.start;
    for extent in &extents {
        at = from_blocks(core, *extent, at).await?;
    }
    drop(budget);
    Ok(())
}

/// That a source of blocks names the block namespace.
fn of_blocks(core: &Core, nsid: u32) -> Result<(), Status> {
    match core.shared.subsystem.namespace(nsid) {
        Some(_) if nsid == NSID_BLOCK => Ok(()),
        Some(_) => Err(Status::INCOMPATIBLE_NAMESPACE),
        None => Err(Status::INVALID_NAMESPACE),
    }
}

/// Copies an extent to byte `at`; the byte behind it.
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

/// The Copy command of blocks from memory (descriptor format 4h); returns the number of bytes.
pub(super) async fn to_blocks(
    core: &Core,
    link: &Link,
    descriptors: &[u8],
    slba: u64,
    fua: bool,
) -> Result<u64, Status> {
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
    let budget = link.host.there(core.budget.grant(bytes_max)).await;
    let mut data = Vec::new();
    for (_, range) in sources {
        data.append(&mut memory.collect(range, PIECE_BYTES as usize).await);
    }
    core.block.write(extent, data, fua).await?;
    drop(budget);
    Ok(bytes)
}
