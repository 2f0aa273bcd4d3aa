//! Segment headers and seals: how a shard's segments begin and end.
//!
//! Invariants: only a shard's newest segment is without a seal, because a durable seal comes before
//! the next segment's header; nothing is appended behind a seal that is, or may be, on the medium.

use std::rc::Rc;
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, sleep};

use super::record::{EntryKey, PAGE_BYTES, RECORDS_OFFSET, SegmentHeader, SegmentSeal};
use super::segments::Need;
use super::shard::{Location, Segment, Shard};
use crate::error::{Access, MediaError};

/// Pause between two looks at whether the last group is durable when the drive stops.
const STOP_PAUSE: Duration = Duration::from_millis(1);

impl Shard {
    /// Returns a segment with space for `length` bytes: its number, its sequence, and the offset to
    /// append at.
    pub(super) async fn segment_for(
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
            && filled + length <= self.segments.segment_bytes
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

    /// Begins a segment, and returns its sequence.
    async fn begin(&self, number: u32) -> Result<u64, MediaError> {
        let sequence = self.segments.next_sequence();
        let header = SegmentHeader::encode(&self.segments.uuid, sequence, self.number);
        let segment = Segment { sequence, filled: RECORDS_OFFSET, ..Segment::default() };
        self.owned.borrow_mut().insert(number, segment);
        let written = self.write_page(self.segments.at(number, 0), header.as_bytes()).await;
        if let Err(error) = written {
            // The header may be on the medium. A seal makes an empty segment of it before another
            // one begins.
            self.open.set(None);
            self.closing.set(Some((number, RECORDS_OFFSET)));
            return Err(error);
        }
        self.open.set(Some(number));
        Ok(sequence)
    }

    /// Seals a segment durably: `valid_bytes` of it count.
    pub(super) async fn seal(&self, number: u32, valid_bytes: u64) -> Result<(), MediaError> {
        self.open.set(None);
        // Until then the seal may or may not be on the medium.
        self.closing.set(Some((number, valid_bytes)));
        let sequence = {
            let mut owned = self.owned.borrow_mut();
            let segment = owned.get_mut(&number).expect("sealed segments are owned");
            segment.sealed = true;
            segment.filled = valid_bytes;
            segment.sequence
        };
        self.write_seal(number, SegmentSeal::encode(sequence, valid_bytes, None)).await?;
        self.closing.set(None);
        self.has_stop_seal.set(false);
        self.uncertain.borrow_mut().clear();
        Ok(())
    }

    /// Seals the open segment because the drive stops. It is the last write of the shard.
    ///
    /// # Errors
    /// When the medium fails; the next start then recovers as after a power cut.
    pub(super) async fn stop(&self) -> Result<(), MediaError> {
        while self.committing.get() {
            sleep(STOP_PAUSE).await;
        }
        if let Some((number, filled)) = self.closing.get() {
            self.seal(number, filled).await?;
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
        self.write_seal(number, SegmentSeal::encode(sequence, filled, Some(owned))).await
    }

    /// Durably removes the seal that the open segment got when the drive stopped. That seal has the
    /// number of the shard's segments, and the end of the last one.
    pub(super) async fn remove_stop_seal(&self) -> Result<(), MediaError> {
        if let Some(number) = self.open.get().filter(|_| self.has_stop_seal.get()) {
            self.write_page(self.segments.at(number, PAGE_BYTES), &[]).await?;
            self.syncer.sync().await?;
            self.has_stop_seal.set(false);
        }
        Ok(())
    }

    async fn write_seal(&self, number: u32, seal: SegmentSeal) -> Result<(), MediaError> {
        self.write_page(self.segments.at(number, PAGE_BYTES), seal.as_bytes()).await?;
        self.syncer.sync().await
    }

    /// Writes a page that starts with `head`; the rest is zero.
    pub(super) async fn write_page(&self, at: u64, head: &[u8]) -> Result<(), MediaError> {
        let mut page = Buffer::zeroed(usize::try_from(PAGE_BYTES).expect("a page"));
        page[..head.len()].copy_from_slice(head);
        self.media.write(at, vec![page]).await.0
    }

    /// Returns the newest value's location; `None` when the key does not exist.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the last change of the key failed, and it is unknown
    /// which value a restart would find: the group may be on the medium, and the seal before it
    /// could not be written. A host must not read the old value now and the new one later.
    pub(super) async fn find_certain(
        self: &Rc<Self>,
        key: &EntryKey,
    ) -> Result<Option<Location>, Status> {
        let is_uncertain = || self.uncertain.borrow().contains(key);
        if !is_uncertain() {
            return Ok(self.find(key));
        }
        // The medium may take the seal by now.
        if let Some((number, filled)) = self.closing.get()
            && !self.committing.replace(true)
        {
            let _ = self.seal(number, filled).await;
            self.committing.set(false);
            self.start_committing();
        }
        if is_uncertain() { Err(Status::UNRECOVERED_ERROR) } else { Ok(self.find(key)) }
    }
}
