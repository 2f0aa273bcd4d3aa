//! Scrub: a task of each core that reads the current values of its shards, pass after pass, and
//! compares them with their checksums, and blocks with the page lists among them.
//!
//! Reads segments one after another, up to the end of what is durable, at a pace. A segment has a
//! reader while it is read, so that cleaning takes another one, and none while the task waits or
//! reads blocks. Each start of the drive begins its passes elsewhere: the place where the last one
//! ended is not kept, and a drive that is stopped before a pass ends reads everything in the long
//! run. Invariant: nothing is changed; a value is reported only if it is still current after it was
//! read, and a page of blocks only if its list is.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_nvme::pages::{KEY_BYTES, List, PieceKind};
use csd_nvme::vendor::NSID_OBJECTS;
use csd_reactor::{Buffer, Instant, now, random_u64, sleep, sleep_until};

use super::Kv;
use super::pages::{Differing, compare};
use super::record::EntryKey;
use super::shard::{Location, Shard};
use super::walk::{Step, Until, Walk};
use crate::namespace::block::Block;

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
    /// First byte of a page in the block namespace, if that differs and not the value, which is its
    /// page list.
    pub page: Option<u64>,
}

/// Parts of the drive that a scrub works with.
struct Scope<'a> {
    kv: &'a Kv,
    block: &'a Block,
    report: &'a dyn Fn(&Damage),
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
    /// Reads this core's shards, pass after pass, until the drive stops. Calls `report` for damage,
    /// in every pass again.
    pub async fn scrub(&self, block: &Block, bytes_per_s: u64, report: &dyn Fn(&Damage)) {
        let mut pace = Pace { bytes_per_s, due: now() };
        let scope = Scope { kv: self, block, report };
        let begin = random_u64();
        while !self.segments.is_closing() {
            for shard in rotated(self.shards.iter().flatten(), begin) {
                shard.scrub(begin >> 32, &mut pace, &scope).await;
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

/// A segment with a reader more.
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
    async fn scrub(self: &Rc<Self>, begin: u64, pace: &mut Pace, scope: &Scope<'_>) {
        let segments = rotated(self.owned.borrow().keys().copied(), begin);
        for segment in segments {
            if self.segments.is_closing() {
                return;
            }
            let Some(reading) = Reading::of(self, segment) else { continue };
            if let Some(offset) = self.scrub_segment(reading, pace, scope).await {
                self.found(&Damage { entry: None, segment, offset, page: None }, scope);
            }
        }
    }

    /// Reads the current values of a segment; returns the place behind which nothing can be read.
    async fn scrub_segment(
        self: &Rc<Self>,
        reading: Reading,
        pace: &mut Pace,
        scope: &Scope<'_>,
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
                self.found(&read.damage(None), scope);
            }
            let list = value.and_then(|value| list_of_blocks(&record.key, &value));
            let due = pace.count(record.footprint());
            if list.is_none() && due.is_none() {
                continue;
            }
            drop(reading.take());
            if let Some(due) = due {
                sleep_until(due).await;
            }
            if let Some(list) = list {
                self.scrub_blocks(&read, &list, pace, scope).await;
            }
            let again = Reading::of(self, segment);
            // It may have been freed meanwhile, and even be in use again.
            reading = Some(again.filter(|again| again.sequence == sequence)?);
        }
    }

    /// Compares blocks with a page list.
    async fn scrub_blocks(&self, read: &Read, list: &List, pace: &mut Pace, scope: &Scope<'_>) {
        for (number, piece) in list.pieces.iter().enumerate() {
            if self.segments.is_closing() || !self.is_current(&read.key, &read.at) {
                return;
            }
            let found = compare(scope.kv, scope.block, list, number, 0).await;
            self.segments.scrub.bytes.fetch_add(piece.bytes.into(), Relaxed);
            let first = match found {
                Ok(Differing { count: 0, .. }) => None,
                Ok(Differing { first, .. }) => Some(u64::from(first)),
                // The medium cannot read them.
                Err(_) => Some(0),
            };
            if let Some(first) = first.filter(|_| self.is_current(&read.key, &read.at)) {
                let page = piece.start + first * u64::from(list.page_bytes);
                self.found(&read.damage(Some(page)), scope);
            }
            if let Some(due) = pace.count(piece.bytes.into()) {
                sleep_until(due).await;
            }
        }
    }

    fn found(&self, damage: &Damage, scope: &Scope<'_>) {
        self.segments.scrub.damaged.fetch_add(1, Relaxed);
        (scope.report)(damage);
    }
}

/// A value that was read.
struct Read {
    key: EntryKey,
    at: Location,
}

impl Read {
    fn damage(&self, page: Option<u64>) -> Damage {
        let Location { segment, offset, .. } = self.at;
        Damage { entry: Some(self.key), segment, offset, page }
    }
}

/// Returns the page list that a value is, if it is one of blocks. Values are compared with the
/// checksums of their records.
fn list_of_blocks(entry: &EntryKey, value: &Buffer) -> Option<List> {
    let list = if is_list(entry) { List::parse(value).ok()? } else { return None };
    (list.kind == PieceKind::BLOCKS).then_some(list)
}

/// Returns true if page lists have such keys.
pub fn is_list((nsid, key): &EntryKey) -> bool {
    u32::from(*nsid) == NSID_OBJECTS && key.as_bytes().len() == KEY_BYTES
}
