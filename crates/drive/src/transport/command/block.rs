//! Commands of a block namespace: what moves between the wire and the namespace.
//!
//! Never: where a block lies. Invariants: an extent is checked before any of its data moves; both
//! halves of a fused pair are answered, each once, the first one first.

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::Permit;
use csd_nvme::nvm::{self, Command, Extent};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::PDU_DATA_BYTES_MAX;
use super::command::{Done, Payload, Received, check_buffer, fail, payload};
use super::link::{HEADROOM, Link, TAILROOM};
use super::memory;
use crate::drive::Core;
use crate::namespace::NSID_BLOCK;
use crate::namespace::block::{COPY_BYTES_MAX, PIECE_BYTES};

/// Longest list of ranges: 256 of Dataset Management, 128 of Copy.
const LIST_BYTES_MAX: u32 = 4096;

/// Runs a command of the block namespace that stands for itself.
pub(super) async fn run(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    let nothing = |()| Done::Result(0);
    match Command::parse(sqe)? {
        Command::Flush => core.block.flush().await.map(nothing),
        Command::Read(extent) => read(core, link, permit, sqe, extent).await,
        Command::Write { extent, fua } => {
            let data = extent_payload(core, link, permit, sqe, capsule, extent).await?;
            core.count_write(core.block.length(extent)?);
            let Payload { pieces, held } = data;
            let written = core.block.write(extent, pieces, fua).await;
            drop(held);
            written.map(nothing)
        }
        Command::Compare(extent) => {
            let data = extent_payload(core, link, permit, sqe, capsule, extent).await?;
            core.count_read(core.block.length(extent)?);
            core.block.compare(extent, &data.pieces).await.map(nothing)
        }
        Command::WriteZeroes { extent, fua, deallocate } => {
            core.block.zero(extent, deallocate, fua).await.map(nothing)
        }
        Command::Dataset { ranges, deallocate } => {
            let data = list(core, link, permit, sqe, capsule, u32::from(ranges) * 16).await?;
            // Without Deallocate there are hints only, and none that would help us.
            if !deallocate {
                return Ok(Done::Result(0));
            }
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
            let data = list(core, link, permit, sqe, capsule, u32::from(ranges) * 32).await?;
            let sources = nvm::copy_ranges(&data);
            // What is read waits in memory: as much as a host's own data may.
            let blocks: u64 = sources.iter().map(|source| u64::from(source.blocks)).sum();
            let bytes = blocks * u64::from(core.block.block_bytes());
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(COPY_BYTES_MAX);
            let budget = link.host.there(core.budget.grant(bytes)).await;
            let copied = core.block.copy(&sources, slba, fua).await;
            drop(budget);
            core.count_write(copied?);
            Ok(Done::Result(0))
        }
        Command::CopyMemory { slba, ranges, fua } => {
            let bytes = u32::from(ranges) * 32;
            let data = payload(core, link, permit, sqe, capsule, bytes).await?.joined();
            core.count_write(memory::to_blocks(core, link, &data, slba, fua).await?);
            Ok(Done::Result(0))
        }
    }
}

async fn read(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    extent: Extent,
) -> Result<Done, Status> {
    let bytes = core.block.length(extent)?;
    check_buffer(core, sqe, bytes)?;
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(u64::from(PDU_DATA_BYTES_MAX));
        let _held = link.answer(length).await;
        if core.block.answers_at_once() {
            // What is read long before it is sent has left the cache.
            link.room().await;
        }
        let _reserved = link.reserve(length).await;
        let size = usize::try_from(length).expect("at most 128 KiB");
        let buffer = Buffer::with_room(HEADROOM, size, TAILROOM);
        let buffer = core.block.read(extent.slba, offset, buffer).await?;
        // The medium is kept busy while what was read before is sent.
        link.room().await;
        let at = u32::try_from(offset).expect("within the transfer limit");
        offset += length;
        link.send_data(permit, at, buffer, offset == bytes, true);
    }
    core.count_read(bytes);
    Ok(Done::Data(0))
}

/// A list of ranges of `bytes` bytes. Hosts may send more than that, up to what the longest list
/// takes: Linux does, for controllers that do not look at the number of ranges.
async fn list(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
    bytes: u32,
) -> Result<Vec<u8>, Status> {
    let given = sqe.sgl().length();
    if given < bytes || given > bytes.max(LIST_BYTES_MAX) {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    let mut data = payload(core, link, permit, sqe, capsule, given).await?.joined();
    data.truncate(bytes as usize);
    Ok(data)
}

/// The data that comes with an extent.
async fn extent_payload(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
    extent: Extent,
) -> Result<Payload, Status> {
    let bytes = core.block.length(extent)?;
    if bytes > u64::from(core.shared.subsystem.transfer_bytes_max()) {
        return Err(Status::INVALID_FIELD);
    }
    let bytes = u32::try_from(bytes).expect("within the transfer limit");
    payload(core, link, permit, sqe, capsule, bytes).await
}

/// Runs a fused pair, and answers both.
pub(super) async fn run_pair(
    core: &Core,
    link: &Link,
    first: Received,
    (permit, sqe, capsule): (Permit, Sqe, Option<Buffer>),
) {
    let Received { permit: first_permit, sqe: first_sqe, capsule: first_capsule, .. } = first;
    let first = (&first_permit, &first_sqe, first_capsule);
    let (one, two) = pair(core, link, first, (&permit, &sqe, capsule)).await;
    answer(core, link, first_permit, &first_sqe, one);
    answer(core, link, permit, &sqe, two);
}

type Half<'a> = (&'a Permit, &'a Sqe, Option<Buffer>);
type Ended = Result<(), Status>;

async fn pair(core: &Core, link: &Link, first: Half<'_>, second: Half<'_>) -> (Ended, Ended) {
    let failed = Status::ABORTED_FAILED_FUSED;
    let (extent, fua) = match nvm::compare_and_write(first.1, second.1) {
        Ok(both) if first.1.nsid() == NSID_BLOCK && core.shared.serves(NSID_BLOCK) => both,
        Ok(_) => return (Err(Status::INVALID_NAMESPACE), Err(Status::INVALID_NAMESPACE)),
        Err(status) => return (Err(status), Err(status)),
    };
    if core.shared.settings.refuses(NSID_BLOCK, second.1.opcode()) {
        return (Err(failed), Err(Status::NAMESPACE_WRITE_PROTECTED));
    }
    let compared = match extent_payload(core, link, first.0, first.1, first.2, extent).await {
        Ok(data) => data,
        Err(status) => return (Err(status), Err(failed)),
    };
    let data = match extent_payload(core, link, second.0, second.1, second.2, extent).await {
        Ok(data) => data,
        Err(status) => return (Err(failed), Err(status)),
    };
    core.count_write(u64::from(extent.blocks) * u64::from(core.block.block_bytes()));
    let both = (compared.pieces, data.pieces);
    let ended = core.block.compare_and_write(extent, both, fua).await;
    drop((compared.held, data.held));
    ended
}

fn answer(core: &Core, link: &Link, permit: Permit, sqe: &Sqe, ended: Ended) {
    match ended {
        Ok(()) => link.complete(permit, Status::SUCCESS, 0),
        // A namespace that a host protects says nothing of the medium's health.
        Err(status @ Status::NAMESPACE_WRITE_PROTECTED)
            if core.shared.settings.refuses(sqe.nsid(), sqe.opcode()) =>
        {
            link.note_error(&permit, sqe, status);
            link.complete(permit, status, 0);
        }
        Err(status) => fail(core, link, permit, sqe, status),
    }
}
