//! Scrub: a service of each core that reads the current values of its shards, pass after pass, and
//! compares them with their checksums. It also compares data outside the log with values that hold
//! its checksums.
//!
//! Media damage bytes that are not read, and the damage shows only when the last good copy is
//! needed (latent sector errors: Bairavasundaram et al., "An analysis of latent sector errors in
//! disk drives", 2007). A scrub finds it while there are other copies.
//!
//! Reads segments one after another, up to the end of what is durable. A segment has a reader while
//! a step reads it, so that cleaning takes another one, and none between two steps or while data
//! outside the log is read. Each start of the drive begins its passes elsewhere: the place where
//! the last one ended is not kept, and a drive that is stopped before a pass ends reads everything
//! in the long run. Invariant: nothing is changed; a value is reported only if it is still current
//! after it was read, and data outside only if the value with its checksums is.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_reactor::{Buffer, random_u64, sleep};

use crate::pinned::Pinned;
use crate::record::EntryKey;
use crate::segments::Segments;
use crate::service::{self, Pending, Service};
use crate::shard::{Location, Shard};
use crate::shards::Shards;
use crate::walk::{Step, Until, Walk};

/// Bytes read at once where records are short. A Retrieve may wait for as long as that takes.
const WINDOW_BYTES: u64 = 64 << 10;
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

    /// Returns the checksums that a value is, if it is some. A long value is looked at elsewhere
    /// than on this core.
    fn checksums(
        &self,
        entry: &EntryKey,
        value: Buffer,
    ) -> impl Future<Output = Option<Self::Checksums>>;

    /// Compares the next piece with its checksums; `None` behind the last piece.
    fn compare(&self, checksums: &mut Self::Checksums) -> impl Future<Output = Option<Compared>>;

    /// Notes that a pass has met every value once.
    fn pass_ended(&self);

    /// Takes the report of damage, in every pass again.
    fn report(&self, damage: &Damage);
}

/// The service that scrubs the shards of a core. A step is one value, or one piece of data outside
/// the log.
pub struct Scrubber<O: Owner> {
    segments: Arc<Segments>,
    shards: Rc<Shards>,
    owner: O,
    // Selects the shard and the segments that passes begin with.
    begin: u64,
    // What is left of the pass, in this order from the last field on.
    shards_left: VecDeque<Rc<Shard>>,
    segments_left: VecDeque<(Rc<Shard>, u32)>,
    walking: Option<Walking>,
    outside: Option<Outside<O::Checksums>>,
}

/// A segment that is read.
struct Walking {
    shard: Rc<Shard>,
    segment: u32,
    sequence: u64,
    walk: Walk,
}

/// Data outside the log that is compared with checksums that were read.
struct Outside<C> {
    shard: Rc<Shard>,
    read: Read,
    checksums: C,
}

impl<O: Owner> Scrubber<O> {
    pub(crate) fn new(segments: &Arc<Segments>, shards: &Rc<Shards>, owner: O) -> Self {
        let begin = random_u64();
        Self {
            segments: Arc::clone(segments),
            shards: Rc::clone(shards),
            owner,
            begin,
            shards_left: rotated(shards.own().cloned(), begin),
            segments_left: VecDeque::new(),
            walking: None,
            outside: None,
        }
    }

    async fn scrub(&mut self) -> service::Step {
        while !self.segments.is_closing() {
            let bytes = if let Some(outside) = self.outside.take() {
                self.compare(outside).await
            } else if let Some(walking) = self.walking.take() {
                self.read(walking).await
            } else if self.next_segment() {
                None
            } else {
                break;
            };
            if let Some(bytes) = bytes {
                return service::Step::Worked { bytes };
            }
        }
        service::Step::Idle
    }

    /// Begins to read the next segment; returns false at the end of the pass.
    fn next_segment(&mut self) -> bool {
        let Some((shard, segment)) = self.segments_left.pop_front() else {
            let Some(shard) = self.shards_left.pop_front() else { return false };
            let segments = shard.owned.borrow().keys().copied().collect::<Vec<_>>();
            let segments = segments.into_iter().map(|segment| (Rc::clone(&shard), segment));
            self.segments_left = rotated(segments, self.begin >> 32);
            return true;
        };
        let found = shard.owned.borrow().get(&segment).map(|found| (found.sequence, found.filled));
        // The shard may have no such segment any more.
        if let Some((sequence, end)) = found {
            let (place, until) = ((segment, sequence), Until::Sealed(end));
            let walk = Walk::new(&shard.media, &self.segments, place, until, WINDOW_BYTES);
            self.walking = Some(Walking { shard, segment, sequence, walk });
        }
        true
    }

    /// Reads the next current value of a segment; returns its bytes, and `None` at the segment's
    /// end, or at a place behind which nothing can be read.
    async fn read(&mut self, mut walking: Walking) -> Option<u64> {
        let (shard, segment) = (&Rc::clone(&walking.shard), walking.segment);
        // It may have been freed meanwhile, and even be in use again.
        let _pinned = Pinned::of(shard, segment, walking.sequence)?;
        let ended_at = loop {
            let (offset, record) = match walking.walk.next().await {
                Ok(Step::Record(offset, record)) => (offset, record),
                Ok(Step::Checkpoint(..)) => continue,
                Ok(Step::End) => return None,
                Ok(Step::Damage(at) | Step::Unknown(at, _)) => break at,
                Err(_) => break walking.walk.position(),
            };
            if self.segments.is_closing() {
                return None;
            }
            let at = Location { segment, offset, content: record.content };
            let read = Read { key: record.key, at };
            if !record.content.is_value() || !shard.is_current(&read.key, &read.at) {
                continue;
            }
            let value = walking.walk.value(offset, &record).await.ok().flatten();
            if value.is_none() && shard.is_current(&read.key, &read.at) {
                self.found(&read.damage(None));
            }
            let sums = match value {
                Some(value) => self.owner.checksums(&record.key, value).await,
                None => None,
            };
            let shard = Rc::clone(shard);
            self.outside = sums.map(|checksums| Outside { shard, read, checksums });
            self.walking = Some(walking);
            return Some(record.footprint());
        };
        self.found(&Damage { entry: None, segment, offset: ended_at, outside: None });
        None
    }

    /// Compares the next piece; returns its bytes, and `None` behind the last one.
    async fn compare(&mut self, mut outside: Outside<O::Checksums>) -> Option<u64> {
        let Outside { shard, read, checksums } = &mut outside;
        if !shard.is_current(&read.key, &read.at) {
            return None;
        }
        let compared = self.owner.compare(checksums).await?;
        if compared.differs_at.is_some() && shard.is_current(&read.key, &read.at) {
            self.found(&read.damage(compared.differs_at));
        }
        self.outside = Some(outside);
        Some(compared.bytes)
    }

    fn found(&self, damage: &Damage) {
        self.segments.scrub_damage.fetch_add(1, Relaxed);
        self.owner.report(damage);
    }

    /// Waits between two passes.
    async fn pause(&mut self) {
        self.owner.pass_ended();
        sleep(PASS_PAUSE).await;
        self.shards_left = rotated(self.shards.own().cloned(), self.begin);
    }
}

impl<O: Owner> Service for Scrubber<O> {
    fn step(&mut self) -> Pending<'_, service::Step> {
        Box::pin(self.scrub())
    }

    fn wait(&mut self) -> Pending<'_, ()> {
        Box::pin(self.pause())
    }
}

/// Returns the items in their order, beginning with the one that `begin` selects.
fn rotated<T>(items: impl Iterator<Item = T>, begin: u64) -> VecDeque<T> {
    let mut items: VecDeque<T> = items.collect();
    let first = begin.checked_rem(items.len() as u64).unwrap_or(0);
    items.rotate_left(usize::try_from(first).expect("less than their number"));
    items
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
