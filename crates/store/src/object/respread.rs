//! Spreads a whole object, which lies on one drive, over the drives of its stripes.
//!
//! The chunks get names of their own, which follow from the entry that announced the protection.
//! The former chunks stay until the caller has written the new entry.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, JoinHandle, compute_fn, random_u64, spawn};

use super::chunk::read_chunk;
use super::encode::{self, Encoder};
use super::in_drives::InDrives;
use super::pages::PAGE_BYTES;
use super::writer::Writer;
use super::{Error, Progress, WINDOW, parity};
use crate::array::{Array, Drive};
use crate::catalogue::{Entry, Extents, Placement};
use crate::layout;

/// Returns the drives over which a whole object is spread.
///
/// # Errors
/// [`Error::Array`] if its own drive is down.
pub(super) fn members(array: &Array, entry: &Entry) -> Result<Vec<u16>, Error> {
    array.drive(entry.members[0].into())?;
    let small = |index: usize| u16::try_from(index).expect("an array has at most 1024 drives");
    Ok(array.voters().iter().map(|drive| small(drive.index)).collect())
}

/// Returns the entry of an object once it is spread, without its sums and its parity.
///
/// # Errors
/// As [`members`].
pub(super) fn moved(array: &Array, entry: &Entry) -> Result<Entry, Error> {
    let members = members(array, entry)?;
    let drawn = random_u64() % members.len() as u64;
    let mut moved = entry.clone();
    moved.id = entry.moved_id().expect("a whole object with a protection");
    moved.offset = u16::try_from(drawn).expect("an array has at most 1024 drives");
    moved.whole = false;
    if let Placement::Block(extents) = &mut moved.placement {
        *extents = vec![Extents::new(); members.len()];
    }
    moved.members = members;
    moved.sums = Vec::new();
    Ok(moved)
}

/// Copies the chunks of `entry` to the drives of their stripes with parity, and makes it the entry
/// of the copy, which is `moved`. If `drives` are given, the drive that has the object does so.
///
/// # Errors
/// Those of [`put`](super::put()).
pub(super) async fn spread(
    array: &Array,
    entry: &mut Entry,
    mut moved: Entry,
    drives: Option<&Rc<InDrives>>,
    progress: &Progress,
) -> Result<(), Error> {
    let from = array.drive(entry.members[0].into())?;
    if drives.is_some() {
        let origin = Some((Rc::clone(from), entry.clone()));
        let encoded =
            encode::stored(array, &moved, (origin, drives), Some(PAGE_BYTES), progress).await?;
        moved.sums = encoded.chunk_sums;
        parity::add(&mut moved, encoded.sums, encoded.lost)?;
        *entry = moved;
        return Ok(());
    }
    let mut writer = Writer::new(array, &moved, true, Some(PAGE_BYTES)).await?;
    let sent = send_all(&mut writer, (from, entry), progress).await;
    let finished = writer.finish().await;
    moved.sums = sent?;
    let finished = finished?;
    if let (Placement::Block(all), Some(extents)) = (&mut moved.placement, finished.extents) {
        *all = extents;
    }
    let parity = finished.parity.expect("the writer was sent parity");
    parity::add(&mut moved, parity, finished.missing)?;
    *entry = moved;
    Ok(())
}

/// Sends the chunks of an object from its drive; returns their CRC-32C.
async fn send_all(
    writer: &mut Writer<'_>,
    (from, entry): (&Rc<Drive>, &Entry),
    progress: &Progress,
) -> Result<Vec<u32>, Error> {
    let mut encoder = Encoder::of(&writer.entry, true).expect("the object is protected");
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let count = u16::try_from(writer.entry.members.len()).expect("at most 1024 drives");
    let (entry, chunks, mut next) = (Rc::new(entry.clone()), entry.layout().chunks(), 0);
    let mut sums = Vec::new();
    for chunk in 0..chunks {
        while next < chunks && pending.len() < WINDOW {
            let (drive, entry, chunk) = (Rc::clone(from), Rc::clone(&entry), next);
            pending.push_back(spawn(Class::Foreground, async move {
                read_chunk(&drive, &entry, chunk).await
            }));
            next += 1;
        }
        let bytes = pending.pop_front().expect("every chunk is read").await?;
        encoder.prepare();
        let encode = move || {
            let ready = encoder.add(&bytes);
            let sum = crc32c::crc32c(&bytes);
            (encoder, bytes, ready, sum)
        };
        let encoded = compute_fn(Class::Foreground, 0, encode).await;
        let (back, bytes, ready, sum) = encoded.map_err(|_| Error::Lane)?;
        encoder = back;
        sums.push(sum);
        progress(bytes.len() as u64);
        writer.send(layout::member(chunk, writer.entry.offset, count), chunk, bytes).await?;
        writer.send_parity(ready).await?;
    }
    writer.send_parity(encoder.finish()).await?;
    Ok(sums)
}
