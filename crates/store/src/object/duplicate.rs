//! Duplicate: a copy of an object under another name. Its chunks go from drive to drive, or stay
//! within theirs; only those that cannot be fetched go through this host ([`super::transfer`]).
//!
//! A copy keeps type, shape, chunk length, layout, placement, code and digests, and lies on the
//! same drives while they are up, so that it matches what the object matched. Invariant: until the
//! copy is whole, its name stands for what it stood for before.

use std::cell::Cell;
use std::rc::Rc;

use super::copy;
use super::draft::{Shape, Stored};
use super::flow::Flow;
use super::in_drives::InDrives;
use super::naming::Naming;
use super::transfer::{self, Count};
use super::{Error, Progress, lookup, parity};
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;
use crate::pace::Pace;
use crate::room;

/// A copy under another name.
#[derive(Debug)]
pub struct Duplicated {
    /// The object that was copied.
    pub original: Entry,
    /// The copy.
    pub stored: Stored,
    /// Number of its chunks.
    pub chunks: u64,
    /// Number of these that drives have fetched.
    pub by_drives: u64,
    /// Data that crossed between this host and the drives, bytes.
    pub host_crossed_bytes: u64,
}

/// Copies the object `from` under the name `to`, in place of the object of that name if it
/// `replaces` one. Ends early once `stop` is set.
///
/// # Errors
/// [`NameError::Missing`](crate::error::NameError::Missing);
/// [`NameError::Exists`](crate::error::NameError::Exists); [`Error::Input`] if both names are one;
/// [`Error::Stopped`]; those of [`put`](super::put()).
pub async fn duplicate(
    array: &Array,
    (from, to): (&str, &str),
    replaces: bool,
    progress: &Progress,
    stop: &Rc<Cell<bool>>,
) -> Result<Duplicated, Error> {
    array.require_majority()?;
    let original = lookup(array, from).await?;
    if from == to {
        return Err(Error::Input { name: to.to_owned(), why: "is this object itself".to_owned() });
    }
    let before_bytes = array.crossed_bytes();
    let shape = shape(array, &original)?;
    let on = shape.on;
    let mut naming = Naming::begin(array, to, shape, replaces).await?;
    naming.write(array).await?;
    let pace = Rc::new(Pace::new(array.slots().len(), None));
    let flow = Flow { progress: progress.clone(), pace, stop: Rc::clone(stop) };
    let drives = Rc::<InDrives>::default();
    match make(array, &original, naming.entry(), &drives, &flow).await {
        Ok(Count { chunks, by_drives }) => {
            let mut stored = naming.seal(array).await?;
            stored.warnings.extend(drives.warnings());
            let host_crossed_bytes = array.crossed_bytes().saturating_sub(before_bytes);
            Ok(Duplicated { original, stored, chunks, by_drives, host_crossed_bytes })
        }
        Err(error) => {
            naming.abandon(array).await;
            Err(room::explain(array, on, error).await)
        }
    }
}

/// Returns the properties of a copy of this object.
fn shape(array: &Array, original: &Entry) -> Result<Shape, Error> {
    let members = match is_all_up(array, &original.members) {
        true => original.members.clone(),
        false if original.whole => array.voting().into_iter().take(1).collect(),
        false => array.voting(),
    };
    let scheme = original.protected().map(|(protection, _)| protection.scheme);
    Ok(Shape {
        element: original.element,
        on: original.placement.on(),
        chunk_bytes: original.chunk_bytes,
        offset: Some(0), // planned with the chunks
        protection: parity::plan(array, &members, scheme)?,
        whole: original.whole,
        members,
        stored_unix_ms: Some(original.stored_unix_ms).filter(|stored| *stored > 0),
    })
}

fn is_all_up(array: &Array, drives: &[DriveIndex]) -> bool {
    drives.iter().all(|drive| array.drive(*drive).is_ok())
}

/// Copies the chunks, and makes `entry` that of the copy.
async fn make(
    array: &Array,
    original: &Entry,
    entry: &mut Entry,
    drives: &Rc<InDrives>,
    flow: &Flow,
) -> Result<Count, Error> {
    let announced = Entry { copy: Some(entry.id), ..original.clone() };
    let planned = copy::planned(&announced, entry.members.clone(), original.whole)?;
    let (offset, parts) = match entry.members == original.members {
        true => (original.offset, original.parts.clone()),
        false => (planned.offset, planned.parts.clone()),
    };
    let planned = Entry {
        name: entry.name.clone(),
        epoch: entry.epoch,
        writer: entry.writer,
        state: entry.state,
        protection: entry.protection.clone(),
        survives: entry.survives,
        stored_unix_ms: entry.stored_unix_ms,
        offset,
        parts,
        ..planned
    };
    parity::check_size(&planned)?;
    let mut made = original.clone();
    // Drives compare what they fetch with digests, so objects without them go through this host.
    let count = match original.sums.is_empty() {
        true => {
            let chunks = original.layout().chunks().into();
            copy::make(array, &mut made, planned, flow).await?;
            Count { chunks, by_drives: 0 }
        }
        false => transfer::make(array, &mut made, planned, drives, flow).await?,
    };
    *entry = made;
    Ok(count)
}
