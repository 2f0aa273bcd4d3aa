//! One command, from its queue entry to its answer.
//!
//! Never: how a namespace does it. Invariants: every way out answers the permit once; a command's
//! data descriptor is checked before any data moves; no more than the drive's transfer limit is
//! ever buffered for one command.

use std::future::ready;
use std::rc::Rc;

use csd_nvme::capsule::{SGL_IN_CAPSULE, SGL_TRANSPORT, Sqe};
use csd_nvme::controller::admin::{self, ADMIN_DATA_BYTES_MAX};
use csd_nvme::controller::queue::Permit;
use csd_nvme::opcode::Admin;
use csd_nvme::status::Status;
use csd_nvme::{NSID_ALL, compute, kv};
use csd_reactor::{Buffer, now};

use super::budget::FLOOR_BYTES;
use super::lend::Lent;
use super::link::{HEADROOM, Link, TAILROOM};
use super::{PDU_DATA_BYTES_MAX, auth, block, memory, retrieve, session};
use crate::controller::{CoreCounters, executions as log};
use crate::drive::Core;
use crate::namespace::compute::Call;
use crate::namespace::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};

/// A command as the connection received it.
pub struct Received {
    /// The right to answer it.
    pub permit: Permit,
    /// Its queue entry.
    pub sqe: Sqe,
    /// In-capsule data, if there was any.
    pub capsule: Option<Buffer>,
    /// The connection's number on its core.
    pub number: u64,
    /// The first of the pair whose second this is.
    pub first: Option<Box<Received>>,
}

/// Runs a command of an admin queue, of a connection without a queue, or of one whose host has
/// not authenticated itself.
pub async fn run_admin(core: Rc<Core>, link: Rc<Link>, received: Received) {
    let Received { permit, sqe, capsule, number, .. } = received;
    if let Err(status) = link.gate.pass(&sqe) {
        return fail(&core, &link, permit, &sqe, status);
    }
    let wanted = admin::data_to_controller(&sqe);
    // Programs come in longer parts, from hosts that are known.
    let most = if link.is_admin() { admin::data_bytes_max(&sqe) } else { ADMIN_DATA_BYTES_MAX };
    if wanted > most {
        return link.complete(permit, Status::SGL_LENGTH_INVALID, 0);
    }
    match payload(&core, &link, &permit, &sqe, capsule, wanted).await {
        Ok(data) => {
            let data = data.joined();
            // An answer is queued whole: there must be room before it is made.
            link.room().await;
            // Connect may have shut the gate meanwhile.
            if let Err(status) = link.gate.pass(&sqe) {
                return fail(&core, &link, permit, &sqe, status);
            }
            if auth::is_auth(&sqe) {
                return auth::run(&core, &link, number, permit, &sqe, &data).await;
            }
            // A long answer, such as a log page, is made as a whole: it takes memory as data does
            // that a host sends.
            let long = sqe.sgl().length().min(core.shared.subsystem.transfer_bytes_max());
            let _held = match long > FLOOR_BYTES {
                true => Some(core.budget.grant(long).await),
                false => None,
            };
            session::run(&core, &link, number, permit, &sqe, &data).await;
        }
        Err(status) => fail(&core, &link, permit, &sqe, status),
    }
}

/// Runs a command of an I/O queue.
pub async fn run_io(core: Rc<Core>, link: Rc<Link>, received: Received) {
    let Received { permit, sqe, capsule, first, .. } = received;
    if let Some(first) = first {
        return block::run_pair(&core, &link, *first, (permit, sqe, capsule)).await;
    }
    if sqe.opcode() == Admin::FABRICS.0 {
        return session::run_fabrics_io(&link, permit, &sqe);
    }
    let begun = core.metrics.begin(&sqe);
    if sqe.nsid() != NSID_COMPUTE {
        link.host.there(core.shared.pace.transfer(&sqe)).await;
    }
    let result = match sqe.nsid() {
        nsid if nsid != NSID_ALL && !core.shared.serves(nsid) => Err(Status::INVALID_NAMESPACE),
        nsid if core.shared.settings.refuses(nsid, sqe.opcode()) => {
            let status = Status::NAMESPACE_WRITE_PROTECTED;
            link.note_error(&permit, &sqe, status);
            return link.complete(permit, status, 0);
        }
        NSID_BLOCK => block::run(&core, &link, &permit, &sqe, capsule).await,
        NSID_KV | NSID_OBJECTS => key_value(&core, &link, &permit, &sqe, capsule).await,
        NSID_MEMORY if core.shared.memory.bytes() > 0 => {
            memory::run(&core, &link, &permit, &sqe, capsule).await
        }
        NSID_COMPUTE => execute(&core, &link, &permit, &sqe, capsule).await,
        // Flush is the one command that the standard lets name all namespaces.
        NSID_ALL if sqe.opcode() == 0 => core.block.flush().await.map(|()| Done::Result(0)),
        _ => Err(Status::INVALID_NAMESPACE),
    };
    match result {
        Ok(Done::Result(result)) => {
            core.metrics.end(begun, result);
            link.complete(permit, Status::SUCCESS, result);
        }
        Ok(Done::Data(result)) => {
            core.metrics.end(begun, result);
            link.finish_data(permit, result);
        }
        Err(status) => {
            core.metrics.fail(begun, status);
            fail(&core, &link, permit, &sqe, status);
        }
    }
}

/// Ends a command with an error, and notes it where hosts can read of it.
pub(super) fn fail(core: &Core, link: &Link, permit: Permit, sqe: &Sqe, status: Status) {
    core.note_failure(status);
    link.note_error(&permit, sqe, status);
    link.complete(permit, status, 0);
}

/// How a command ended well.
pub(super) enum Done {
    /// With a result, and no data.
    Result(u64),
    /// With data that has been queued, and a result.
    Data(u64),
}

/// The bytes that came with a command, and the right to hold them.
#[derive(Default)]
pub(super) struct Payload {
    pub(super) pieces: Vec<Buffer>,
    // Kept until the command ends: what is being written takes memory as what is received does.
    pub(super) held: Option<Lent>,
}

impl Payload {
    /// All of it in one; each piece goes as soon as it is copied.
    pub(super) fn joined(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.pieces.iter().map(|piece| piece.len()).sum());
        self.pieces.into_iter().for_each(|piece| all.extend_from_slice(&piece));
        all
    }
}

/// The bytes that come with a command: from its capsule, or by a transfer.
pub(super) async fn payload(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
    bytes: u32,
) -> Result<Payload, Status> {
    let lend = async { Ok(link.lender.lend(&core.budget, bytes).await) };
    payload_in(lend, link, permit, sqe, capsule, bytes).await
}

/// The same, in memory that `lend` gives: a grant is made only when there is memory for it.
async fn payload_in(
    lend: impl Future<Output = Result<Lent, Status>>,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
    bytes: u32,
) -> Result<Payload, Status> {
    let sgl = sqe.sgl();
    if bytes == 0 {
        return if capsule.is_none() { Ok(Payload::default()) } else { Err(Status::INVALID_FIELD) };
    }
    if sgl.length() != bytes {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    match (sgl.kind(), capsule) {
        (SGL_IN_CAPSULE, _) if sgl.address() != 0 => Err(Status::SGL_OFFSET_INVALID),
        (SGL_IN_CAPSULE, Some(buffer)) if buffer.len() == bytes as usize => {
            Ok(Payload { pieces: vec![buffer], held: None })
        }
        (SGL_IN_CAPSULE, _) => Err(Status::SGL_LENGTH_INVALID),
        (SGL_TRANSPORT, None) => {
            let held = link.host.there(lend).await?;
            let pieces = link.receive(permit.cid(), bytes).await?;
            Ok(Payload { pieces, held: Some(held) })
        }
        _ => Err(Status::SGL_TYPE_INVALID),
    }
}

/// Checks the host's buffer for an answer with data: room for `bytes` bytes by transfer.
pub(super) fn check_buffer(core: &Core, sqe: &Sqe, bytes: u64) -> Result<(), Status> {
    if bytes > u64::from(core.shared.subsystem.transfer_bytes_max()) {
        return Err(Status::INVALID_FIELD);
    }
    if u64::from(sqe.sgl().length()) < bytes {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    if sqe.sgl().kind() != SGL_TRANSPORT { Err(Status::SGL_TYPE_INVALID) } else { Ok(()) }
}

async fn key_value(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    let nsid = u16::try_from(sqe.nsid()).expect("2 or 3");
    match kv::Command::parse(sqe)? {
        // A Store is answered when it is durable: there is nothing left to flush.
        kv::Command::Flush => Ok(Done::Result(0)),
        kv::Command::Store { key, size, options } => {
            if u64::from(size) > u64::from(core.value_bytes_max) {
                return Err(Status::INVALID_VALUE_SIZE);
            }
            let Payload { pieces, held } = payload(core, link, permit, sqe, capsule, size).await?;
            core.count_write(u64::from(size));
            let stored = core.kv.store(nsid, key, pieces, options).await;
            drop(held);
            stored.map(|()| Done::Result(0))
        }
        kv::Command::Retrieve { key, size } => {
            retrieve::run(core, link, permit, sqe, (nsid, key), size).await
        }
        kv::Command::List { from, size } => {
            check_buffer(core, sqe, u64::from(size))?;
            let _held = link.answer(u64::from(size)).await;
            let _reserved = link.reserve(u64::from(size)).await;
            let data = core.kv.list(nsid, from, size).await?;
            send_all(link, permit, &data).await;
            Ok(Done::Data(0))
        }
        kv::Command::Delete(key) => core.kv.delete(nsid, key).await.map(|()| Done::Result(0)),
        kv::Command::Exist(key) => match core.kv.exist(nsid, key).await? {
            true => Ok(Done::Result(0)),
            false => Err(Status::KEY_DOES_NOT_EXIST),
        },
    }
}

async fn execute(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    let command = compute::Command::parse(sqe)?;
    let compute::Command::Execute { program: index, length, ranges, controls } = command;
    let association = link.association().ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
    let caller = (association.cntlid, permit.queue().qid(), permit.cid());
    let host = association.host_nqn();
    let under_way = core.compute.begin(caller, controls);
    // Executions are long: their data has room of its own, not what all transfers share, and one
    // for whose data there is no room has sent none while it waits.
    let lend = async { (link.lender.own(length).await, core.budget.execution(length).await) };
    let lend = under_way.wait(lend);
    let mut data = payload_in(lend, link, permit, sqe, capsule, length).await?;
    let _held = data.held.take();
    let begun = now();
    // One that has begun is asked to end when its host leaves; none begins then.
    link.host.there(ready(())).await;
    let call = Call { caller, host, index, ranges, controls };
    let report = core.compute.execute(&under_way, &call, data.joined()).await;
    let mut entry = log::entry(&report, index, begun);
    entry.set_cid(permit.cid());
    entry.set_cntlid(association.cntlid).name_host(host);
    core.shared.execution_log.note(entry);
    link.host.there(core.shared.pace.execution(&report, begun)).await;
    report.result.map(Done::Result).map_err(|failure| failure.status)
}

async fn send_all(link: &Link, permit: &Permit, data: &[u8]) {
    let most = PDU_DATA_BYTES_MAX as usize;
    let count = data.len().div_ceil(most);
    let mut offset = 0;
    for (index, chunk) in data.chunks(most).enumerate() {
        link.room().await;
        let mut buffer = Buffer::with_room(HEADROOM, chunk.len(), TAILROOM);
        buffer.copy_from_slice(chunk);
        link.send_data(permit, offset, buffer, index + 1 == count, true);
        offset += PDU_DATA_BYTES_MAX;
    }
}

impl Core {
    pub(super) fn count_read(&self, bytes: u64) {
        CoreCounters::add(&self.counters.reads, 1);
        CoreCounters::add(&self.counters.read_bytes, bytes);
    }

    pub(super) fn count_write(&self, bytes: u64) {
        CoreCounters::add(&self.counters.writes, 1);
        CoreCounters::add(&self.counters.written_bytes, bytes);
    }
}
