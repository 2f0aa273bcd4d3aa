//! Rebalance: objects that do not lie on all of some drives are copied to all of them.
//!
//! A copy keeps type, chunk length, layout, placement, code and digests. Its chunks go from drive
//! to drive ([`super::transfer`]), compared with their digests; those that are lost are computed
//! from other pieces. The entry of the copy is written over that of the object in one change; only
//! then are the former pieces deleted, a while later, so that most who read them are done
//! ([`super::change`] describes what an interruption leaves).
//!
//! Keeps no record: it can be interrupted at any point and run again. Objects that lie on these
//! drives are not touched; a whole object lies on one of them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use csd_reactor::{Instant, now, sleep_until};

use super::change::{self, Change};
use super::copy;
use super::draft::thinned;
use super::flow::Flow;
use super::in_drives::InDrives;
use super::transfer::{self, Count};
use super::{Error, Progress, parity, remove};
use crate::array::{Array, DriveIndex};
use crate::catalogue::{Entry, ObjectId, Placement};
use crate::error::{DriveError, NameError};
use crate::extent::GRACE;
use crate::pace::Pace;

/// Attempts while other commands change the name.
const ATTEMPTS: usize = 3;

/// Limits of a rebalance.
#[derive(Clone)]
pub struct Limits {
    /// Bytes that each drive reads or writes in a second; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// True once it must end early.
    pub stop: Rc<Cell<bool>>,
    /// Callback for the bytes of all objects that do not lie there, once they are known.
    pub total: Rc<dyn Fn(u64)>,
    /// Callback for the bytes that were copied.
    pub progress: Progress,
}

/// Result of a rebalance.
#[derive(Debug, Default)]
pub struct Rebalanced {
    /// Entries of the objects that were moved.
    pub moved: Vec<Entry>,
    /// Number of objects that lay on the drives already, or were removed meanwhile.
    pub untouched: u64,
    /// Objects that stay where they were, each with the reason.
    pub failed: Vec<(String, Error)>,
    /// Number of chunks of the objects that were moved.
    pub chunks: u64,
    /// Number of these that went from drive to drive.
    pub by_drives: u64,
    /// Data that crossed between this host and the drives, bytes.
    pub host_crossed_bytes: u64,
    /// Drives that are down or failed, and pieces that are missing, in words.
    pub warnings: Vec<String>,
    /// True if it was asked to stop before it was done.
    pub is_interrupted: bool,
}

/// Returns true if an object lies on these drives, all of them unless it is whole.
#[must_use]
pub fn lies_on(entry: &Entry, drives: &[DriveIndex]) -> bool {
    let is_in = |drive: &DriveIndex| drives.contains(drive);
    let has_all = |held: &[DriveIndex]| held.len() == drives.len() && held.iter().all(is_in);
    match entry.whole {
        true => entry.members.iter().all(is_in),
        false => {
            let group = entry.protected().map(|(protection, _)| &protection.group);
            has_all(&entry.members) && group.is_none_or(|group| has_all(group))
        }
    }
}

/// Moves these objects to all of these drives, as far as they do not lie there. An object that
/// cannot be moved does not keep others from it.
pub async fn rebalance(
    array: &Array,
    entries: &[Entry],
    drives: &[DriveIndex],
    limits: &Limits,
) -> Rebalanced {
    let away = entries.iter().filter(|entry| !lies_on(entry, drives));
    (limits.total)(away.map(|entry| entry.bytes).sum());
    let pace = Rc::new(Pace::new(array.slots().len(), limits.bytes_per_s));
    let (progress, stop) = (limits.progress.clone(), Rc::clone(&limits.stop));
    let flow = Flow { progress, pace, stop };
    let (before_bytes, by) = (array.crossed_bytes(), Rc::default());
    let mover = Mover { array, drives, by, flow };
    let mut former = Former { array, left: VecDeque::new(), warnings: Vec::new() };
    let mut done = Rebalanced::default();
    for entry in entries {
        former.delete(now()).await;
        let mut moved = mover.attempt(&entry.name).await;
        if matches!(moved, Err(Error::Drive(DriveError::Full { .. }))) && !former.left.is_empty() {
            former.delete_all().await;
            moved = mover.attempt(&entry.name).await;
        }
        match moved {
            Ok(Some(Moved { entry, former: ids, count, warnings })) => {
                done.chunks += count.chunks;
                done.by_drives += count.by_drives;
                former.left.push_back((now() + GRACE, ids));
                done.warnings.extend(warnings);
                done.moved.push(entry);
            }
            Ok(None) | Err(Error::Name(NameError::Missing { .. })) => done.untouched += 1,
            Err(Error::Stopped) => {}
            Err(error) => done.failed.push((entry.name.clone(), error)),
        }
        if limits.stop.get() {
            done.is_interrupted = true;
            break;
        }
    }
    former.delete_all().await;
    done.host_crossed_bytes = array.crossed_bytes().saturating_sub(before_bytes);
    done.warnings.append(&mut former.warnings);
    done.warnings.sort();
    done.warnings.dedup();
    done
}

/// Pieces of objects that were moved, with the time at which they are deleted.
struct Former<'a> {
    array: &'a Array,
    left: VecDeque<(Instant, Vec<ObjectId>)>,
    warnings: Vec<String>,
}

impl Former<'_> {
    /// Deletes those whose time has come by `until`.
    async fn delete(&mut self, until: Instant) {
        while self.left.front().is_some_and(|(time, _)| *time <= until) {
            let Some((_, ids)) = self.left.pop_front() else { break };
            if let Err(error) = remove::sweep_ids(self.array, ids).await {
                let what = "former chunks are not all deleted, `csd array reclaim` does the rest";
                self.warnings.push(format!("{what}: {error}"));
            }
        }
    }

    /// Waits until all of them may be deleted, and deletes them.
    async fn delete_all(&mut self) {
        if let Some((last, _)) = self.left.back() {
            let last = *last;
            sleep_until(last).await;
            self.delete(last).await;
        }
    }
}

/// An object that was moved.
struct Moved {
    entry: Entry,
    /// Identifiers of its former pieces.
    former: Vec<ObjectId>,
    count: Count,
    warnings: Vec<String>,
}

/// Moves objects to drives.
struct Mover<'a> {
    array: &'a Array,
    /// Drives on which objects shall lie.
    drives: &'a [DriveIndex],
    /// Drives that fetch chunks and compute parity.
    by: Rc<InDrives>,
    flow: Flow,
}

impl Mover<'_> {
    /// Moves an object, a few times if other commands change its name; `None` if it lies there.
    async fn attempt(&self, name: &str) -> Result<Option<Moved>, Error> {
        for _ in 1..ATTEMPTS {
            match self.move_one(name).await {
                Err(Error::Name(NameError::Overtaken { .. })) => {}
                done => return done,
            }
        }
        self.move_one(name).await
    }

    async fn move_one(&self, name: &str) -> Result<Option<Moved>, Error> {
        let array = self.array;
        let (before, ground) = change::look(array, name).await?;
        let is_there = lies_on(&before, self.drives);
        if is_there && before.copy.is_none() {
            change::confirm(array, &ground, before).await?;
            return Ok(None);
        }
        let mut entry = before.clone();
        // A protection that has not come to its end begins again with `csd protect`.
        entry.protection = entry.protection.filter(|protection| protection.parity.is_some());
        entry.copy = (!is_there).then(copy::new_id);
        let planned = match is_there {
            true => None,
            false => Some(planned(array, &entry, self.drives)?),
        };
        let former = entry.own_ids();
        let mut change = Change::begin(array, (before, &ground), &mut entry).await?;
        let Some(planned) = planned else { return Ok(None) };
        // The epoch of the announcement stands in the names of parity.
        let planned = Entry { epoch: entry.epoch, writer: entry.writer, ..planned };
        let sealed = match self.make(&mut entry, planned).await {
            Ok(count) => change.seal(array, &mut entry).await.map(|more| (count, more)),
            Err(error) => Err(error),
        };
        match sealed {
            Ok((count, more)) => {
                let mut warnings = std::mem::take(&mut change.warnings);
                warnings.extend(more);
                warnings.extend(thinned(&entry));
                Ok(Some(Moved { entry, former, count, warnings }))
            }
            Err(error) => {
                // The user must see the first error, not one of the clean-up.
                let _cleaned = change.withdraw(array).await;
                Err(error)
            }
        }
    }

    /// Makes the planned copy. Drives compare what they fetch with digests, so objects without them
    /// go through this host.
    async fn make(&self, entry: &mut Entry, planned: Entry) -> Result<Count, Error> {
        if entry.sums.is_empty() {
            let chunks = entry.layout().chunks().into();
            copy::make(self.array, entry, planned, &self.flow).await?;
            return Ok(Count { chunks, by_drives: 0 });
        }
        transfer::make(self.array, entry, planned, &self.by, &self.flow).await
    }
}

/// Returns the entry of the copy that `entry` announces, on these drives.
///
/// # Errors
/// [`ProtectionError::Impossible`](crate::error::ProtectionError::Impossible) if its code
/// needs more drives; [`Error::Input`] if its chunks do not fit one of them; [`Error::Array`] if
/// one is down.
fn planned(array: &Array, entry: &Entry, drives: &[DriveIndex]) -> Result<Entry, Error> {
    let name = &entry.name;
    for drive in drives {
        let drive = array.drive(*drive)?;
        let fits = match entry.placement {
            Placement::Kv => entry.chunk_bytes <= drive.value_bytes_max,
            Placement::Block(_) => entry.chunk_bytes.is_multiple_of(drive.block.block_bytes()),
        };
        if !fits {
            let (name, bytes, drive) = (name.clone(), entry.chunk_bytes, &drive.name);
            let why = format!("chunks of {bytes} bytes do not fit drive {drive}");
            return Err(Error::Input { name, why });
        }
    }
    let mut entry = entry.clone();
    if let Some(protection) = &mut entry.protection {
        parity::check_fit(protection.scheme, drives.len())?;
        protection.group = drives.to_vec();
    }
    let members = match entry.whole {
        true => vec![drives[copy::draw(&entry, drives.len())]],
        false => drives.to_vec(),
    };
    let planned = copy::planned(&entry, members, entry.whole)?;
    parity::check_size(&planned)?;
    Ok(planned)
}
