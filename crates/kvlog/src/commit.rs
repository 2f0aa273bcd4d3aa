//! Group commit: appends that arrive together are written by one write and one sync, or with a
//! volatile cache by one write.
//!
//! A sync costs much more than the bytes of a record, so a shard that is syncing collects the
//! appends that arrive meanwhile, and the next sync serves all of them (DeWitt et al.,
//! "Implementation techniques for main memory database systems", 1984).
//!
//! The index changes only after that. Invariant: groups of a shard are strictly sequential, so
//! nothing behind a torn group was acknowledged; with a volatile cache nothing behind the mark
//! counts.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Class, join, now, spawn};

use crate::epochs::Turn;
use crate::error::{Access, MediaError};
use crate::group::{Group, last_page};
use crate::news::{NewValue, Place};
use crate::record::{Content, PAGE_BYTES, SegmentRange};
use crate::segments::{Need, is_cached};
use crate::shard::{Append, Change, Location, Refused, Shard};

impl Append {
    fn need(&self) -> Need {
        match (&self.change, &self.value) {
            (Change::Move { for_cleaning: true, .. }, _) => Need::Clean,
            (Change::New { .. }, None) => Need::Delete,
            (Change::Move { .. } | Change::New { .. }, _) => Need::Store,
        }
    }
}

impl Shard {
    /// Starts the task that commits queued appends, unless it runs.
    pub(crate) fn start_committing(self: &Rc<Self>) {
        if self.committing.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        drop(spawn(Class::Foreground, async move { shard.work_off().await }));
    }

    async fn work_off(&self) {
        loop {
            while !self.queue.borrow().is_empty() {
                match self.next_group().await {
                    Ok(group) if group.placed.is_empty() => succeed(group.superseded),
                    Ok(group) => self.commit(group).await,
                    Err(status) => self.fail_next(status),
                }
            }
            if !self.tail.borrow().hint_due {
                break;
            }
            self.write_due_hint().await;
        }
        self.committing.set(false);
    }

    /// Fails the first append of the queue; the others are tried separately.
    fn fail_next(&self, status: Status) {
        if let Some(mut append) = self.queue.borrow_mut().pop_front() {
            let value = append.value.take();
            append.answer(Err(Refused { status, value }));
        }
    }

    /// Takes appends that fit the open segment, and opens a new one if necessary.
    async fn next_group(&self) -> Result<Group, Status> {
        let (length, need) = {
            let queue = self.queue.borrow();
            let append = queue.front().expect("asked with a queue");
            (append.footprint(), append.need())
        };
        self.tail.borrow_mut().is_held = !self.segments.checkpointing.may_begin();
        let segment = self.segment_for(length, need).await?;
        let mut group = Group::new(&self.segments, segment, &self.tail.borrow());
        let mut queue = self.queue.borrow_mut();
        while let Some(append) = queue.front() {
            if group.is_full() || !group.fits(append) {
                break;
            }
            let append = queue.pop_front().expect("just seen");
            match &append.change {
                // The record was superseded meanwhile, and must not be written.
                Change::Move { key, from, .. } if !self.is_current(key, from) => {
                    append.answer(Ok(()))
                }
                // It would lie behind the record that supersedes it.
                Change::Move { key, .. } if group.changes(key) => group.superseded.push(append),
                _ => group.place(append, || self.segments.next_commit()),
            }
        }
        Ok(group)
    }

    async fn commit(&self, mut group: Group) {
        let (long, checkpoint) = (group.long(), group.checkpoint.map(|range| (range, now())));
        let (at, buffers) = group.take_buffers();
        let filled = group.filled();
        let page = last_page(&buffers, filled % PAGE_BYTES);
        let epoch = match self.enter_epoch(&mut group) {
            Ok(epoch) => epoch,
            Err(error) => return fail(group, &error),
        };
        let under_way = epoch.is_none().then(|| self.syncer.begin_write());
        let write = self.media.write(self.segments.at(group.segment, at), buffers);
        // One sync makes both durable.
        let (announced, (written, buffers)) = join(self.announce(&group, long), write).await;
        let is_refused = written == Err(MediaError::ReadOnly);
        let result = match (written.and(announced), under_way) {
            (Ok(()), Some(write)) => write.sync().await,
            (result, _) => result,
        };
        if let Err(error) = result {
            self.ends.end(None);
            return match error {
                // Refused before anything changed.
                MediaError::ReadOnly if is_refused => fail(group, &error),
                error => self.abandon(group, &error).await,
            };
        }
        self.segments.count_written(group.stored, filled - group.start);
        if group.placed.len() > 1 {
            self.segments.count_shared_group();
        }
        if let Some((range, began)) = checkpoint {
            self.segments.count_checkpoint(range.bytes, began);
        }
        if let Some(segment) = self.owned.borrow_mut().get_mut(&group.segment) {
            segment.filled = filled;
            let longest = group.placed.iter().map(|(_, location)| location.footprint()).max();
            segment.longest = segment.longest.max(longest.unwrap_or(0));
        }
        let listing = std::mem::take(&mut group.listing);
        let checkpoint = checkpoint.map(|(range, _)| range);
        self.tail.borrow_mut().took(listing, page, checkpoint, long);
        self.group_written(&group);
        let closed = self.close_if_durable(&group, epoch).await;
        if closed.is_err() {
            // The next change, or reader of an uncertain key, seals the segment behind the group.
            self.open.set(None);
            self.closing.set(Some((group.segment, filled)));
        }
        if let Some(news) = &*self.news.borrow() {
            let Group { segment, sequence, .. } = group;
            let place = Place { shard: self.number, segment, sequence };
            let values: Vec<NewValue> = group.placed.iter().filter_map(new_value).collect();
            news.take(place, at, buffers, &values);
        }
        for (append, location) in group.placed {
            self.make_current(append, location, closed);
        }
        succeed(group.superseded);
    }

    /// Writes the hint of a long group, and when it is due.
    async fn announce(&self, group: &Group, long: Option<SegmentRange>) -> Result<(), MediaError> {
        if long.is_some() {
            self.tail.borrow_mut().long = long;
        }
        if long.is_none() && !self.tail.borrow().hint_due {
            return Ok(());
        }
        self.write_hint(group.segment, group.start).await
    }

    /// Points the index at a record that was written, and answers its append. `closed` is the
    /// result of closing its epoch, if its group needed that.
    fn make_current(&self, mut append: Append, location: Location, closed: Result<(), Status>) {
        let key = append.key();
        let result = if append.is_new() && !is_cached(key.0) { closed } else { Ok(()) };
        match &mut append.change {
            Change::New { room, .. } => {
                // The record counts from here on, and its promised space no longer does.
                drop(room.take());
                match result {
                    Ok(()) => drop(self.uncertain.borrow_mut().remove(&key)),
                    Err(_) => self.doubt(key, &location),
                }
                self.apply(key, location);
                self.watched.borrow_mut().iter_mut().for_each(|watched| watched.note(&key));
            }
            Change::Move { from, .. } if self.is_current(&key, from) => self.apply(key, location),
            Change::Move { .. } => {}
        }
        append.answer(result.map_err(Refused::from));
    }

    /// Abandons a group that failed: its bytes may be old, new or mixed. The segment is sealed
    /// before them, so that recovery stops there and later groups go elsewhere.
    async fn abandon(&self, mut group: Group, error: &MediaError) {
        // Failed changes are not in the order of answers, and the seal waits for those that are.
        group.placed.iter_mut().for_each(|(append, _)| append.turn = Turn::default());
        if self.seal(group.segment, group.start).await.is_err() {
            let changed = group.placed.iter().filter(|(append, _)| append.is_new());
            changed.for_each(|(append, location)| self.doubt(append.key(), location));
        }
        fail(group, error);
    }
}

/// Returns the value of a record that was written; `None` if the record has none.
fn new_value((append, location): &(Append, Location)) -> Option<NewValue> {
    let from = match &append.change {
        Change::New { .. } => None,
        Change::Move { from, .. } => Some((from.segment, from.offset)),
    };
    let Content::Value(bytes) = location.content else { return None };
    Some(NewValue { key: append.key(), offset: location.offset, bytes, from })
}

fn succeed(appends: Vec<Append>) {
    appends.into_iter().for_each(|append| append.answer(Ok(())));
}

fn fail(group: Group, error: &MediaError) {
    let placed = group.placed.into_iter().map(|(append, _)| append);
    for append in placed.chain(group.superseded) {
        append.answer(Err(error.status(Access::Write).into()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use csd_nvme::kv::Key;
    use csd_reactor::{Buffer, block_on};

    use super::*;
    use crate::media::{Media, Memory, Syncer};
    use crate::record::RECORDS_OFFSET;
    use crate::segments::Segments;
    use crate::shard::Outcome;
    use crate::walk::{Step, Until, Walk};

    /// Only cleaning may take the last free segments: a full drive could not be cleaned without.
    #[test]
    fn a_conversion_takes_what_a_store_would() {
        let key = (2, Key::new(b"k").unwrap());
        let need = |content, for_cleaning| {
            let from = Location { segment: 0, offset: 4096, content };
            let change = Change::Move { key, from, commit: 1, for_cleaning };
            let append = Append::new(change, (Some(Vec::new()), 0), &Outcome::of(1));
            Append { is_indirect: true, ..append }.need()
        };
        for content in [Content::Value(9000), Content::Indirect(5000)] {
            assert_eq!(need(content, false), Need::Store);
            assert_eq!(need(content, true), Need::Clean);
        }
    }

    /// Recovery takes the last record of a key for the newest, so a moved one must not stand behind
    /// the host's change, also if both are in one group.
    #[test]
    fn a_record_is_not_moved_behind_its_successor_in_the_same_group() {
        block_on(&csd_reactor::Config::default(), || async {
            let media = Media::Memory(Arc::new(Memory::new(16 << 20)));
            let segments = Arc::new(Segments::new([1; 16], 0, 2 << 20, 8, &[2]));
            (0..8).for_each(|number| segments.give(number));
            let syncer = Rc::new(Syncer::new(media.clone()));
            let shard = Rc::new(Shard::new(0, media.clone(), Arc::clone(&segments), syncer));
            let key = (2, Key::new(b"k").unwrap());
            let value = |text: &[u8]| Some(vec![Buffer::from_slice(text)]);
            shard.append(shard.lock(key).await, value(b"old"), None).await.unwrap();
            let from = shard.find(&key).unwrap();
            let outcome = Outcome::of(2);
            let change = Change::New { lock: shard.lock(key).await, room: None };
            let new = Append::new(change, (value(b"newer"), crc32c::crc32c(b"newer")), &outcome);
            let change = Change::Move { key, from, commit: 1, for_cleaning: true };
            let moved = Append::new(change, (value(b"old"), crc32c::crc32c(b"old")), &outcome);
            shard.enqueue([new, moved]);
            outcome.all_ended().await.unwrap();
            let until = Until::Sealed(shard.owned.borrow()[&from.segment].filled);
            let sequence = shard.owned.borrow()[&from.segment].sequence;
            let mut walk = Walk::new(&media, &segments, (from.segment, sequence), until, 4096);
            let mut lengths = Vec::new();
            while let Step::Record(offset, record) = walk.next().await.unwrap() {
                assert!(offset >= RECORDS_OFFSET);
                lengths.push(record.content.bytes());
            }
            assert_eq!(lengths, [3, 5]);
        })
        .unwrap();
    }
}
