//! [`News`]: the values of a core's log that a service has not read yet.
//!
//! After a group commit its buffers are kept, up to a bound. Records beyond it are noted as ranges
//! of their segments, which merge. This module performs no I/O. Invariant: a value is given out at
//! most once, at its place or, if it was moved before, at its new one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use csd_reactor::{Buffer, Notify};

use crate::record::{EntryKey, SegmentRange, footprint, value_offset};

/// A segment in the life that its sequence names, and the shard that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub shard: u32,
    pub segment: u32,
    pub sequence: u64,
}

/// A value that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewValue {
    /// Namespace and key.
    pub key: EntryKey,
    /// Offset of its record in the segment.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// Segment and offset of the record that cleaning has moved; `None` for a host's Store.
    pub from: Option<(u32, u64)>,
}

/// Buffers of values at hand are put together up to about so many bytes.
const BATCH_BYTES: usize = 64 << 10;

/// Values of group commits, or one value from the medium.
#[derive(Debug, Default)]
pub struct Batch {
    buffers: Vec<Buffer>,
    // Offset of each buffer in the bytes of all.
    starts: Vec<usize>,
    values: Vec<Range<usize>>,
    keys: Vec<EntryKey>,
}

impl Batch {
    pub(crate) fn new(buffers: Vec<Buffer>, values: Vec<(EntryKey, Range<usize>)>) -> Self {
        let start = |at: &mut usize, buffer: &Buffer| {
            let start = *at;
            *at += buffer.len();
            Some(start)
        };
        let starts = buffers.iter().scan(0, start).collect();
        let (keys, values) = values.into_iter().unzip();
        Self { buffers, starts, values, keys }
    }

    /// Appends another one.
    fn append(&mut self, mut other: Self) {
        let end = self.bytes();
        self.buffers.append(&mut other.buffers);
        self.starts.extend(other.starts.iter().map(|start| end + start));
        let shifted = |value: &Range<usize>| end + value.start..end + value.end;
        self.values.extend(other.values.iter().map(shifted));
        self.keys.append(&mut other.keys);
    }

    /// Returns the bytes of memory that it holds.
    fn bytes(&self) -> usize {
        let last = self.starts.last().zip(self.buffers.last());
        last.map_or(0, |(start, buffer)| start + buffer.len())
    }

    /// Returns namespace and key of each value.
    pub fn keys(&self) -> &[EntryKey] {
        &self.keys
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
}

/// Records of a segment that were not read.
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

/// The values that are new in the log of a core: its shards note them, and one reader takes them.
pub(crate) struct News {
    bytes_max: u64,
    // Batches at hand, and the bytes that they hold.
    at_hand: RefCell<VecDeque<Batch>>,
    bytes: Cell<u64>,
    unread: RefCell<BTreeMap<u32, Unread>>,
    arrived: Notify,
}

impl News {
    /// Begins with the records of these segments, and keeps buffers of up to `bytes_max` bytes.
    pub(crate) fn new(
        segments: impl Iterator<Item = (Place, SegmentRange)>,
        bytes_max: u64,
    ) -> Self {
        let unread = segments.filter(|(_, range)| range.bytes > 0).map(|(place, range)| {
            let Place { shard, segment, sequence } = place;
            (segment, Unread { shard, sequence, ranges: VecDeque::from([range]) })
        });
        let unread = RefCell::new(unread.collect());
        let (at_hand, bytes) = (RefCell::default(), Cell::default());
        Self { bytes_max, at_hand, bytes, unread, arrived: Notify::new() }
    }

    /// Takes the values of a group that was written to a segment, from `at` on, from these buffers.
    pub(crate) fn take(&self, place: Place, at: u64, buffers: Vec<Buffer>, values: &[NewValue]) {
        let is_new =
            |value: &&NewValue| value.bytes > 0 && value.from.is_none_or(|from| self.has(from));
        let new: Vec<&NewValue> = values.iter().filter(is_new).collect();
        if new.is_empty() {
            return;
        }
        let range = |value: &&NewValue| {
            let start = usize::try_from(value_offset(value.offset) - at).expect("it fits memory");
            (value.key, start..start + value.bytes as usize)
        };
        let held: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let bytes = self.bytes.get() + held as u64;
        if bytes <= self.bytes_max {
            self.bytes.set(bytes);
            let batch = Batch::new(buffers, new.iter().map(range).collect());
            self.at_hand.borrow_mut().push_back(batch);
        } else {
            self.note(place, &new);
        }
        self.arrived.notify_one();
    }

    /// Notes values that have to be read from the medium.
    fn note(&self, place: Place, new: &[&NewValue]) {
        let Place { shard, segment, sequence } = place;
        let mut unread = self.unread.borrow_mut();
        let none = || Unread { shard, sequence, ranges: VecDeque::new() };
        let found = unread.entry(segment).or_insert_with(none);
        if found.sequence != sequence {
            *found = none();
        }
        for value in new {
            let bytes = footprint(u64::from(value.bytes));
            found.push(SegmentRange { offset: value.offset, bytes });
        }
    }

    /// Returns true if the value at this offset of a segment was not read.
    fn has(&self, (segment, offset): (u32, u64)) -> bool {
        self.unread.borrow().get(&segment).is_some_and(|unread| unread.has(offset))
    }

    /// Returns values at hand, if there are some: those of several groups if they are short.
    pub(crate) fn at_hand(&self) -> Option<Batch> {
        let mut waiting = self.at_hand.borrow_mut();
        let mut batch = waiting.pop_front()?;
        while batch.bytes() < BATCH_BYTES
            && let Some(next) = waiting.pop_front()
        {
            batch.append(next);
        }
        self.bytes.set(self.bytes.get() - batch.bytes() as u64);
        Some(batch)
    }

    /// Waits until there may be more.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Waits until a whole batch is at hand.
    pub(crate) async fn batch_arrived(&self) {
        while self.bytes.get() < BATCH_BYTES as u64 {
            self.arrived().await;
        }
    }

    /// Returns the first records to read.
    pub(crate) fn first_unread(&self) -> Option<(Place, SegmentRange)> {
        let mut unread = self.unread.borrow_mut();
        loop {
            let first = unread.first_entry()?;
            match first.get().ranges.front() {
                Some(range) => {
                    let Unread { shard, sequence, .. } = *first.get();
                    return Some((Place { shard, segment: *first.key(), sequence }, *range));
                }
                None => drop(first.remove()),
            }
        }
    }

    /// Notes that the first records of a segment were read up to this offset.
    pub(crate) fn read_to(&self, place: Place, offset: u64) {
        let Place { segment, sequence, .. } = place;
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use csd_nvme::kv::Key;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{now, timeout};

    use super::*;

    /// Groups of which each has one value behind 64 bytes, numbered from 0.
    fn written(count: u8, value_bytes: usize) -> News {
        let news = News::new(std::iter::empty(), 1 << 20);
        let place = Place { shard: 0, segment: 1, sequence: 1 };
        for number in 0..count {
            let start = value_offset(0);
            let mut bytes = vec![0; usize::try_from(start).unwrap()];
            bytes.resize(bytes.len() + value_bytes, number);
            let (head, rest) = bytes.split_at(bytes.len() / 2);
            let buffers = vec![Buffer::from_slice(head), Buffer::from_slice(rest)];
            let key = (2, Key::new(&[number]).unwrap());
            let bytes = u32::try_from(value_bytes).unwrap();
            news.take(place, 0, buffers, &[NewValue { key, offset: 0, bytes, from: None }]);
        }
        news
    }

    #[test]
    fn short_groups_are_given_out_together_up_to_a_bound() {
        let value_bytes = BATCH_BYTES / 4;
        let news = written(10, value_bytes);
        let mut numbers = 0..10_u8;
        let mut batches = Vec::new();
        while let Some(batch) = news.at_hand() {
            for (key, value) in batch.keys().iter().zip(batch.values()) {
                let number = numbers.next().unwrap();
                assert_eq!(key.1.as_bytes(), [number]);
                let bytes = batch.pieces(value.clone()).flatten().copied().collect::<Vec<u8>>();
                assert!(bytes == vec![number; value_bytes], "value {number}");
            }
            batches.push(batch.keys().len());
        }
        assert_eq!(batches, [4, 4, 2]);
        assert_eq!(news.bytes.get(), 0);
    }

    #[test]
    fn few_values_wait_and_a_whole_batch_does_not() {
        let world = World::new(1, WorldConfig { cpu_ns_per_poll: 0, ..WorldConfig::default() });
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 1);
        world.start(machine, |_| async {
            let within = Duration::from_millis(10);
            let news = written(3, BATCH_BYTES / 4);
            assert!(timeout(within, news.batch_arrived()).await.is_err());
            assert_eq!(now().us(), 10_000);
            let news = written(4, BATCH_BYTES / 4);
            timeout(within, news.batch_arrived()).await.unwrap();
            assert_eq!(now().us(), 10_000);
        });
        let second = Duration::from_secs(1);
        world.run_until(|world| !world.is_running(machine), second).expect("it ends");
    }

    #[test]
    fn a_long_group_is_given_out_alone() {
        let news = written(2, BATCH_BYTES);
        assert_eq!(news.at_hand().unwrap().keys().len(), 1);
        assert_eq!(news.at_hand().unwrap().keys().len(), 1);
        assert!(news.at_hand().is_none());
    }
}
