//! Store and Delete on the core that owns the key: conditions, promised space, and cleaning when
//! the log has no free segment. A key stays locked from the check of its condition to the change.
//!
//! A Store within the drive's capacity and a Delete succeed on a full log, because some segment can
//! then be cleaned. A Store beyond the capacity fails at once.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_nvme::kv;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, CoreId, call, core_count, sleep, spawn};

use crate::clean::{Candidate, Cleaned};
use crate::epochs::Turn;
use crate::record::EntryKey;
use crate::segments::Segments;
use crate::shard::{Refused, Shard};
use crate::shards::{Shards, owner};
use crate::store_newer::{self, Newer};

/// Most cleanings that one command starts before it gives up.
const CLEANINGS_MAX: u32 = 64;
/// Most pauses of one command while nothing is written, because hosts read from every segment that
/// could be cleaned. A slow reader releases its value after 5 s.
const PAUSES_MAX: u32 = 10_000;
/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(1);

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
        let space = |value_bytes| shard.segments.space(Some(value_bytes));
        let before = old.map_or(0, |old| space(old.value_bytes.unwrap_or(0)));
        let more = space(u32::try_from(bytes).unwrap_or(u32::MAX)).saturating_sub(before);
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

/// Attempts of one command to free a segment.
struct Reclaim {
    segments: Arc<Segments>,
    cleanings: u32,
    pauses: u32,
    written: u64,
}

impl Reclaim {
    fn new(segments: &Arc<Segments>) -> Self {
        Self { segments: Arc::clone(segments), cleanings: 0, pauses: 0, written: 0 }
    }

    /// Cleans the best segment of the drive, or waits a moment while another one is cleaned.
    ///
    /// # Errors
    /// [`Status::CAPACITY_EXCEEDED`] when no cleaning helps, or the status of a medium's failure.
    async fn next(&mut self) -> Result<(), Status> {
        match clean_best(&self.segments).await? {
            Cleaned::Done => self.cleanings += 1,
            Cleaned::Nothing => return Err(Status::CAPACITY_EXCEEDED),
            Cleaned::Busy => {
                sleep(PAUSE).await;
                let written = self.segments.written_bytes();
                self.pauses = if written == self.written { self.pauses + 1 } else { 0 };
                self.written = written;
            }
        }
        let goes_on = self.cleanings < CLEANINGS_MAX && self.pauses < PAUSES_MAX;
        if goes_on { Ok(()) } else { Err(Status::CAPACITY_EXCEEDED) }
    }
}

/// Cleans in the background when few segments are free.
fn clean_if_low(segments: &Arc<Segments>) {
    if segments.is_low() && !segments.is_cleaning() {
        let segments = Arc::clone(segments);
        drop(spawn(Class::Service, async move {
            // A failure here fails the next Store with its own status.
            let _ = clean_best(&segments).await;
        }));
    }
}

/// Cleans the segment of all cores that gives back most. One shard cleans at a time, because the
/// reserved segments are for one.
async fn clean_best(segments: &Arc<Segments>) -> Result<Cleaned, Status> {
    if !segments.begin_cleaning() {
        return Ok(Cleaned::Busy);
    }
    let cleaning = Cleaning(Arc::clone(segments));
    // Checked only now: a drive that stops waits until no shard cleans.
    if segments.is_closing() {
        return Ok(Cleaned::Nothing);
    }
    let mut best: Option<(Candidate, usize)> = None;
    let mut waits = false;
    for core in 0..core_count() {
        let found = call(CoreId(core), Class::Service, || async { best_here() }).await;
        let (found, waits_there) = found.map_err(|_| Status::INTERNAL_ERROR)?;
        best = best.max(found);
        waits |= waits_there;
    }
    let Some((_, number)) = best else {
        return Ok(if waits { Cleaned::Busy } else { Cleaned::Nothing });
    };
    let there = move || async move {
        // Cleaning continues even if its caller is gone.
        let _cleaning = cleaning;
        let here = Shards::here().ok_or(Status::NAMESPACE_NOT_READY)?;
        here.shard(number).clean().await
    };
    call(owner(number), Class::Service, there).await.unwrap_or(Err(Status::INTERNAL_ERROR))
}

/// Returns this core's best segment to clean with its shard, and true if a segment cannot be
/// cleaned yet because hosts read from it.
fn best_here() -> (Option<(Candidate, usize)>, bool) {
    let Some(here) = Shards::here() else { return (None, false) };
    let shards = || here.own();
    let best = shards().filter_map(|shard| {
        let candidate = shard.candidate()?;
        Some((candidate, shard.number as usize))
    });
    (best.max(), shards().any(|shard| shard.waits_for_readers()))
}

/// A guard that ends cleaning, also when its task is dropped.
struct Cleaning(Arc<Segments>);

impl Drop for Cleaning {
    fn drop(&mut self) {
        self.0.end_cleaning();
    }
}
