//! Reads entries from the medium, several at once.

use std::rc::Rc;

use csd_kvlog::Kv;
use csd_nvme::kv::Key;
use csd_nvme::vendor::folders::{ENTRY_BYTES_MAX, sealed_name};
use csd_reactor::{Buffer, class, spawn};

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

/// Reads the entries under these keys. Returns them in the same order.
pub(super) async fn read_each(kv: &Rc<Kv>, keys: Vec<Key>) -> Vec<(Key, Seen)> {
    let reads = keys.into_iter().map(|key| {
        let kv = Rc::clone(kv);
        spawn(class(), async move { (key, read(&kv, key).await) })
    });
    let reads: Vec<_> = reads.collect();
    let mut seen = Vec::with_capacity(reads.len());
    for read in reads {
        seen.push(read.await);
    }
    seen
}

async fn read(kv: &Kv, key: Key) -> Seen {
    let mut value = match kv.open(entries().nsid, key).await {
        Ok(Some(value)) => value,
        Ok(None) => return Seen::None,
        Err(_) => return Seen::Unreadable,
    };
    let (length, most) = (value.bytes(), PIECE_BYTES_MAX as usize);
    // A name is as right as the checksum of the whole value.
    let Ok(Some(front)) = value.next(most, 0, 0).await else { return Seen::Unreadable };
    loop {
        match value.next(most, 0, 0).await {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => return Seen::Unreadable,
        }
    }
    let Ok(name) = sealed_name(&front, &key) else { return Seen::Unreadable };
    let name = name.map(ToOwned::to_owned);
    Seen::Entry { name, bytes: (length <= ENTRY_BYTES_MAX).then_some(front) }
}
