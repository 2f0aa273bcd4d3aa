//! The condition of Store Newer: compares a value's version with that of the value on the medium.
//!
//! Runs under the key's lock, so no other change of the key comes between the comparison and the
//! Store. Changes nothing itself. Invariant: a value whose checksum does not hold has no version.

use std::rc::Rc;

use csd_nvme::kv::{STORE_MENDS, VERSION_OFFSET};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::record::EntryKey;
use crate::shard::Shard;
use crate::shards::Shards;
use crate::value::{self, Value};

/// Bytes of a value that are compared at a time.
const PIECE_BYTES: usize = 128 << 10;
/// Fewest bytes of a value with a version.
const LEAST_BYTES: usize = VERSION_OFFSET + 8;

/// Outcome of a comparison that does not refuse the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newer {
    /// The value replaces the one on the medium, or there is none.
    Yes,
    /// The key has exactly this value.
    Stored,
}

/// Compares `value` with the value of `entry`, whose key the caller has locked.
///
/// # Errors
/// [`Status::NOT_NEWER`]; [`Status::UNRECOVERED_ERROR`] if the value on the medium cannot be read
/// and the options do not mend it; [`Status::INVALID_VALUE_SIZE`] if `value` has no version.
pub(crate) async fn compare(
    shard: &Rc<Shard>,
    entry: EntryKey,
    value: &[Buffer],
    options: u8,
) -> Result<Newer, Status> {
    let bytes = || value.iter().flat_map(|piece| piece.iter());
    let front: Vec<u8> = bytes().take(LEAST_BYTES).copied().collect();
    let version = version_of(&front).ok_or(Status::INVALID_VALUE_SIZE)?;
    let shards = Shards::here().ok_or(Status::NAMESPACE_NOT_READY)?;
    let place = (&shard.media, &*shard.segments);
    let Some(mut old) = value::open(&shards, place, entry).await? else { return Ok(Newer::Yes) };
    match read(&mut old, bytes()).await {
        Ok(old) if old.is_same => Ok(Newer::Stored),
        Ok(old) if old.version.is_some_and(|old| old < version) => Ok(Newer::Yes),
        Ok(_) => Err(Status::NOT_NEWER),
        Err(Status::UNRECOVERED_ERROR) if options & STORE_MENDS != 0 => Ok(Newer::Yes),
        Err(status) => Err(status),
    }
}

struct Old {
    version: Option<u64>,
    is_same: bool,
}

/// Reads the whole value, so that its checksum is checked.
async fn read<'a>(old: &mut Value, mut new: impl Iterator<Item = &'a u8>) -> Result<Old, Status> {
    let (mut front, mut is_same) = (Vec::with_capacity(LEAST_BYTES), true);
    while let Some(piece) = old.next(PIECE_BYTES, 0, 0).await? {
        front.extend(piece.iter().take(LEAST_BYTES - front.len().min(LEAST_BYTES)));
        is_same = is_same && piece.iter().all(|byte| new.next() == Some(byte));
    }
    Ok(Old { version: version_of(&front), is_same: is_same && new.next().is_none() })
}

/// Returns the version in the first bytes of a value; `None` if the value is too short for one.
fn version_of(front: &[u8]) -> Option<u64> {
    front.get(VERSION_OFFSET..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
