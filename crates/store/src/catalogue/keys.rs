//! Keys of the objects' namespace of one drive, by prefix.

use std::collections::BTreeSet;

use csd_nvme::kv::Key;

use super::entry::KEY_PREFIX;
use super::on_all;
use crate::array::{Array, Drive};
use crate::error::Error;

/// Returns the catalogue keys on `drive`, in order.
///
/// # Errors
/// A failed command.
pub async fn keys(drive: &Drive) -> Result<Vec<Key>, Error> {
    let mut first = [0; 16];
    first[0] = KEY_PREFIX;
    keys_with_prefix(drive, &[KEY_PREFIX], &first).await
}

/// Returns the catalogue keys of all drives that vote.
///
/// # Errors
/// When fewer drives answer than readers need.
pub async fn keys_of_all(array: &Array) -> Result<BTreeSet<Key>, Error> {
    array.require_readers()?;
    let (mut all, mut answered, mut failed) = (BTreeSet::new(), 0, None);
    for list in on_all(array, |drive| async move { keys(&drive).await }) {
        match list.await {
            (_, Ok(listed)) => {
                all.extend(listed);
                answered += 1;
            }
            (_, Err(error)) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if answered < array.readers() => Err(error),
        _ => Ok(all),
    }
}

/// Returns the keys of the objects' namespace that are as long as `first`, not less than it, and
/// begin with `prefix`. List orders keys by length, then by bytes, so they are contiguous.
///
/// # Errors
/// A failed command.
pub async fn keys_with_prefix(
    drive: &Drive,
    prefix: &[u8],
    first: &[u8],
) -> Result<Vec<Key>, Error> {
    let mut keys: Vec<Key> = Vec::new();
    let start = Key::new(first).expect("prefixes of this crate make keys of 9, 15 or 16 bytes");
    // A List goes on behind the last key of the prefix, and most prefixes have few keys.
    let mut size = FIRST_LIST_BYTES;
    loop {
        let from = keys.last().unwrap_or(&start);
        let listed = drive.objects.list(Some(from), size).await;
        size = LIST_BYTES;
        let listed = listed.map_err(|error| Error::command(drive, error))?;
        let after = keys.last().copied();
        let mut grown = false;
        for key in listed {
            if key < start || after.is_some_and(|after| key <= after) {
                continue;
            }
            let bytes = key.as_bytes();
            if bytes.len() != first.len() || !bytes.starts_with(prefix) {
                return Ok(keys);
            }
            keys.push(key);
            grown = true;
        }
        if !grown {
            return Ok(keys);
        }
    }
}

/// Buffer of the first List command, bytes: about 12 keys.
const FIRST_LIST_BYTES: u32 = 256;
/// Buffer of each further one, bytes: about 3,000 keys.
const LIST_BYTES: u32 = 64 << 10;
