//! Segment headers and seals: how a shard's segments begin and end.
//!
//! From version 2 on a final checkpoint stands behind the records of a sealed segment, and an open
//! one has a hint.
//!
//! Invariants: only a shard's newest segment is without a seal, because a durable seal comes before
//! the next segment's header; nothing is appended behind a seal that is, or may be, on the medium;
//! a checkpoint is durable before a seal or a hint names it.

use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, now, sleep};

use crate::checkpoint::Checkpoint;
use crate::error::{Access, MediaError};
use crate::hint::HINT_OFFSET;
use crate::record::{PAGE_BYTES, RECORDS_OFFSET, SECTOR_BYTES, SegmentRange};
use crate::segment_head::{Seal, SegmentHeader};
use crate::segment_tail::SegmentTail;
use crate::segments::Need;
use crate::shard::{Segment, Shard};

/// Pause between two looks at whether the last group is durable when the drive stops.
const STOP_PAUSE: Duration = Duration::from_millis(1);

impl Shard {
    /// Returns a segment with space for `length` bytes: its number, its sequence, and the offset to
    /// append at.
    pub(crate) async fn segment_for(
        &self,
        length: u64,
        need: Need,
    ) -> Result<(u32, u64, u64), Status> {
        let write = |error: MediaError| error.status(Access::Write);
        if let Some((number, filled)) = self.closing.get() {
            self.seal(number, filled).await.map_err(write)?;
        }
        let open = self.open.get().map(|number| {
            let owned = self.owned.borrow();
            let segment = owned.get(&number).expect("the open segment is owned");
            (number, segment.sequence, segment.filled)
        });
        if let Some((number, sequence, filled)) = open
            && self.end_with(length, filled) <= self.segments.segment_bytes
        {
            self.remove_stop_seal().await.map_err(write)?;
            return Ok((number, sequence, filled));
        }
        // The open segment is closed only for another one: on a full drive small values and deletes
        // still fit into it.
        let number = self.segments.take(need).ok_or(Status::CAPACITY_EXCEEDED)?;
        if let Some((open, _, filled)) = open
            && let Err(error) = self.seal(open, filled).await
        {
            self.segments.give(number);
            return Err(write(error));
        }
        let sequence = self.begin(number).await.map_err(write)?;
        Ok((number, sequence, RECORDS_OFFSET))
    }

    /// Returns the end of the open segment with one more record, and what must fit behind it.
    fn end_with(&self, length: u64, filled: u64) -> u64 {
        match self.segments.has_checkpoints() {
            true => self.tail.borrow().end_with(length, filled, self.segments.segment_bytes),
            false => filled + length,
        }
    }

    /// Begins a segment, and returns its sequence.
    async fn begin(&self, number: u32) -> Result<u64, MediaError> {
        let sequence = self.segments.next_sequence();
        let segment = Segment { sequence, filled: RECORDS_OFFSET, ..Segment::default() };
        self.owned.borrow_mut().insert(number, segment);
        *self.tail.borrow_mut() = SegmentTail::empty();
        // Header and hint in one write.
        let mut pages = self.header_page(sequence);
        if self.has_hints() {
            pages.extend(self.seal_page(sequence, None, RECORDS_OFFSET));
        }
        if let Err(error) = self.write_pages(self.segments.at(number, 0), &pages).await {
            // The header may be on the medium. Both are written before another segment begins: a
            // header, and a seal that makes an empty segment of it.
            self.open.set(None);
            self.closing.set(Some((number, RECORDS_OFFSET)));
            return Err(error);
        }
        self.open.set(Some(number));
        Ok(sequence)
    }

    /// Seals a segment durably: `valid_bytes` of it count.
    pub(crate) async fn seal(&self, number: u32, valid_bytes: u64) -> Result<(), MediaError> {
        self.open.set(None);
        // Until then the seal may or may not be on the medium.
        self.closing.set(Some((number, valid_bytes)));
        // A sealed segment is not cut by a mark.
        self.close_written().await?;
        self.seal_closed(number, valid_bytes).await
    }

    /// Seals a segment whose records are durable, and behind whose end nothing counts.
    pub(crate) async fn seal_closed(
        &self,
        number: u32,
        valid_bytes: u64,
    ) -> Result<(), MediaError> {
        self.open.set(None);
        self.closing.set(Some((number, valid_bytes)));
        let sequence = {
            let mut owned = self.owned.borrow_mut();
            let segment = owned.get_mut(&number).expect("sealed segments are owned");
            segment.sealed = true;
            segment.filled = valid_bytes;
            segment.sequence
        };
        // Without one the next start walks the records.
        let checkpoint = match self.segments.checkpointing.may_begin() {
            true => self.final_checkpoint(number, sequence, valid_bytes).await,
            false => None,
        };
        let drive = self.segments.tag();
        let seal = Seal { valid_bytes, checkpoint, drive, ..Seal::default() };
        self.write_seal(number, sequence, &seal).await?;
        self.closing.set(None);
        self.has_stop_seal.set(false);
        self.tail.borrow_mut().hint_due = false;
        self.uncertain.borrow_mut().clear();
        Ok(())
    }

    /// Seals the open segment because the drive stops. It is the last write of the shard.
    ///
    /// # Errors
    /// When the medium fails; the next start then recovers as after a power cut.
    pub(crate) async fn stop(&self) -> Result<(), MediaError> {
        while self.committing.get() {
            sleep(STOP_PAUSE).await;
        }
        self.close_written().await?;
        if let Some((number, filled)) = self.closing.get() {
            self.seal(number, filled).await?;
        }
        // The seal has the number of segments that are on the medium.
        let freeing = |(number, segment): (&u32, &Segment)| segment.freeing.then_some(*number);
        let freeing: Vec<u32> = self.owned.borrow().iter().filter_map(freeing).collect();
        for number in freeing {
            self.free(number).await?;
        }
        let Some(number) = self.open.get().filter(|_| !self.has_stop_seal.get()) else {
            return Ok(());
        };
        let (sequence, filled, owned) = {
            let owned = self.owned.borrow();
            let segment = &owned[&number];
            (segment.sequence, segment.filled, owned.len())
        };
        let owned = u32::try_from(owned).expect("segments are counted with 32 bits");
        self.has_stop_seal.set(true);
        let checkpoint = self.final_checkpoint(number, sequence, filled).await;
        let tail_checksum = crc32c::crc32c(self.tail.borrow().page.as_deref().unwrap_or(&[]));
        let (valid_bytes, stopped) = (filled, Some(owned));
        let drive = self.segments.tag();
        let seal = Seal { valid_bytes, stopped, checkpoint, tail_checksum, drive };
        self.write_seal(number, sequence, &seal).await
    }

    /// Durably removes the seal that the open segment got when the drive stopped. That seal has the
    /// number of the shard's segments, and the end of the last one.
    pub(crate) async fn remove_stop_seal(&self) -> Result<(), MediaError> {
        if let Some(number) = self.open.get().filter(|_| self.has_stop_seal.get()) {
            let filled = self.owned.borrow()[&number].filled;
            match self.has_hints() {
                true => self.write_hint(number, filled).await?,
                false => self.write_pages(self.segments.at(number, PAGE_BYTES), &[]).await?,
            }
            self.syncer.sync().await?;
            self.has_stop_seal.set(false);
        }
        Ok(())
    }

    /// Writes a seal durably.
    pub(crate) async fn write_seal(
        &self,
        number: u32,
        sequence: u64,
        seal: &Seal,
    ) -> Result<(), MediaError> {
        let page = self.seal_page(sequence, Some(seal), seal.valid_bytes);
        let written = if seal.valid_bytes == RECORDS_OFFSET {
            // The write of the header may have failed.
            let pages = [self.header_page(sequence), page].concat();
            self.write_pages(self.segments.at(number, 0), &pages).await
        } else {
            self.write_pages(self.segments.at(number, PAGE_BYTES), &page).await
        };
        written?;
        self.syncer.sync().await
    }

    /// Returns the page of the header of one of the shard's segments.
    fn header_page(&self, sequence: u64) -> Vec<u8> {
        let header = SegmentHeader::encode(&self.segments.uuid, sequence, self.number);
        let mut page = header.as_bytes().to_vec();
        page.resize(usize::try_from(PAGE_BYTES).expect("a page"), 0);
        page
    }

    /// Returns the page of a seal, or of none, with the hint in its second sector.
    fn seal_page(&self, sequence: u64, seal: Option<&Seal>, durable_bytes: u64) -> Vec<u8> {
        let mut page = Vec::new();
        if let Some(seal) = seal {
            page.extend_from_slice(seal.encode(sequence).as_bytes());
        }
        if self.segments.has_checkpoints() {
            page.resize(usize::try_from(HINT_OFFSET - PAGE_BYTES).expect("a sector"), 0);
            let hint = self.tail.borrow().hint(durable_bytes, self.segments.tag());
            page.extend_from_slice(hint.encode(sequence).as_bytes());
        }
        page
    }

    /// Returns true if open segments have hints. Nothing outlives memory, so it needs none; with a
    /// volatile cache the mark says what a hint would.
    fn has_hints(&self) -> bool {
        let is_marked = self.segments.epochs.is_some();
        self.segments.has_checkpoints() && !self.media.is_volatile() && !is_marked
    }

    /// Writes the hint of the open segment, without a sync.
    pub(crate) async fn write_hint(&self, number: u32, durable: u64) -> Result<(), MediaError> {
        self.tail.borrow_mut().hint_due = false;
        if !self.has_hints() {
            return Ok(());
        }
        let sequence = self.owned.borrow()[&number].sequence;
        let head = self.seal_page(sequence, None, durable);
        self.write_pages(self.segments.at(number, PAGE_BYTES), &head).await
    }

    /// Writes the hint if it is due and the segment still open. A failure costs recovery time only.
    pub(crate) async fn write_due_hint(&self) {
        self.tail.borrow_mut().hint_due = false;
        let open = self.open.get().filter(|_| self.closing.get().is_none());
        if let Some(number) = open.filter(|_| !self.has_stop_seal.get()) {
            let filled = self.owned.borrow()[&number].filled;
            let _ = self.write_hint(number, filled).await;
        }
    }

    /// Writes the final checkpoint of a segment; `None` if that fails, which pauses checkpoints.
    async fn final_checkpoint(
        &self,
        number: u32,
        sequence: u64,
        valid_bytes: u64,
    ) -> Option<SegmentRange> {
        match self.write_final_checkpoint(number, sequence, valid_bytes).await {
            Ok(range) => range,
            // The health log says so.
            Err(MediaError::ReadOnly | MediaError::Gone(_)) => None,
            Err(error) => {
                let why = format!("the checkpoint of segment {number} cannot be written: {error}");
                self.segments.checkpointing.fail(why);
                None
            }
        }
    }

    /// Makes a checkpoint of the records that no other lists durable behind the records, before a
    /// seal names it. Returns its range; `None` when there is nothing to list, or no space for it.
    async fn write_final_checkpoint(
        &self,
        number: u32,
        sequence: u64,
        valid_bytes: u64,
    ) -> Result<Option<SegmentRange>, MediaError> {
        let (range, at, bytes) = {
            let tail = self.tail.borrow();
            let range = tail.final_range(valid_bytes);
            let has_none = tail.listing.bytes.is_empty() && tail.checkpoint.is_none();
            let end = range.end().next_multiple_of(PAGE_BYTES);
            if !self.segments.has_checkpoints() || has_none || end > self.segments.segment_bytes {
                return Ok(None);
            }
            let list = &tail.listing.bytes;
            let checkpoint = Checkpoint::new(list, range.offset, tail.checkpoint, true);
            let mut bytes = tail.page.clone().unwrap_or_default();
            let at = range.offset - bytes.len() as u64;
            bytes.extend_from_slice(checkpoint.encode(sequence).as_bytes());
            bytes.extend_from_slice(list);
            bytes.resize(usize::try_from(end - at).expect("within a segment"), 0);
            (range, at, bytes)
        };
        let began = now();
        let buffers = vec![Buffer::from_slice(&bytes)];
        self.media.write(self.segments.at(number, at), buffers).await.0?;
        self.syncer.sync().await?;
        self.segments.count_written(0, range.end().next_multiple_of(SECTOR_BYTES) - range.offset);
        self.segments.count_checkpoint(range.bytes, began);
        Ok(Some(range))
    }

    /// Writes the pages that start with `head`, one at least; the rest is zero.
    pub(crate) async fn write_pages(&self, at: u64, head: &[u8]) -> Result<(), MediaError> {
        let page = usize::try_from(PAGE_BYTES).expect("a page");
        let mut page = Buffer::zeroed(head.len().max(1).next_multiple_of(page));
        page[..head.len()].copy_from_slice(head);
        self.media.write(at, vec![page]).await.0
    }
}
