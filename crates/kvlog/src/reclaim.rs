//! Choice of the segment that is cleaned, and the occasions: the service [`Cleaner`] cleans while
//! few segments are free, and a command cleans when it finds none.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Class, CoreId, call, core_count, sleep};

use crate::clean::{Candidate, Cleaned};
use crate::segments::Segments;
use crate::service::{Pending, Service, Step};
use crate::shards::{Shards, owner};

/// Most cleanings that one command starts before it gives up.
const CLEANINGS_MAX: u32 = 64;
/// Most pauses of one command while nothing is written, because hosts read from every segment that
/// could be cleaned. A slow reader releases its value after 5 s.
const PAUSES_MAX: u32 = 10_000;
/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(1);

/// Attempts of one command to free a segment.
pub(crate) struct Reclaim {
    segments: Arc<Segments>,
    cleanings: u32,
    pauses: u32,
    written: u64,
}

impl Reclaim {
    /// Begins the attempts of a command.
    pub(crate) fn new(segments: &Arc<Segments>) -> Self {
        Self { segments: Arc::clone(segments), cleanings: 0, pauses: 0, written: 0 }
    }

    /// Cleans the best segment of the drive, or waits a moment while another one is cleaned.
    ///
    /// # Errors
    /// [`Status::CAPACITY_EXCEEDED`] when no cleaning helps, or the status of a medium's failure.
    pub(crate) async fn next(&mut self) -> Result<(), Status> {
        match clean_best(&self.segments).await? {
            Cleaned::Done { .. } => self.cleanings += 1,
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

/// Asks this core's [`Cleaner`] for a step when few segments are free.
pub(crate) fn clean_if_low(segments: &Segments) {
    if segments.is_low()
        && !segments.is_cleaning()
        && let Some(here) = Shards::here()
    {
        here.low.notify_one();
    }
}

/// The service that cleans: a step for each time that a change of this core found the log low.
pub struct Cleaner {
    segments: Arc<Segments>,
    shards: Rc<Shards>,
    is_asked: bool,
}

impl Cleaner {
    pub(crate) fn new(segments: &Arc<Segments>, shards: &Rc<Shards>) -> Self {
        Self { segments: Arc::clone(segments), shards: Rc::clone(shards), is_asked: false }
    }

    async fn clean(&mut self) -> Step {
        if !std::mem::take(&mut self.is_asked) {
            return Step::Idle;
        }
        match clean_best(&self.segments).await {
            Ok(Cleaned::Done { bytes }) => Step::Worked { bytes },
            Ok(Cleaned::Busy | Cleaned::Nothing) => Step::Idle,
            Err(status) if is_of_the_medium(status) => {
                Step::Failed(format!("a segment cannot be cleaned: {status}"))
            }
            // The log is full, or takes no more writes: the next Store says so.
            Err(_) => Step::Idle,
        }
    }

    async fn asked(&mut self) {
        self.shards.low.notified().await;
        self.is_asked = true;
    }
}

impl Service for Cleaner {
    fn step(&mut self) -> Pending<'_, Step> {
        Box::pin(self.clean())
    }

    fn wait(&mut self) -> Pending<'_, ()> {
        Box::pin(self.asked())
    }
}

/// Returns true if a cleaning failed with an access of the medium.
fn is_of_the_medium(status: Status) -> bool {
    matches!(
        status,
        Status::WRITE_FAULT | Status::UNRECOVERED_READ_ERROR | Status::UNRECOVERED_ERROR
    )
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
