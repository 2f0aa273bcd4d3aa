//! Commands that are answered where they are parsed: single reads and writes of blocks, of at most
//! one PDU of data, on a medium that makes nobody wait.
//!
//! They take no future, no slot and no share of the connection's memory, because they never wait
//! holding any. Never: an answer of its own to what is unusual; everything but success is left to
//! [`run_io`](super::command::run_io), which starts from the beginning. Invariant: a command is
//! either answered here or handed back untouched.

use csd_nvme::capsule::{SGL_IN_CAPSULE, Sqe};
use csd_nvme::controller::queue::Permit;
use csd_nvme::nvm::{Command, Extent};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::PDU_DATA_BYTES_MAX;
use super::command::check_buffer;
use super::link::{HEADROOM, Link, TAILROOM};
use crate::drive::Core;
use crate::namespace::NSID_BLOCK;

/// Answers a read; the permit comes back when the command has to take the long way.
pub(super) fn read(core: &Core, link: &Link, permit: Permit, sqe: &Sqe) -> Result<(), Permit> {
    let Some((extent, bytes)) = wanted(core, sqe, true) else { return Err(permit) };
    if link.is_congested() || check_buffer(core, sqe, u64::from(bytes)).is_err() {
        return Err(permit);
    }
    let begun = core.metrics.begin(sqe);
    let mut buffer = Buffer::with_room(HEADROOM, bytes as usize, TAILROOM);
    if !core.block.read_now(extent, &mut buffer) {
        return Err(permit);
    }
    link.send_data(&permit, 0, buffer, true, true);
    core.count_read(u64::from(bytes));
    core.metrics.end(begun, 0);
    link.finish_data(permit, 0);
    Ok(())
}

/// Answers a write whose data came with its capsule, likewise.
pub(super) fn write(
    core: &Core,
    link: &Link,
    permit: Permit,
    sqe: &Sqe,
    data: &[u8],
) -> Result<(), Permit> {
    let Some((extent, bytes)) = wanted(core, sqe, false) else { return Err(permit) };
    let sgl = sqe.sgl();
    let described = (sgl.kind(), sgl.address(), sgl.length()) == (SGL_IN_CAPSULE, 0, bytes);
    let refused = core.shared.settings.refuses(NSID_BLOCK, sqe.opcode());
    if !described || refused || data.len() != bytes as usize {
        return Err(permit);
    }
    let begun = core.metrics.begin(sqe);
    if !core.block.write_now(extent, data) {
        return Err(permit);
    }
    core.count_write(u64::from(bytes));
    core.metrics.end(begun, 0);
    link.complete(permit, Status::SUCCESS, 0);
    Ok(())
}

/// The extent of a plain read or write, and its bytes, if it may be answered at once.
fn wanted(core: &Core, sqe: &Sqe, read: bool) -> Option<(Extent, u32)> {
    let is_paced = core.shared.pace.is_set();
    if sqe.nsid() != NSID_BLOCK || is_paced || !core.block.answers_at_once() {
        return None;
    }
    let extent = match Command::parse(sqe) {
        Ok(Command::Read(extent)) if read => extent,
        Ok(Command::Write { extent, .. }) if !read => extent,
        _ => return None,
    };
    let bytes = u32::try_from(core.block.length(extent).ok()?).ok()?;
    (bytes <= PDU_DATA_BYTES_MAX).then_some((extent, bytes))
}
