//! Reads entries from the medium, several at once.

use csd_kvlog::near::Read;
use csd_kvlog::{Kv, Value};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_nvme::vendor::folders::{ENTRY_BYTES_MAX, sealed_name};
use csd_reactor::Buffer;

use super::entries;
use crate::limits::PIECE_BYTES_MAX;

/// Content of a key.
pub(super) enum Seen {
    /// Nothing.
    None,
    /// An entry, whose checksum on the medium holds.
    Entry {
        /// Name of the object, if it is complete.
        name: Option<String>,
        /// The entry, if it is not too long to be answered.
        bytes: Option<Buffer>,
    },
    /// No entry of this key, or the medium failed.
    Unreadable,
}

/// Reads the entries under these keys, those that lie close together by one read. Returns them in
/// any order.
pub(super) async fn read_each(kv: &Kv, keys: Vec<Key>) -> Result<Vec<(Key, Seen)>, Status> {
    let read = kv.read_each(entries().nsid, keys).await?;
    let mut seen = Vec::with_capacity(read.len());
    for (key, read) in read {
        seen.push((key, of_value(&key, read).await));
    }
    Ok(seen)
}

async fn of_value(key: &Key, read: Read) -> Seen {
    let (front, is_short) = match read {
        Read::None => return Seen::None,
        Read::Failed(_) => return Seen::Unreadable,
        Read::Whole(entry) => {
            let is_short = entry.len() <= ENTRY_BYTES_MAX as usize;
            (entry, is_short)
        }
        Read::Long(mut value) => match front(&mut value).await {
            Some(front) => (front, false),
            None => return Seen::Unreadable,
        },
    };
    let Ok(name) = sealed_name(&front, key) else { return Seen::Unreadable };
    let name = name.map(ToOwned::to_owned);
    Seen::Entry { name, bytes: is_short.then_some(front) }
}

/// Returns the beginning of a long value: a name is as right as the checksum of the whole value.
async fn front(value: &mut Value) -> Option<Buffer> {
    let most = PIECE_BYTES_MAX as usize;
    let front = value.next(most, 0, 0).await.ok()??;
    while value.next(most, 0, 0).await.ok()?.is_some() {}
    Some(front)
}
