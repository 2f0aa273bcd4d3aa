//! Reading one chunk of an object from the drive that holds it.
//!
//! Invariant: [`read_chunk`] returns no bytes but those that were put, if their digest is known.

use csd_reactor::Buffer;

use super::Error;
use crate::array::Drive;
use crate::catalogue::Entry;
use crate::error::DriveError;
use crate::piece::{Spot, is_damage};

/// Reads one chunk of a sealed object from the drive that holds it.
///
/// # Errors
/// [`DriveError::Corrupt`] when it is missing, damaged or has another length; a failed command.
pub async fn read_chunk(drive: &Drive, entry: &Entry, chunk: u32) -> Result<Buffer, Error> {
    let bytes = read_front(drive, entry, chunk, u32::MAX).await?;
    match entry.sum(chunk).is_some_and(|sum| sum != crc32c::crc32c(&bytes)) {
        true => Err(not_stored(&drive.name, entry, chunk)),
        false => Ok(bytes),
    }
}

/// Reads the first bytes of one chunk: `most`, or all if it is shorter.
///
/// # Errors
/// As [`read_chunk`].
pub async fn read_front(
    drive: &Drive,
    entry: &Entry,
    chunk: u32,
    most: u32,
) -> Result<Buffer, Error> {
    let layout = entry.layout();
    let length = layout.chunk_len(chunk);
    let corrupt = |why: String| {
        Error::Drive(DriveError::Corrupt {
            drive: drive.name.clone(),
            object: entry.name.clone(),
            why: format!("chunk {chunk} {why}"),
        })
    };
    let failed = |error: csd_initiator::Error| match error.status() {
        status if is_damage(status) => {
            corrupt(format!("cannot be read: {}", crate::array::words(&error)))
        }
        _ => Error::command(drive, error),
    };
    let start = match Spot::of_chunk(entry, &layout, chunk) {
        Spot::Blocks(start) => start,
        Spot::Value(id, number) => {
            let key = csd_nvme::vendor::execute::chunk_key(&id.0, number);
            let front = drive.objects.front(&key, length.min(most)).await.map_err(failed)?;
            return match front {
                Some((front, whole)) if whole == u64::from(length) => Ok(front),
                Some((_, whole)) => Err(corrupt(format!("has {whole} bytes, not {length}"))),
                None => Err(corrupt("is missing".to_owned())),
            };
        }
    };
    let length = length.min(most);
    let whole = length.next_multiple_of(drive.block.block_bytes());
    let mut value = drive.block.read(start, whole as usize).await.map_err(failed)?;
    value.truncate(length as usize);
    Ok(value)
}

/// Returns the error of a chunk that is sound and not the one that was put: an older one, or
/// another's.
pub(super) fn not_stored(drive: &str, entry: &Entry, chunk: u32) -> Error {
    let why = format!("chunk {chunk} is not the one that was stored: its digest differs");
    Error::Drive(DriveError::Corrupt { drive: drive.to_owned(), object: entry.name.clone(), why })
}
