//! Scrub: a task of each core that reads the current values of its shards, pass after pass, and
//! compares them with their checksums. It also compares data outside the log with values that hold
//! its checksums.
//!
//! Media damage bytes that are not read, and the damage shows only when the last good copy is
//! needed (latent sector errors: Bairavasundaram et al., "An analysis of latent sector errors in
//! disk drives", 2007). A scrub finds it while there are other copies.
//!
//! Reads segments one after another, up to the end of what is durable, at a pace. A segment
//! counts as having a reader while it is read, so that cleaning takes another one; it does not
//! while the task waits or reads outside the log. Each start of the drive begins its passes
//! elsewhere: the place where the last one ended is not kept, and a drive that is stopped before a
//! pass ends reads everything in the long run. Invariant: nothing is changed; a value is reported
//! only if it is still current after it was read, and data outside only if the value with its
//! checksums is.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_reactor::{Buffer, Instant, now, random_u64, sleep, sleep_until};

use crate::Kv;
use crate::record::EntryKey;
use crate::shard::{Location, Shard};
use crate::walk::{Step, Until, Walk};

/// Bytes read at once where records are short.
const WINDOW_BYTES: u64 = 256 << 10;
/// Pause between two passes, so that an empty log is not looked at all the time.
const PASS_PAUSE: Duration = Duration::from_secs(1);

/// Damage at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Namespace and key of the value; `None` if no record can be read there.
    pub entry: Option<EntryKey>,
    /// Number of the segment.
    pub segment: u32,
    /// Offset in the segment, bytes.
    pub offset: u64,
    /// First byte of the data outside the log that differs, if it is that and not the value, which
    /// has its checksums.
    pub outside: Option<u64>,
}

/// Result of comparing one piece of data outside the log with its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Length of the piece, bytes.
    pub bytes: u64,
    /// First byte that differs, or cannot be read.
    pub differs_at: Option<u64>,
}

/// The owner of a log that is scrubbed: knows which values have checksums of data outside the log,
/// and takes reports.
pub trait Owner {
    /// Checksums of data outside the log, in pieces.
    type Checksums;

    /// Returns the checksums that a value is, if it is some.
    fn checksums(&self, entry: &EntryKey, value: &Buffer) -> Option<Self::Checksums>;

    /// Compares a piece with its checksums; `None` behind the last piece.
    fn compare(
        &self,
        checksums: &Self::Checksums,
        piece: usize,
    ) -> impl Future<Output = Option<Compared>>;

    /// Takes the report of damage, in every pass again.
    fn report(&self, damage: &Damage);
}

/// Pace of a core's reads.
struct Pace {
    bytes_per_s: u64,
    due: Instant,
}

impl Pace {
    /// Counts bytes that were read; returns the time to wait for, if there is one.
    fn count(&mut self, bytes: u64) -> Option<Instant> {
        let ns = u128::from(bytes) * Duration::from_secs(1).as_nanos();
        let ns = u64::try_from(ns / u128::from(self.bytes_per_s.max(1))).unwrap_or(u64::MAX);
        let now = now();
        self.due = Instant::from_ns(self.due.max(now).ns().saturating_add(ns));
        (self.due > now).then_some(self.due)
    }
}

impl Kv {
    /// Reads this core's shards, pass after pass, until the drive stops.
    pub async fn scrub(&self, bytes_per_s: u64, owner: &impl Owner) {
        let mut pace = Pace { bytes_per_s, due: now() };
        let begin = random_u64();
        while !self.segments.is_closing() {
            for shard in rotated(self.shards.own(), begin) {
                shard.scrub(begin >> 32, &mut pace, owner).await;
            }
            sleep(PASS_PAUSE).await;
        }
    }
}

/// Returns the items in their order, beginning with the one that `begin` selects.
fn rotated<T>(items: impl Iterator<Item = T>, begin: u64) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    let first = begin.checked_rem(items.len() as u64).unwrap_or(0);
    items.rotate_left(usize::try_from(first).expect("less than their number"));
    items
}

/// A pinned segment: cleaning skips it while this exists.
struct Reading {
    shard: Rc<Shard>,
    segment: u32,
    sequence: u64,
    filled: u64,
}

impl Reading {
    /// Adds a reader to a segment; `None` if the shard has no such segment any more.
    fn of(shard: &Rc<Shard>, segment: u32) -> Option<Self> {
        let mut owned = shard.owned.borrow_mut();
        let found = owned.get_mut(&segment)?;
        found.readers += 1;
        let (sequence, filled) = (found.sequence, found.filled);
        Some(Self { shard: Rc::clone(shard), segment, sequence, filled })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.shard.unpin(self.segment);
    }
}

impl Shard {
    /// Reads the current values of all segments once, from the one that `begin` selects on.
    async fn scrub(self: &Rc<Self>, begin: u64, pace: &mut Pace, owner: &impl Owner) {
        let segments = rotated(self.owned.borrow().keys().copied(), begin);
        for segment in segments {
            if self.segments.is_closing() {
                return;
            }
            let Some(reading) = Reading::of(self, segment) else { continue };
            if let Some(offset) = self.scrub_segment(reading, pace, owner).await {
                self.found(&Damage { entry: None, segment, offset, outside: None }, owner);
            }
        }
    }

    /// Reads the current values of a segment; returns the place behind which nothing can be read.
    async fn scrub_segment(
        self: &Rc<Self>,
        reading: Reading,
        pace: &mut Pace,
        owner: &impl Owner,
    ) -> Option<u64> {
        let (segment, sequence, end) = (reading.segment, reading.sequence, reading.filled);
        let (place, until) = ((segment, sequence), Until::Sealed(end));
        let mut walk = Walk::new(&self.media, &self.segments, place, until, WINDOW_BYTES);
        let mut reading = Some(reading);
        loop {
            let (offset, record) = match walk.next().await {
                Ok(Step::Record(offset, record)) => (offset, record),
                Ok(Step::Checkpoint(..)) => continue,
                Ok(Step::End) => return None,
                Ok(Step::Damage(at) | Step::Unknown(at, _)) => return Some(at),
                Err(_) => return Some(walk.position()),
            };
            if self.segments.is_closing() {
                return None;
            }
            let at = Location { segment, offset, value_bytes: record.value_bytes };
            let read = Read { key: record.key, at };
            if record.value_bytes.is_none() || !self.is_current(&read.key, &read.at) {
                continue;
            }
            let value = walk.value(offset, &record).await.ok().flatten();
            self.segments.scrub.bytes.fetch_add(record.footprint(), Relaxed);
            if value.is_none() && self.is_current(&read.key, &read.at) {
                self.found(&read.damage(None), owner);
            }
            let sums = value.and_then(|value| owner.checksums(&record.key, &value));
            let due = pace.count(record.footprint());
            if sums.is_none() && due.is_none() {
                continue;
            }
            drop(reading.take());
            if let Some(due) = due {
                sleep_until(due).await;
            }
            if let Some(sums) = sums {
                self.scrub_outside(&read, &sums, pace, owner).await;
            }
            let again = Reading::of(self, segment);
            // It may have been freed meanwhile, and even be in use again.
            reading = Some(again.filter(|again| again.sequence == sequence)?);
        }
    }

    /// Compares data outside the log with checksums that were read.
    async fn scrub_outside<O: Owner>(
        &self,
        read: &Read,
        sums: &O::Checksums,
        pace: &mut Pace,
        owner: &O,
    ) {
        for piece in 0.. {
            if self.segments.is_closing() || !self.is_current(&read.key, &read.at) {
                return;
            }
            let Some(compared) = owner.compare(sums, piece).await else { return };
            self.segments.scrub.bytes.fetch_add(compared.bytes, Relaxed);
            if compared.differs_at.is_some() && self.is_current(&read.key, &read.at) {
                self.found(&read.damage(compared.differs_at), owner);
            }
            if let Some(due) = pace.count(compared.bytes) {
                sleep_until(due).await;
            }
        }
    }

    fn found(&self, damage: &Damage, owner: &impl Owner) {
        self.segments.scrub.damaged.fetch_add(1, Relaxed);
        owner.report(damage);
    }
}

/// A value that was read.
struct Read {
    key: EntryKey,
    at: Location,
}

impl Read {
    fn damage(&self, outside: Option<u64>) -> Damage {
        let Location { segment, offset, .. } = self.at;
        Damage { entry: Some(self.key), segment, offset, outside }
    }
}
