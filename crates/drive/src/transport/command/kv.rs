//! Commands of the Key Value command set: data between the wire and the kv log.
//!
//! It does not know where a value lies. Invariants: a Retrieve sends one version of the value,
//! whole and with the right checksum, or fails; a host that does not take its data keeps a version
//! from being cleaned for at most [`PIN_TIME_MAX`] and one piece.

use std::pin::pin;
use std::time::Duration;

use csd_kvlog::{Progress, Value};
use csd_nvme::kv::{Command, Key};
use csd_nvme::status::Status;
use csd_nvme::vendor::{NSID_KV, NSID_OBJECTS};
use csd_reactor::{now, timeout};

use super::super::data_pdu::DataPdu;
use super::super::link::{HEADROOM, TAILROOM};
use super::super::request::{Done, Payload, Request};
use super::kv_of_store;
use crate::drive::Core;
use crate::folders;
use crate::limits::PIECE_BYTES_MAX;
use crate::log::Level;

/// Longest time that a version is pinned while it is sent. After that the pin is released whenever
/// the command waits for its host, and the version is looked up again: it may have been moved,
/// which changes nothing, or replaced, which ends the command.
const PIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs a command of a kv namespace.
pub(super) async fn run(request: &mut Request) -> Result<Done, Status> {
    let nsid = u16::try_from(request.sqe.nsid()).expect("2 or 3");
    let core = request.core.clone();
    let command = Command::parse(&request.sqe)?;
    if let Some(store) = core.shared.kv_store.as_ref().filter(|_| request.sqe.nsid() == NSID_KV) {
        return kv_of_store::run(request, &**store, command).await;
    }
    match command {
        Command::Flush => core.kv.flush().await.map(|()| Done::Result(0)),
        Command::Store { key, size, options } => {
            if size > core.value_bytes_max {
                return Err(Status::INVALID_VALUE_SIZE);
            }
            let Payload { pieces, held } = request.payload(size).await?;
            core.count_write(u64::from(size));
            let stored = core.kv.store_in_turn(nsid, key, pieces, options).await;
            drop(held);
            request.turn = stored.inspect_err(|status| note_full(&core, *status))?;
            Ok(Done::Result(0))
        }
        Command::Retrieve { key, size } => retrieve(request, (nsid, key), size).await,
        Command::List { from, size } => {
            send_list(request, size, core.kv.list(nsid, from, size)).await
        }
        Command::Delete(key) => {
            let deleted = core.kv.delete_in_turn(nsid, key).await;
            request.turn = deleted.inspect_err(|status| note_full(&core, *status))?;
            Ok(Done::Result(0))
        }
        Command::ListFolder(key) if request.sqe.nsid() == NSID_OBJECTS => {
            let asked = folders::Request::parse(&request.sqe, key)?;
            send_list(request, asked.size, folders::list(asked)).await
        }
        Command::ListFolder(_) => Err(Status::INVALID_OPCODE),
        Command::Exist(key) => match core.kv.exist(nsid, key).await? {
            true => Ok(Done::Result(0)),
            false => Err(Status::KEY_DOES_NOT_EXIST),
        },
    }
}

/// Sends a list of at most `size` bytes. Its memory is held before it is made.
async fn send_list(
    request: &Request,
    size: u32,
    list: impl Future<Output = Result<Vec<u8>, Status>>,
) -> Result<Done, Status> {
    request.check_buffer(u64::from(size))?;
    let _held = request.link.acquire_answer(u64::from(size)).await;
    let _reserved = request.link.reserve(u64::from(size)).await;
    request.send(&list.await?, true).await;
    Ok(Done::Data(0))
}

/// Logs that a full drive does not clean: the command has cleaned by itself, as far as it helped.
fn note_full(core: &Core, status: Status) {
    if status == Status::CAPACITY_EXCEEDED && core.shared.services.clean.is_paused() {
        let advice = "csd drive service resume clean".to_owned();
        let event = "the drive is full, and its cleaning is paused";
        core.shared.log().write_rated(Level::Warn, event, &[("advice", advice)]);
    }
}

async fn retrieve(request: &Request, at: (u16, Key), size: u32) -> Result<Done, Status> {
    let core = &request.core;
    request.check_buffer(u64::from(size))?;
    let value = core.kv.open(at.0, at.1).await?;
    let value = value.ok_or(Status::KEY_DOES_NOT_EXIST)?;
    let (whole, wanted) = (value.bytes(), value.bytes().min(size));
    let mut pdu = DataPdu::new(request, wanted, false);
    let ended = send_value(core, at, value, &mut pdu).await;
    pdu.end(ended).await?;
    core.count_read(u64::from(wanted));
    Ok(if wanted == 0 { Done::Result(u64::from(whole)) } else { Done::Data(u64::from(whole)) })
}

/// Puts as much of a value as the PDU takes, and checks all of it.
async fn send_value(
    core: &Core,
    at: (u16, Key),
    mut value: Value,
    pdu: &mut DataPdu<'_>,
) -> Result<(), Status> {
    let mut opened = now();
    let mut is_checked = value.bytes() == 0;
    let ahead = !core.block.is_synchronous() && !pdu.is_whole();
    while pdu.next_bytes() > 0 {
        is_checked = true;
        let room = {
            let mut room = pin!(pdu.room(ahead));
            let left = PIN_TIME_MAX.saturating_sub(opened.elapsed());
            match timeout(left, room.as_mut()).await {
                Ok(room) => room,
                Err(_) => {
                    let progress = value.progress().await?;
                    drop(value);
                    let room = room.await;
                    value = reopen(core, at, progress).await?;
                    opened = now();
                    room
                }
            }
        };
        let most = PIECE_BYTES_MAX as usize;
        let piece = value.next(most, HEADROOM, TAILROOM).await?;
        let mut piece = piece.expect("a value is as long as it says");
        piece.truncate(pdu.next_bytes() as usize);
        pdu.put(piece, room);
    }
    // A part is right only if the checksum of the whole value holds, and an empty value only if its
    // header does.
    while is_checked && value.next(PIECE_BYTES_MAX as usize, 0, 0).await?.is_some() {}
    Ok(())
}

/// Opens the same version again, wherever it lies now.
async fn reopen(core: &Core, (nsid, key): (u16, Key), progress: Progress) -> Result<Value, Status> {
    let Some(value) = core.kv.open(nsid, key).await? else {
        return Err(Status::COMMAND_INTERRUPTED);
    };
    value.resumed(progress).await?.ok_or(Status::COMMAND_INTERRUPTED)
}
