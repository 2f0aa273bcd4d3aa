//! One command, from its queue entry to its answer.
//!
//! Never: how a namespace does it. Invariants: every way out answers the permit once; a command's
//! data descriptor is checked before any data moves; no more than the drive's transfer limit is
//! ever buffered for one command.

use std::rc::Rc;

use csd_nvme::capsule::{SGL_IN_CAPSULE, SGL_TRANSPORT, Sqe};
use csd_nvme::controller::admin::{self, ADMIN_DATA_BYTES_MAX};
use csd_nvme::controller::queue::Permit;
use csd_nvme::status::Status;
use csd_nvme::{NSID_ALL, compute, kv, nvm};
use csd_reactor::Buffer;

use super::link::{HEADROOM, Link, TAILROOM};
use super::{PDU_DATA_BYTES_MAX, auth, session};
use crate::controller::CoreCounters;
use crate::drive::Core;
use crate::namespace::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_OBJECTS};

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
}

/// Runs a command of an admin queue, of a connection without a queue, or of one whose host has
/// not authenticated itself.
pub async fn run_admin(core: Rc<Core>, link: Rc<Link>, received: Received) {
    let Received { permit, sqe, capsule, number } = received;
    if let Err(status) = link.gate.pass(&sqe) {
        return link.complete(permit, status, 0);
    }
    let wanted = admin::data_to_controller(&sqe);
    if wanted > ADMIN_DATA_BYTES_MAX {
        return link.complete(permit, Status::SGL_LENGTH_INVALID, 0);
    }
    match payload(&core, &link, &permit, &sqe, capsule, wanted).await {
        Ok(data) => {
            let data: Vec<u8> = data.iter().flat_map(|piece| piece.iter().copied()).collect();
            if auth::is_auth(&sqe) {
                return auth::run(&link, permit, &sqe, data).await;
            }
            session::run(&core, &link, number, permit, &sqe, &data);
        }
        Err(status) => link.complete(permit, status, 0),
    }
}

/// Runs a command of an I/O queue.
pub async fn run_io(core: Rc<Core>, link: Rc<Link>, received: Received) {
    let Received { permit, sqe, capsule, .. } = received;
    let result = match sqe.nsid() {
        NSID_BLOCK => block(&core, &link, &permit, &sqe, capsule).await,
        NSID_KV | NSID_OBJECTS => key_value(&core, &link, &permit, &sqe, capsule).await,
        NSID_COMPUTE => execute(&core, &link, &permit, &sqe, capsule).await,
        // Flush is the one command that the standard lets name all namespaces.
        NSID_ALL if sqe.opcode() == 0 => core.block.flush().await.map(|()| Done::Result(0)),
        _ => Err(Status::INVALID_NAMESPACE),
    };
    match result {
        Ok(Done::Result(result)) => link.complete(permit, Status::SUCCESS, result),
        Ok(Done::Data(result)) => link.finish_data(permit, result),
        Err(status) => {
            core.note_failure(status);
            link.complete(permit, status, 0);
        }
    }
}

/// How a command ended well.
enum Done {
    /// With a result, and no data.
    Result(u64),
    /// With data that has been queued, and a result.
    Data(u64),
}

/// The bytes that come with a command: from its capsule, or by a transfer.
async fn payload(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
    bytes: u32,
) -> Result<Vec<Buffer>, Status> {
    let sgl = sqe.sgl();
    if bytes == 0 {
        return if capsule.is_none() { Ok(Vec::new()) } else { Err(Status::INVALID_FIELD) };
    }
    if sgl.length() != bytes {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    match (sgl.kind(), capsule) {
        (SGL_IN_CAPSULE, _) if sgl.address() != 0 => Err(Status::SGL_OFFSET_INVALID),
        (SGL_IN_CAPSULE, Some(buffer)) if buffer.len() == bytes as usize => Ok(vec![buffer]),
        (SGL_IN_CAPSULE, _) => Err(Status::SGL_LENGTH_INVALID),
        (SGL_TRANSPORT, None) => {
            // A grant is made only when there is memory for it.
            let budget = core.budget.acquire(Core::budget_units(bytes)).await;
            let pieces = link.receive(permit.cid(), bytes).await;
            drop(budget);
            pieces
        }
        _ => Err(Status::SGL_TYPE_INVALID),
    }
}

/// Checks the host's buffer for an answer with data: room for `bytes` bytes by transfer.
fn check_buffer(core: &Core, sqe: &Sqe, bytes: u64) -> Result<(), Status> {
    if bytes > u64::from(core.shared.subsystem.transfer_bytes_max()) {
        return Err(Status::INVALID_FIELD);
    }
    if u64::from(sqe.sgl().length()) < bytes {
        return Err(Status::SGL_LENGTH_INVALID);
    }
    if sqe.sgl().kind() != SGL_TRANSPORT { Err(Status::SGL_TYPE_INVALID) } else { Ok(()) }
}

async fn block(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    match nvm::Command::parse(sqe)? {
        nvm::Command::Flush => core.block.flush().await.map(|()| Done::Result(0)),
        nvm::Command::Read(extent) => {
            let bytes = core.block.length(extent)?;
            check_buffer(core, sqe, bytes)?;
            let mut offset = 0;
            while offset < bytes {
                link.room().await;
                let length = (bytes - offset).min(u64::from(PDU_DATA_BYTES_MAX));
                let size = usize::try_from(length).expect("at most 128 KiB");
                let buffer = Buffer::with_room(HEADROOM, size, TAILROOM);
                let buffer = core.block.read(extent.slba, offset, buffer).await?;
                let at = u32::try_from(offset).expect("within the transfer limit");
                offset += length;
                link.send_data(permit, at, buffer, offset == bytes, true);
            }
            core.count_read(bytes);
            Ok(Done::Data(0))
        }
        nvm::Command::Write { extent, fua } => {
            let bytes = core.block.length(extent)?;
            if bytes > u64::from(core.shared.subsystem.transfer_bytes_max()) {
                return Err(Status::INVALID_FIELD);
            }
            let bytes = u32::try_from(bytes).expect("within the transfer limit");
            let data = payload(core, link, permit, sqe, capsule, bytes).await?;
            core.count_write(u64::from(bytes));
            core.block.write(extent, data, fua).await.map(|()| Done::Result(0))
        }
    }
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
            let value = payload(core, link, permit, sqe, capsule, size).await?;
            core.count_write(u64::from(size));
            core.kv.store(nsid, key, value, options).await.map(|()| Done::Result(0))
        }
        kv::Command::Retrieve { key, size } => {
            retrieve(core, link, permit, sqe, (nsid, key), size).await
        }
        kv::Command::List { from, size } => {
            check_buffer(core, sqe, u64::from(size))?;
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

async fn retrieve(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    (nsid, key): (u16, kv::Key),
    size: u32,
) -> Result<Done, Status> {
    check_buffer(core, sqe, u64::from(size))?;
    let value = core.kv.open(nsid, key).await?;
    let mut value = value.ok_or(Status::KEY_DOES_NOT_EXIST)?;
    let (whole, wanted) = (value.bytes(), value.bytes().min(size));
    let mut sent = 0;
    while sent < wanted {
        link.room().await;
        let most = PDU_DATA_BYTES_MAX as usize;
        let piece = value.next(most, HEADROOM, TAILROOM).await?;
        let mut piece = piece.expect("a value is as long as it says");
        piece.truncate((wanted - sent) as usize);
        let at = sent;
        sent += u32::try_from(piece.len()).expect("at most 128 KiB");
        // The value's size is the result: the response capsule is always sent.
        link.send_data(permit, at, piece, sent == wanted, false);
    }
    core.count_read(u64::from(wanted));
    Ok(if wanted == 0 { Done::Result(u64::from(whole)) } else { Done::Data(u64::from(whole)) })
}

async fn execute(
    core: &Core,
    link: &Link,
    permit: &Permit,
    sqe: &Sqe,
    capsule: Option<Buffer>,
) -> Result<Done, Status> {
    let compute::Command::Execute { program, length } = compute::Command::parse(sqe)?;
    let data = payload(core, link, permit, sqe, capsule, length).await?;
    let data: Vec<u8> = data.iter().flat_map(|piece| piece.iter().copied()).collect();
    core.compute.execute(program, &data).await.map(Done::Result)
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
    fn count_read(&self, bytes: u64) {
        CoreCounters::add(&self.counters.reads, 1);
        CoreCounters::add(&self.counters.read_bytes, bytes);
    }

    fn count_write(&self, bytes: u64) {
        CoreCounters::add(&self.counters.writes, 1);
        CoreCounters::add(&self.counters.written_bytes, bytes);
    }
}
