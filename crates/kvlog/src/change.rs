//! Store and Delete on the core that owns the key: conditions, promised space, and cleaning
//! (`reclaim`) when the log has no free segment. A key stays locked from the check of its condition
//! to the change.
//!
//! A Store within the drive's capacity and a Delete succeed on a full log, because some segment can
//! then be cleaned. A Store beyond the capacity fails at once.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::kv;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::epochs::Turn;
use crate::reclaim::{Reclaim, clean_if_low};
use crate::record::{Content, EntryKey};
use crate::shard::{KeyLock, Refused, Shard};
use crate::store_newer::{self, Newer};

/// Stores a value. Returns the turn of its answer.
///
/// # Errors
/// The status to answer with.
pub(crate) async fn store(
    shard: &Rc<Shard>,
    entry: EntryKey,
    mut value: Vec<Buffer>,
    options: u8,
) -> Result<Turn, Status> {
    let bytes: usize = value.iter().map(|piece| piece.len()).sum();
    let mut reclaim = Reclaim::new(&shard.segments);
    loop {
        let lock = shard.lock(entry).await;
        let old = match options {
            0 => shard.find(&entry),
            _ => shard.find_certain(&entry).await?,
        };
        if options & kv::STORE_IF_EXISTS != 0 && old.is_none() {
            return Err(Status::KEY_DOES_NOT_EXIST);
        }
        if options & kv::STORE_IF_ABSENT != 0 && old.is_some() {
            return Err(Status::KEY_EXISTS);
        }
        if options & kv::STORE_IF_NEWER != 0
            && store_newer::compare(shard, entry, &value, options).await? == Newer::Stored
        {
            // The change that stored it may be lost together with this epoch.
            return Ok(shard.turn(entry.0));
        }
        let space = |content| shard.segments.space(content);
        let before = old.map_or(0, |old| space(old.content));
        let new = Content::Value(u32::try_from(bytes).unwrap_or(u32::MAX));
        let more = space(new).saturating_sub(before);
        let room = shard.segments.promise(entry.0, more, old.is_none());
        let room = room.ok_or(Status::CAPACITY_EXCEEDED)?;
        let result = shard.append(lock, Some(value), Some(room)).await;
        clean_if_low(&shard.segments);
        match result {
            Ok(turn) => return Ok(turn),
            Err(Refused { status: Status::CAPACITY_EXCEEDED, value: Some(again) }) => {
                reclaim.next().await?;
                value = again;
            }
            Err(refused) => return Err(refused.status),
        }
    }
}

/// Deletes a key that the caller has locked, if there is space for the record that says so.
///
/// # Errors
/// The status to answer with.
pub(crate) async fn delete_locked(shard: &Rc<Shard>, lock: KeyLock) -> Result<(), Status> {
    let deleted = shard.append(lock, None, None).await;
    clean_if_low(&shard.segments);
    deleted.map(drop).map_err(|Refused { status, .. }| status)
}

/// Deletes a key. Returns the turn of its answer.
///
/// # Errors
/// The status to answer with.
pub(crate) async fn delete(shard: &Rc<Shard>, entry: EntryKey) -> Result<Turn, Status> {
    let mut reclaim = Reclaim::new(&shard.segments);
    loop {
        let lock = shard.lock(entry).await;
        if shard.find_certain(&entry).await?.is_none() {
            let namespace = shard.segments.namespace(entry.0);
            let is_error =
                namespace.is_some_and(|namespace| namespace.absent_delete_is_error.load(Relaxed));
            // The change that deleted it may be lost together with this epoch.
            let turn = shard.turn(entry.0);
            return if is_error { Err(Status::KEY_DOES_NOT_EXIST) } else { Ok(turn) };
        }
        let result = shard.append(lock, None, None).await;
        clean_if_low(&shard.segments);
        match result {
            Err(Refused { status: Status::CAPACITY_EXCEEDED, .. }) => reclaim.next().await?,
            other => return other.map_err(|refused| refused.status),
        }
    }
}
