//! [`NewValues`]: reads each value of a core's shards once, those that are stored later too.
//!
//! A Store's buffers are kept after its group commit, up to a bound, so that its value need not be
//! read. Values beyond the bound are noted by their places in the log and read from the medium, as
//! are those that were there before. Invariants: a value is returned at most once, whether
//! cleaning moves it or not; one that was superseded, or is damaged, when its turn to be read comes
//! is left out; nothing that a command needs waits for the reader.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_reactor::{Buffer, timeout};

use crate::error::MediaError;
use crate::news::{News, Place};
use crate::pinned::Pinned;
use crate::record::{Content, EntryKey, RECORDS_OFFSET, SegmentRange};
use crate::segments::Segments;
use crate::shard::{Location, Shard};
use crate::shards::Shards;
use crate::walk::{Step, Until, Walk};

pub use crate::news::Batch;

/// Bytes read at once where records are short.
const WINDOW_BYTES: u64 = 256 << 10;

/// Records that are being read.
struct Reading {
    shard: Rc<Shard>,
    place: Place,
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
        let mut there = Vec::new();
        for shard in shards.own() {
            for (number, found) in &*shard.owned.borrow() {
                let bytes = found.filled.saturating_sub(RECORDS_OFFSET);
                let (shard, segment, sequence) = (shard.number, *number, found.sequence);
                let range = SegmentRange { offset: RECORDS_OFFSET, bytes };
                there.push((Place { shard, segment, sequence }, range));
            }
        }
        let news = Rc::new(News::new(there.into_iter(), bytes_max));
        shards.own().for_each(|shard| drop(shard.news.replace(Some(Rc::clone(&news)))));
        let (segments, shards) = (Arc::clone(segments), Rc::clone(shards));
        Self { segments, shards, news, reading: None }
    }

    /// Returns the next values; `None` if there are none now, or the log closes.
    ///
    /// # Errors
    /// When the medium cannot be read there. The next call goes on behind it.
    pub async fn next(&mut self) -> Result<Option<Batch>, MediaError> {
        if let Some(batch) = self.news.at_hand() {
            return Ok(Some(batch));
        }
        while !self.segments.is_closing() {
            let Some(mut reading) = self.reading.take().or_else(|| self.begin()) else { break };
            let next = reading.next(&self.news).await;
            if !matches!(next, Ok(Some(_))) {
                self.news.read_to(reading.place, reading.end);
            }
            if let Some((key, value)) = next? {
                self.reading = Some(reading);
                let whole = (key, 0..value.len());
                return Ok(Some(Batch::new(vec![value], vec![whole])));
            }
        }
        Ok(None)
    }

    /// Waits until there may be more, and then for a whole batch, or for as long as `within`.
    pub async fn arrived(&self, within: Duration) {
        self.news.arrived().await;
        let _few = timeout(within, self.news.batch_arrived()).await;
    }

    fn begin(&self) -> Option<Reading> {
        let (place, range) = self.news.first_unread()?;
        let shard = Rc::clone(self.shards.shard(place.shard as usize));
        let (at, end) = ((place.segment, place.sequence), range.end());
        let until = Until::Sealed(end);
        let walk = Walk::new(&shard.media, &self.segments, at, until, WINDOW_BYTES);
        let walk = walk.starting_at(range.offset);
        Some(Reading { shard, place, end, walk })
    }
}

impl Drop for NewValues {
    fn drop(&mut self) {
        self.shards.own().for_each(|shard| drop(shard.news.take()));
    }
}

impl Reading {
    /// Returns the next current value; `None` at the end, at damage, or if the segment was freed.
    async fn next(&mut self, news: &News) -> Result<Option<(EntryKey, Buffer)>, MediaError> {
        let Some(_pinned) = Pinned::of(&self.shard, self.place.segment, self.place.sequence) else {
            return Ok(None);
        };
        loop {
            let (offset, record) = match self.walk.next().await? {
                Step::Record(offset, record) => (offset, record),
                Step::Checkpoint(..) => continue,
                Step::End | Step::Damage(_) | Step::Unknown(..) => return Ok(None),
            };
            let at = Location { segment: self.place.segment, offset, content: record.content };
            let has_bytes = matches!(record.content, Content::Value(1..));
            if !has_bytes || !self.shard.is_current(&record.key, &at) {
                continue;
            }
            // Before it is read, so that cleaning which moves it meanwhile does not offer it again.
            news.read_to(self.place, self.walk.position());
            if let Some(value) = self.walk.value(offset, &record).await? {
                return Ok(Some((record.key, value)));
            }
        }
    }
}
