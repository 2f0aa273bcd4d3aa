//! Fast path: single reads and writes of blocks, of at most one piece of data, on a medium that
//! completes synchronously. They are answered where they are parsed.
//!
//! A command here takes no future, no slot of the pool and no share of the connection's memory,
//! because it never waits. Only success is answered here; everything else takes the long way
//! ([`super::run_io`]) from the beginning. Invariant: a command is either answered, or handed back
//! untouched.

use std::rc::Rc;

use csd_nvme::capsule::SGL_IN_CAPSULE;
use csd_nvme::nvm::{Command, Extent};
use csd_nvme::vendor::NSID_BLOCK;
use csd_reactor::worked;

use super::super::data_pdu::DataPdu;
use super::super::request::Request;
use crate::limits::PIECE_BYTES_MAX;

/// Answers a read. Returns the request when it has to take the long way.
pub(in super::super) fn read(request: Request) -> Option<Request> {
    let Some((extent, bytes)) = wanted(&request, true) else { return Some(request) };
    if request.link.is_congested() || request.check_buffer(u64::from(bytes)).is_err() {
        return Some(request);
    }
    let mut pdu = DataPdu::new(&request, bytes, true);
    let mut buffer = pdu.buffer();
    if !request.core.block.read_now(extent, &mut buffer) {
        drop(pdu);
        return Some(request);
    }
    worked(bytes.into());
    pdu.put(buffer, request.link.take(0));
    drop(pdu);
    request.core.count_read(u64::from(bytes));
    request.finish_data(0);
    None
}

/// Answers a write whose data came with its capsule. Returns the request when it has to take the
/// long way.
pub(in super::super) fn write(request: Request, data: &[u8]) -> Option<Request> {
    let Some((extent, bytes)) = wanted(&request, false) else { return Some(request) };
    let sgl = request.sqe.sgl();
    let described = (sgl.kind(), sgl.address(), sgl.length()) == (SGL_IN_CAPSULE, 0, bytes);
    let refused = request.core.shared.settings.refuses(NSID_BLOCK, request.sqe.opcode());
    if !described || refused || data.len() != bytes as usize {
        return Some(request);
    }
    let core = Rc::clone(&request.core);
    let Ok(_change) = core.shared.inside_only.begin(request.link.side) else {
        return Some(request);
    };
    if !core.block.write_now(extent, data) {
        return Some(request);
    }
    worked(bytes.into());
    request.core.count_write(u64::from(bytes));
    request.complete(0);
    None
}

/// Returns the extent of a plain read or write, and its bytes, if it may be answered here.
fn wanted(request: &Request, read: bool) -> Option<(Extent, u32)> {
    let core = &request.core;
    let is_delayed = core.shared.throttle.is_set() || request.link.is_of_peer();
    if request.sqe.nsid() != NSID_BLOCK || is_delayed || !core.block.is_synchronous() {
        return None;
    }
    let extent = match Command::parse(&request.sqe) {
        Ok(Command::Read(extent)) if read => extent,
        Ok(Command::Write { extent, .. }) if !read => extent,
        _ => return None,
    };
    let bytes = u32::try_from(core.block.length(extent).ok()?).ok()?;
    (bytes <= PIECE_BYTES_MAX).then_some((extent, bytes))
}
