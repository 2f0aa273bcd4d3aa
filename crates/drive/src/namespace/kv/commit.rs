//! Group commit: appends that came together leave together, by one write and one sync.
//!
//! Never: the index before the sync. Invariant: groups of a shard are strictly one after the other,
//! so behind a torn group nothing was acknowledged.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, spawn};

use super::record::{
    PAGE_BYTES, RECORD_ALIGNMENT, RECORDS_OFFSET, Record, RecordHeader, SegmentHeader, SegmentSeal,
    footprint,
};
use super::shard::{Append, Location, Refused, Segment, Shard};
use crate::error::{Access, MediaError};

/// Most records in a group.
const GROUP_RECORDS_MAX: usize = 48;
/// A group is closed when it has reached this many bytes.
const GROUP_BYTES: u64 = 8 << 20;
/// Values up to this size are copied beside their header, larger ones are written where they are.
const COPIED_BYTES_MAX: u64 = 8 << 10;

/// Appends with their places, and the bytes to write.
struct Group {
    segment: u32,
    start: u64,
    end: u64,
    placed: Vec<(Append, Location)>,
    buffers: Vec<Buffer>,
}

impl Shard {
    /// Makes sure that the queue is being worked off.
    pub(super) fn start_committing(self: &Rc<Self>) {
        if self.committing.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        drop(spawn(Class::Foreground, async move { shard.work_off().await }));
    }

    async fn work_off(&self) {
        while !self.queue.borrow().is_empty() {
            match self.next_group().await {
                Ok(group) => self.commit(group).await,
                Err(status) => self.fail_next(status),
            }
        }
        self.committing.set(false);
    }

    /// Fails the first append of the queue; the others get their own try.
    fn fail_next(&self, status: Status) {
        if let Some(mut append) = self.queue.borrow_mut().pop_front() {
            let value = append.value.take();
            answer(append, Err(Refused { status, value }));
        }
    }

    /// Takes appends that fit the open segment, opening a new one if need be.
    async fn next_group(&self) -> Result<Group, Status> {
        let (first, may_use_reserve) = {
            let queue = self.queue.borrow();
            let append = queue.front().expect("asked with a queue");
            // What makes room must not fail for lack of it: cleaning, and deleting.
            let makes_room = append.moved.is_some() || append.value.is_none();
            (footprint(value_bytes(append)), makes_room)
        };
        let (segment, sequence, start) = self.segment_for(first, may_use_reserve).await?;
        let mut group =
            Group { segment, start, end: start, placed: Vec::new(), buffers: Vec::new() };
        let mut queue = self.queue.borrow_mut();
        while let Some(append) = queue.front() {
            let length = footprint(value_bytes(append));
            let fits = group.end + length <= self.segments.segment_bytes;
            let full = group.placed.len() >= GROUP_RECORDS_MAX || group.end - start >= GROUP_BYTES;
            if !fits || full {
                break;
            }
            let append = queue.pop_front().expect("just seen");
            self.place(&mut group, append, sequence);
        }
        Ok(group)
    }

    /// Gives an append its place in the group and its commit number.
    fn place(&self, group: &mut Group, mut append: Append, sequence: u64) {
        let value = append.value.take();
        let pieces = value.as_deref().unwrap_or(&[]);
        let checksum = pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece));
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let length = u32::try_from(length).expect("values are at most 16 MiB");
        let record = Record {
            key: append.lock.key(),
            commit: append.moved.unwrap_or_else(|| self.segments.next_commit()),
            value_bytes: value.as_ref().map(|_| length),
            value_checksum: checksum,
        };
        let location = Location {
            segment: group.segment,
            offset: group.end,
            value_bytes: record.value_bytes,
            value_checksum: checksum,
            commit: record.commit,
        };
        let header = record.encode(sequence);
        push_record(&mut group.buffers, &header, value.unwrap_or_default(), record.footprint());
        group.end += record.footprint();
        group.placed.push((append, location));
    }

    async fn commit(&self, mut group: Group) {
        let padded = group.end.next_multiple_of(PAGE_BYTES).min(self.segments.segment_bytes);
        let padding = usize::try_from(padded - group.end).expect("less than a page");
        if padding > 0 {
            group.buffers.push(Buffer::zeroed(padding));
        }
        let at = self.segments.at(group.segment, group.start);
        let (written, _) = self.media.write(at, std::mem::take(&mut group.buffers)).await;
        let result = match written {
            Ok(()) => self.syncer.sync().await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => {
                if let Some(segment) = self.owned.borrow_mut().get_mut(&group.segment) {
                    segment.filled = padded;
                }
                for (append, location) in group.placed {
                    self.apply(append.lock.key(), location);
                    answer(append, Ok(()));
                }
            }
            Err(error) => self.abandon(group, &error).await,
        }
    }

    /// A group failed: its bytes may be anywhere between old and new. The segment is sealed before
    /// them, so that recovery stops there and later groups go elsewhere.
    async fn abandon(&self, group: Group, error: &MediaError) {
        if self.seal(group.segment, group.start).await.is_err() {
            self.broken.set(true);
        }
        for (append, _) in group.placed {
            answer(append, Err(error.status(Access::Write).into()));
        }
    }

    /// A segment with room for `length` bytes: its number, sequence, and where to go on.
    async fn segment_for(
        &self,
        length: u64,
        may_use_reserve: bool,
    ) -> Result<(u32, u64, u64), Status> {
        // A seal that failed may be on the medium: nothing is appended behind it.
        if let Some((number, filled)) = self.closing.get() {
            let sealed = self.seal(number, filled).await;
            sealed.map_err(|error| error.status(Access::Write))?;
        }
        let open = self.open.get().map(|number| {
            let owned = self.owned.borrow();
            let segment = owned.get(&number).expect("the open segment is owned");
            (number, segment.sequence, segment.filled)
        });
        if let Some((number, sequence, filled)) = open
            && filled + length <= self.segments.segment_bytes
        {
            return Ok((number, sequence, filled));
        }
        // The open segment is given up only for another: on a full drive its room is what small
        // values and deletes still have.
        let number = self.segments.take(may_use_reserve).ok_or(Status::CAPACITY_EXCEEDED)?;
        if let Some((open, _, filled)) = open
            && let Err(error) = self.seal(open, filled).await
        {
            // Only the newest segment may be without a seal: a durable seal comes before the next
            // segment's header.
            self.segments.give(number);
            return Err(error.status(Access::Write));
        }
        let sequence = self.segments.next_sequence();
        let header = SegmentHeader::encode(&self.segments.uuid, sequence, self.number);
        let (result, _) = self.write_page(self.segments.at(number, 0), header.as_bytes()).await;
        if let Err(error) = result {
            self.segments.give(number);
            return Err(error.status(Access::Write));
        }
        let segment = Segment { sequence, filled: RECORDS_OFFSET, ..Segment::default() };
        self.owned.borrow_mut().insert(number, segment);
        self.open.set(Some(number));
        Ok((number, sequence, RECORDS_OFFSET))
    }

    /// Closes a segment durably: `valid_bytes` of it count.
    pub(super) async fn seal(&self, number: u32, valid_bytes: u64) -> Result<(), MediaError> {
        self.open.set(None);
        self.closing.set(Some((number, valid_bytes)));
        let sequence = {
            let mut owned = self.owned.borrow_mut();
            let segment = owned.get_mut(&number).expect("sealed segments are owned");
            segment.sealed = true;
            segment.filled = valid_bytes;
            segment.sequence
        };
        let seal = SegmentSeal::encode(sequence, valid_bytes);
        self.write_page(self.segments.at(number, PAGE_BYTES), seal.as_bytes()).await.0?;
        self.syncer.sync().await?;
        self.closing.set(None);
        Ok(())
    }

    /// Writes a page that starts with `head`; the rest is zero.
    pub(super) async fn write_page(
        &self,
        at: u64,
        head: &[u8],
    ) -> (Result<(), MediaError>, Vec<Buffer>) {
        let mut page = Buffer::zeroed(usize::try_from(PAGE_BYTES).expect("a page"));
        page[..head.len()].copy_from_slice(head);
        self.media.write(at, vec![page]).await
    }
}

fn value_bytes(append: &Append) -> u64 {
    append.value.iter().flatten().map(|piece| piece.len() as u64).sum()
}

fn answer(append: Append, result: Result<(), Refused>) {
    append.outcome.result.set(Some(result));
    append.outcome.done.notify_all();
}

fn push_record(
    buffers: &mut Vec<Buffer>,
    header: &RecordHeader,
    value: Vec<Buffer>,
    footprint: u64,
) {
    let total = usize::try_from(footprint).expect("a record fits its segment");
    let length: usize = value.iter().map(|piece| piece.len()).sum();
    if footprint <= COPIED_BYTES_MAX {
        let mut record = Buffer::zeroed(total);
        let (head, mut rest) = record.split_at_mut(RecordHeader::SIZE);
        head.copy_from_slice(header.as_bytes());
        for piece in &value {
            let (to, after) = rest.split_at_mut(piece.len());
            to.copy_from_slice(piece);
            rest = after;
        }
        buffers.push(record);
        return;
    }
    buffers.push(Buffer::from_slice(header.as_bytes()));
    buffers.extend(value);
    let padding = total - RecordHeader::SIZE - length;
    debug_assert!((padding as u64) < RECORD_ALIGNMENT);
    if padding > 0 {
        buffers.push(Buffer::zeroed(padding));
    }
}
