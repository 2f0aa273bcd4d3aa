//! Commands: dispatch by queue and namespace, and one file for each command set.
//!
//! Invariants: a command's data descriptor is checked before any data moves; no more than the
//! drive's transfer limit is buffered for one command.

mod admin;
mod auth;
mod block;
mod compute;
mod connect;
mod fabrics;
pub(super) mod fast_path;
mod kv;
mod kv_of_store;
mod memory;
mod tunnel;
mod view;

use csd_nvme::NSID_ALL;
use csd_nvme::opcode::{Admin, Cp, Nvm};
use csd_nvme::status::Status;
use csd_nvme::vendor::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};
use csd_reactor::{Instant, now};

use super::request::{Done, Request};
use crate::controller::CoreCounters;
use crate::drive::Core;

pub(super) use admin::run as run_admin;

/// Runs a command of an I/O queue.
pub(super) async fn run_io(mut request: Request) {
    if request.sqe.opcode() == Admin::FABRICS.0 {
        return fabrics::run_io(request);
    }
    let began = begin_of_peer(&request).await;
    let is_compute = request.sqe.nsid() == NSID_COMPUTE;
    let opcode = Cp(request.sqe.opcode());
    if !is_compute {
        let delay = request.core.shared.throttle.transfer(&request.sqe, request.link.side);
        request.link.host.there(delay).await;
    } else if matches!(opcode, Cp::TUNNEL_SEND | Cp::TUNNEL_RECEIVE)
        && request.core.shared.serves(NSID_COMPUTE)
    {
        return tunnel::run(request).await;
    }
    let ended = run(&mut request).await;
    end_of_peer(&[&request], began);
    request.answer(ended);
}

/// Runs a fused pair, and answers both halves, the first one first.
pub(super) async fn run_pair(mut first: Request, mut second: Request) {
    let began = begin_of_peer(&first).await;
    let (one, two) = block::pair(&mut first, &mut second).await;
    end_of_peer(&[&first, &second], began);
    first.answer(one.map(|()| Done::Result(0)));
    second.answer(two.map(|()| Done::Result(0)));
}

/// Waits until a command of another drive may begin; returns the time. Those of hosts do not wait.
async fn begin_of_peer(request: &Request) -> Option<Instant> {
    let (core, link) = (&request.core, &request.link);
    if !link.is_of_peer() {
        return None;
    }
    // A drive that stops answers it.
    let _stops = link.host.there(core.gate.passes(&core.shared.services.peers)).await;
    Some(now())
}

/// Counts the requests of one command of another drive that began then.
fn end_of_peer(requests: &[&Request], began: Option<Instant>) {
    let Some(began) = began else { return };
    let bytes = requests.iter().map(|request| u64::from(request.sqe.sgl().length())).sum();
    requests[0].core.shared.services.peers.worked(bytes, began);
}

async fn run(request: &mut Request) -> Result<Done, Status> {
    let (nsid, opcode) = (request.sqe.nsid(), request.sqe.opcode());
    let shared = &request.core.shared;
    if nsid != NSID_ALL && !shared.serves(nsid) {
        return Err(Status::INVALID_NAMESPACE);
    }
    if shared.settings.refuses(nsid, opcode) {
        return Err(Status::NAMESPACE_WRITE_PROTECTED);
    }
    match nsid {
        NSID_BLOCK => block::run(request).await,
        NSID_KV | NSID_OBJECTS => kv::run(request).await,
        NSID_MEMORY if shared.memory.bytes() > 0 => memory::run(request).await,
        NSID_COMPUTE => compute::run(request).await,
        // Flush is the only command that the standard lets name all namespaces.
        NSID_ALL if opcode == Nvm::FLUSH.0 => {
            request.core.block.flush().await?;
            request.core.kv.flush().await.map(|()| Done::Result(0))
        }
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

impl Core {
    fn count_read(&self, bytes: u64) {
        CoreCounters::add(&self.counters.reads, 1);
        CoreCounters::add(&self.counters.read_bytes, bytes);
    }

    fn count_write(&self, bytes: u64) {
        CoreCounters::add(&self.counters.writes, 1);
        CoreCounters::add(&self.counters.written_bytes, bytes);
    }
}
