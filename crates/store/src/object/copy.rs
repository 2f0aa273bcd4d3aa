//! Copies an object to other drives: a whole object that is protected, or any that is rebalanced.
//!
//! The pieces of the copy have an identifier of their own, which the object's entry announces. The
//! former pieces stay until the caller has written the entry of the copy. Invariant: the chunks of
//! a copy are those of the object, as far as its entry has their digests.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use csd_reactor::{Buffer, Class, compute_fn, random_bytes, random_u64};

use super::chunk::not_stored;
use super::encode::{self, Encoder};
use super::encoding;
use super::flow::Flow;
use super::get::Reader;
use super::in_drives::InDrives;
use super::writer::Writer;
use super::{Error, Progress, parity};
use crate::array::{Array, DriveIndex};
use crate::catalogue::{self, Entry, Extents, ObjectId, Placement};
use crate::extent::{Claimer, UNIT_BYTES};
use crate::layout::Parts;
use crate::pages::{self, PAGE_BYTES};

/// Returns an identifier for a copy.
pub(super) fn new_id() -> ObjectId {
    let mut id = [0; 12];
    random_bytes(&mut id);
    ObjectId::from_random(id)
}

/// Returns the entry of a copy that `entry` announces, on these drives, without its sums and its
/// parity. Chunks and parts are dealt to the drives in turn, unless the copy `is_whole`.
///
/// # Errors
/// [`Error::Layout`], which a sound entry excludes.
pub(super) fn planned(
    entry: &Entry,
    members: Vec<DriveIndex>,
    is_whole: bool,
) -> Result<Entry, Error> {
    let mut copy = entry.clone();
    copy.members = members;
    let count = copy.member_count();
    copy.id = entry.copy.expect("the copy is announced");
    copy.copy = None;
    copy.whole = is_whole;
    copy.offset = match (&entry.parts, entry.whole) {
        (Some(_), _) => 0,
        (None, true) => u16::try_from(random_u64() % u64::from(count)).expect("below a u16"),
        (None, false) => u16::try_from(draw(entry, count.into())).expect("below a u16"),
    };
    if let Some(parts) = &entry.parts {
        let mut dealt = parts.parts().to_vec();
        for (member, part) in (0..count).cycle().zip(&mut dealt) {
            part.member = member;
        }
        copy.parts = Parts::new(parts.kind(), entry.chunk_bytes, count, dealt)?;
    }
    if let Placement::Block(extents) = &mut copy.placement {
        *extents = vec![Extents::new(); count.into()];
    }
    if let Some(protection) = &mut copy.protection {
        protection.parity = None;
    }
    copy.sums = Vec::new();
    Ok(copy)
}

/// Returns a number below `count`, by which the member of chunk 0 is chosen. It follows from the
/// entry, so that objects which match chunk by chunk still do when all of them were copied; and it
/// differs, so that short objects lie on all drives.
pub(super) fn draw(entry: &Entry, count: usize) -> usize {
    let mut hasher = blake3::Hasher::new();
    for member in &entry.members {
        hasher.update(&member.to_le_bytes());
    }
    hasher.update(&entry.offset.to_le_bytes()).update(&entry.elements().to_le_bytes());
    let hash = hasher.finalize();
    let word = hash.as_bytes().first_chunk().expect("32 bytes");
    usize::from(u16::from_le_bytes(*word)) % count
}

/// Claims the units of a copy that lies on blocks.
///
/// # Errors
/// [`DriveError::Full`](crate::error::DriveError::Full); [`Error::Array`] if a drive is
/// down; a failed command.
pub(super) async fn claim(array: &Array, copy: &mut Entry) -> Result<(), Error> {
    let (key, layout) = (catalogue::key(&copy.name), copy.layout());
    let Placement::Block(all) = &mut copy.placement else { return Ok(()) };
    for (member, (drive, extents)) in copy.members.iter().zip(all).enumerate() {
        let mut claimer = Claimer::new(array.drive(*drive)?, copy.id, key).await?;
        let bytes = u64::from(layout.count(member)) * u64::from(copy.chunk_bytes);
        for _ in 0..bytes.div_ceil(UNIT_BYTES) {
            claimer.claim(array).await?;
        }
        *extents = claimer.into_extents();
    }
    Ok(())
}

/// Makes blocks durable that this host has written for a copy.
pub(super) async fn flush(array: &Array, copy: &Entry) -> Result<(), Error> {
    if copy.placement == Placement::Kv {
        return Ok(());
    }
    for drive in &copy.members {
        let drive = array.drive(*drive)?;
        drive.block.flush().await.map_err(|error| Error::command(drive, error))?;
    }
    Ok(())
}

/// Makes `entry` that of its copy, whose chunks and parity drives store, as far as they can.
///
/// # Errors
/// Those of [`put`](super::put()).
pub(super) async fn make_in_drives(
    array: &Array,
    entry: &mut Entry,
    mut copy: Entry,
    drives: &Rc<InDrives>,
    flow: &Flow,
) -> Result<(), Error> {
    let origin = Some((Rc::clone(array.drive(entry.members[0])?), entry.clone()));
    claim(array, &mut copy).await?;
    let encoded =
        encode::stored(array, &copy, (origin, Some(drives)), Some(PAGE_BYTES), flow).await?;
    flush(array, &copy).await?;
    copy.sums = encoded.chunk_sums;
    parity::add(&mut copy, encoded.sums, encoded.lost)?;
    *entry = copy;
    Ok(())
}

/// Copies the chunks of `entry`, with parity if `copy` is protected, and makes it that of its copy.
///
/// # Errors
/// Those of [`put`](super::put()); [`Error::Stopped`]; the reason why a chunk cannot be read.
pub(super) async fn make(
    array: &Array,
    entry: &mut Entry,
    mut copy: Entry,
    flow: &Flow,
) -> Result<(), Error> {
    let page_bytes = page_bytes(array, entry).await;
    let mut writer = Writer::new(array, &copy, copy.parts.is_none(), page_bytes).await?;
    writer.pace = Some(Rc::clone(&flow.pace));
    let sent = send_all(&mut writer, array, &Rc::new(entry.clone()), flow).await;
    let finished = writer.finish().await;
    copy.sums = sent?;
    let silent = Flow { progress: Progress::none(), ..flow.clone() };
    parity::complete(array, &mut copy, finished?, page_bytes, &silent).await?;
    *entry = copy;
    Ok(())
}

/// Sends the chunks of an object; returns their CRC-32C.
async fn send_all(
    writer: &mut Writer<'_>,
    array: &Array,
    entry: &Rc<Entry>,
    flow: &Flow,
) -> Result<Vec<u32>, Error> {
    let reader = Reader::new(array, entry, false);
    let mut encoder = Encoder::of(&writer.entry, writer.entry.parts.is_none());
    let (from, to) = (entry.layout(), writer.entry.layout());
    let drive_of = |chunk| entry.members[from.member(chunk)];
    let (mut pending, mut next, mut sums) = (VecDeque::new(), 0, Vec::new());
    loop {
        while next < reader.units() && pending.len() < reader.ahead() {
            for chunk in reader.chunks(next) {
                flow.pace.wait(drive_of(chunk), from.chunk_len(chunk).into()).await;
            }
            pending.push_back(reader.begin(next)?);
            next += 1;
        }
        let Some(unit) = pending.pop_front() else { break };
        let number = next - 1 - u32::try_from(pending.len()).expect("a few units");
        for bytes in reader.read(number, unit).await {
            if flow.stop.get() {
                return Err(Error::Stopped);
            }
            let chunk = u32::try_from(sums.len()).expect("the number of chunks is checked");
            let bytes = bytes?;
            encoder.iter_mut().for_each(Encoder::prepare);
            let (back, bytes, ready, sum) = encode_one(encoder, bytes).await?;
            encoder = back;
            if entry.sum(chunk).is_some_and(|known| known != sum) {
                let name = &array.slots()[drive_of(chunk)].name;
                return Err(not_stored(name, entry, chunk));
            }
            sums.push(sum);
            flow.progress.add(bytes.len() as u64);
            writer.send(to.member(chunk), to.number(chunk), bytes).await?;
            writer.send_parity(ready).await?;
        }
    }
    let last = encoder.as_mut().map_or_else(Vec::new, Encoder::finish);
    writer.send_parity(last).await?;
    Ok(sums)
}

/// A chunk with its checksum, and the parity of the stripe that it has completed.
type Encoded = (Option<Encoder>, Buffer, Vec<encoding::Piece>, u32);

/// Sums a chunk, and adds it to the parity.
async fn encode_one(mut encoder: Option<Encoder>, bytes: Buffer) -> Result<Encoded, Error> {
    let work = move || {
        let ready = encoder.as_mut().map_or_else(Vec::new, |encoder| encoder.add(&bytes));
        let sum = crc32c::crc32c(&bytes);
        (encoder, bytes, ready, sum)
    };
    compute_fn(Class::Foreground, 0, work).await.map_err(|_| Error::ComputeThread)
}

/// Returns the size of the pages of an object that have checksums, bytes, as one of its page lists
/// says; `None` if there is no list.
pub(super) async fn page_bytes(array: &Array, entry: &Entry) -> Option<u32> {
    let group = entry.protection.iter().flat_map(|protection| &protection.group);
    let drives: BTreeSet<DriveIndex> = entry.members.iter().chain(group).copied().collect();
    for id in entry.own_ids() {
        for drive in &drives {
            let Ok(drive) = array.drive(*drive) else { continue };
            if let Ok(Some(bytes)) = pages::page_bytes(drive, id).await {
                return Some(bytes);
            }
        }
    }
    None
}
