//! [`NewValues`]: reads each value of a core's shards once, those that are stored later too.
//!
//! A Store's buffers are kept after its group commit, up to a bound, so that its value need not be
//! read. What exceeds the bound is noted by its place in the log and read from the medium, as are
//! the values that were there before. Invariants: a value is returned at most once, whether
//! cleaning moves it or not; one that was superseded, or is damaged, when its turn to be read comes
//! is left out; nothing that a command needs waits for the reader.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use csd_reactor::{Buffer, Notify};

use crate::error::MediaError;
use crate::group::Group;
use crate::pinned::Pinned;
use crate::record::{RECORDS_OFFSET, SegmentRange, value_offset};
use crate::segments::Segments;
use crate::shard::{Append, Change, Location, Shard};
use crate::shards::Shards;
use crate::walk::{Step, Until, Walk};

/// Bytes read at once where records are short.
const WINDOW_BYTES: u64 = 256 << 10;

/// Values of one group commit, or one value from the medium.
#[derive(Debug)]
pub struct Batch {
    buffers: Vec<Buffer>,
    // Offset of each buffer in the bytes of all.
    starts: Vec<usize>,
    values: Vec<Range<usize>>,
}

impl Batch {
    fn new(buffers: Vec<Buffer>, values: Vec<Range<usize>>) -> Self {
        let start = |at: &mut usize, buffer: &Buffer| {
            let start = *at;
            *at += buffer.len();
            Some(start)
        };
        let starts = buffers.iter().scan(0, start).collect();
        Self { buffers, starts, values }
    }

    /// Returns the place of each value in the bytes of the batch.
    pub fn values(&self) -> &[Range<usize>] {
        &self.values
    }

    /// Returns the bytes of a range within a value, in pieces.
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let first = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let buffers = self.starts.iter().zip(&self.buffers).skip(first);
        buffers.take_while(move |(start, _)| **start < range.end).map(move |(start, buffer)| {
            let end = (range.end - start).min(buffer.len());
            &buffer[range.start.saturating_sub(*start)..end]
        })
    }

    /// Returns the length of all values in bytes.
    pub fn value_bytes(&self) -> u64 {
        self.values.iter().map(|value| value.len() as u64).sum()
    }

    /// Returns the bytes of memory that it holds.
    fn held_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).sum()
    }
}

/// Records of a segment that are to be read.
#[derive(Debug)]
struct Unread {
    shard: u32,
    sequence: u64,
    ranges: VecDeque<SegmentRange>,
}

impl Unread {
    fn has(&self, offset: u64) -> bool {
        self.ranges.iter().any(|range| (range.offset..range.end()).contains(&offset))
    }

    fn push(&mut self, new: SegmentRange) {
        match self.ranges.back_mut().filter(|last| last.end() == new.offset) {
            Some(last) => last.bytes += new.bytes,
            None => self.ranges.push_back(new),
        }
    }
}

/// What is new in the log of a core: its shards note it, and [`NewValues`] takes it.
pub(crate) struct News {
    bytes_max: u64,
    // Batches at hand, and the bytes that they hold.
    at_hand: RefCell<VecDeque<Batch>>,
    bytes: Cell<u64>,
    unread: RefCell<BTreeMap<u32, Unread>>,
    arrived: Notify,
}

impl News {
    fn new(shards: &Shards, bytes_max: u64) -> Self {
        let mut unread = BTreeMap::new();
        for shard in shards.own() {
            for (number, segment) in &*shard.owned.borrow() {
                let bytes = segment.filled.saturating_sub(RECORDS_OFFSET);
                if bytes == 0 {
                    continue;
                }
                let ranges = VecDeque::from([SegmentRange { offset: RECORDS_OFFSET, bytes }]);
                let (shard, sequence) = (shard.number, segment.sequence);
                unread.insert(*number, Unread { shard, sequence, ranges });
            }
        }
        let (at_hand, bytes) = (RefCell::default(), Cell::default());
        Self { bytes_max, at_hand, bytes, unread: RefCell::new(unread), arrived: Notify::new() }
    }

    /// Takes the values of a group that was written at `at` from these buffers.
    pub(crate) fn take(&self, shard: u32, group: &Group, at: u64, buffers: Vec<Buffer>) {
        let is_new = |(append, location): &&(Append, Location)| {
            location.value_bytes.is_some_and(|bytes| bytes > 0) && self.is_unread(append)
        };
        let new: Vec<Location> =
            group.placed.iter().filter(is_new).map(|(_, location)| *location).collect();
        if new.is_empty() {
            return;
        }
        let value = |location: &Location| {
            let start = value_offset(location.offset) - at;
            let start = usize::try_from(start).expect("a group fits memory");
            start..start + location.value_bytes.unwrap_or(0) as usize
        };
        let batch = Batch::new(buffers, new.iter().map(value).collect());
        let bytes = self.bytes.get() + batch.held_bytes();
        if bytes <= self.bytes_max {
            self.bytes.set(bytes);
            self.at_hand.borrow_mut().push_back(batch);
        } else {
            let mut unread = self.unread.borrow_mut();
            let (segment, sequence) = (group.segment, group.sequence);
            let found = unread.entry(segment).or_insert_with(|| Unread {
                shard,
                sequence,
                ranges: VecDeque::new(),
            });
            if found.sequence != sequence {
                *found = Unread { shard, sequence, ranges: VecDeque::new() };
            }
            for location in new {
                let range = SegmentRange { offset: location.offset, bytes: location.footprint() };
                found.push(range);
            }
        }
        self.arrived.notify_one();
    }

    /// Returns true for a host's Store, and for a value that moves before it was read.
    fn is_unread(&self, append: &Append) -> bool {
        let Change::Move { from, .. } = &append.change else { return true };
        let unread = self.unread.borrow();
        unread.get(&from.segment).is_some_and(|unread| unread.has(from.offset))
    }

    /// Returns the first records to read: their shard, segment and its sequence, and their range.
    fn first_unread(&self) -> Option<(u32, u32, u64, SegmentRange)> {
        let mut unread = self.unread.borrow_mut();
        loop {
            let first = unread.first_entry()?;
            match first.get().ranges.front() {
                Some(range) => {
                    let found = first.get();
                    return Some((found.shard, *first.key(), found.sequence, *range));
                }
                None => drop(first.remove()),
            }
        }
    }

    /// Notes that the first records of a segment were read up to this offset.
    fn read_to(&self, segment: u32, sequence: u64, offset: u64) {
        let mut unread = self.unread.borrow_mut();
        let Some(found) = unread.get_mut(&segment).filter(|it| it.sequence == sequence) else {
            return;
        };
        // Its range may be gone: then the first one lies behind the offset.
        let first = found.ranges.front_mut().filter(|first| first.offset < offset);
        let Some(first) = first else { return };
        let end = first.end();
        match offset < end {
            true => *first = SegmentRange { offset, bytes: end - offset },
            false => drop(found.ranges.pop_front()),
        }
    }
}

/// Records that are being read.
struct Reading {
    shard: Rc<Shard>,
    segment: u32,
    sequence: u64,
    end: u64,
    walk: Walk,
}

/// Reads the values of a core's shards.
pub struct NewValues {
    segments: Arc<Segments>,
    shards: Rc<Shards>,
    news: Rc<News>,
    reading: Option<Reading>,
}

impl NewValues {
    /// Begins with the values that are there. Of Stores it keeps up to `bytes_max` bytes of memory.
    pub(crate) fn new(segments: &Arc<Segments>, shards: &Rc<Shards>, bytes_max: u64) -> Self {
        let news = Rc::new(News::new(shards, bytes_max));
        shards.own().for_each(|shard| drop(shard.news.replace(Some(Rc::clone(&news)))));
        let (segments, shards) = (Arc::clone(segments), Rc::clone(shards));
        Self { segments, shards, news, reading: None }
    }

    /// Returns the next values; `None` if there are none now, or the log closes.
    ///
    /// # Errors
    /// When the medium cannot be read there. The next call goes on behind it.
    pub async fn next(&mut self) -> Result<Option<Batch>, MediaError> {
        let at_hand = self.news.at_hand.borrow_mut().pop_front();
        if let Some(batch) = at_hand {
            self.news.bytes.set(self.news.bytes.get() - batch.held_bytes());
            return Ok(Some(batch));
        }
        while !self.segments.is_closing() {
            let Some(mut reading) = self.reading.take().or_else(|| self.begin()) else { break };
            let next = reading.next(&self.news).await;
            if !matches!(next, Ok(Some(_))) {
                self.news.read_to(reading.segment, reading.sequence, reading.end);
            }
            if let Some(value) = next? {
                self.reading = Some(reading);
                let whole = 0..value.len();
                return Ok(Some(Batch::new(vec![value], vec![whole])));
            }
        }
        Ok(None)
    }

    /// Waits until there may be more.
    pub async fn arrived(&self) {
        self.news.arrived.notified().await;
    }

    fn begin(&self) -> Option<Reading> {
        let (shard, segment, sequence, range) = self.news.first_unread()?;
        let shard = Rc::clone(self.shards.shard(shard as usize));
        let (place, end) = ((segment, sequence), range.end());
        let until = Until::Sealed(end);
        let walk = Walk::new(&shard.media, &self.segments, place, until, WINDOW_BYTES);
        let walk = walk.starting_at(range.offset);
        Some(Reading { shard, segment, sequence, end, walk })
    }
}

impl Drop for NewValues {
    fn drop(&mut self) {
        self.shards.own().for_each(|shard| drop(shard.news.take()));
    }
}

impl Reading {
    /// Returns the next current value; `None` at the end, at damage, or if the segment was freed.
    async fn next(&mut self, news: &News) -> Result<Option<Buffer>, MediaError> {
        let Some(_pinned) = Pinned::of(&self.shard, self.segment, self.sequence) else {
            return Ok(None);
        };
        loop {
            let (offset, record) = match self.walk.next().await? {
                Step::Record(offset, record) => (offset, record),
                Step::Checkpoint(..) => continue,
                Step::End | Step::Damage(_) | Step::Unknown(..) => return Ok(None),
            };
            let at = Location { segment: self.segment, offset, value_bytes: record.value_bytes };
            let is_empty = record.value_bytes.is_none_or(|bytes| bytes == 0);
            if is_empty || !self.shard.is_current(&record.key, &at) {
                continue;
            }
            // Before it is read, so that cleaning which moves it meanwhile does not offer it again.
            news.read_to(self.segment, self.sequence, self.walk.position());
            if let Some(value) = self.walk.value(offset, &record).await? {
                return Ok(Some(value));
            }
        }
    }
}
