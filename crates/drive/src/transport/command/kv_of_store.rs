//! Store and Retrieve of a drive whose values another store keeps; see [`crate::kv_store`].
//!
//! It does not know that store. Commands that it does not take are invalid opcodes.

use csd_nvme::kv::{Command, Key};
use csd_nvme::status::Status;

use super::super::request::{Done, Payload, Request};
use crate::kv_store::KvStore;

/// Runs a command of the users' kv namespace.
pub(super) async fn run(
    request: &mut Request,
    store: &dyn KvStore,
    command: Command,
) -> Result<Done, Status> {
    match command {
        Command::Store { key, size, options: 0 } => {
            if size > request.core.value_bytes_max {
                return Err(Status::INVALID_VALUE_SIZE);
            }
            let Payload { pieces, held } = request.payload(size).await?;
            request.core.count_write(u64::from(size));
            let stored = store.store(key, pieces).await;
            drop(held);
            stored.map(|()| Done::Result(0))
        }
        Command::Retrieve { key, size } => retrieve(request, store, key, size).await,
        Command::Flush => Ok(Done::Result(0)),
        _ => Err(Status::INVALID_OPCODE),
    }
}

async fn retrieve(
    request: &Request,
    store: &dyn KvStore,
    key: Key,
    size: u32,
) -> Result<Done, Status> {
    request.check_buffer(u64::from(size))?;
    let value = store.retrieve(key).await?.ok_or(Status::KEY_DOES_NOT_EXIST)?;
    let value = (*value).as_ref();
    let whole = u32::try_from(value.len()).map_err(|_| Status::INTERNAL_ERROR)?;
    let wanted = whole.min(size);
    request.send(&value[..wanted as usize], false).await;
    request.core.count_read(u64::from(wanted));
    Ok(if wanted == 0 { Done::Result(u64::from(whole)) } else { Done::Data(u64::from(whole)) })
}
