//! [`Walk`]: reads the records of one segment, in the order of their offsets.
//!
//! Recovery, cleaning and the offline check read segments through it. It does not write. Invariant:
//! no length is used before the checksum of its header held.

use csd_reactor::Buffer;

use super::record::{
    PAGE_BYTES, RECORD_ALIGNMENT, RECORDS_OFFSET, Record, RecordHeader, value_offset,
};
use super::segments::Segments;
use crate::error::MediaError;
use crate::media::Media;

/// One step of a walk.
#[derive(Debug)]
pub enum Step {
    /// A record, and its offset.
    Record(u64, Record),
    /// Nothing more was written to the segment.
    End,
    /// This offset has neither a record nor the end.
    Damage(u64),
}

/// A walk over one segment.
pub struct Walk {
    media: Media,
    // Offset of the segment on the medium.
    start: u64,
    segment_bytes: u64,
    sequence: u64,
    end: u64,
    is_sealed: bool,
    at: u64,
    window: Buffer,
    window_at: u64,
    window_bytes: u64,
}

impl Walk {
    /// Makes a walk from the first record of a segment to its seal, or to the end of its log when
    /// it has none, which reads `window_bytes` at once.
    pub fn new(
        media: &Media,
        segments: &Segments,
        (number, sequence): (u32, u64),
        valid_bytes: Option<u64>,
        window_bytes: u64,
    ) -> Self {
        Self {
            media: media.clone(),
            start: segments.at(number, 0),
            segment_bytes: segments.segment_bytes,
            sequence,
            end: valid_bytes.unwrap_or(segments.segment_bytes),
            is_sealed: valid_bytes.is_some(),
            at: RECORDS_OFFSET,
            window: Buffer::default(),
            window_at: 0,
            window_bytes,
        }
    }

    /// Returns the offset behind the last whole record, or after damage the offset at which the
    /// walk continues.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next record, damage, or the end. Without a seal the last group may be torn: its
    /// rest is the end, not damage.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn next(&mut self) -> Result<Step, MediaError> {
        let step = self.step().await?;
        if self.is_sealed {
            return Ok(step);
        }
        let hole = match &step {
            Step::Record(offset, record) if self.value(*offset, record).await?.is_none() => *offset,
            Step::Damage(offset) => *offset,
            _ => return Ok(step),
        };
        if self.is_torn_end(hole).await? {
            self.at = hole;
            return Ok(Step::End);
        }
        Ok(step)
    }

    /// Takes one step. A group starts on a page of its own: zeros fill the page behind the last
    /// record of the group before.
    async fn step(&mut self) -> Result<Step, MediaError> {
        if let Some(record) = self.record_at(self.at).await? {
            return Ok(self.took(self.at, record));
        }
        let page = self.at.next_multiple_of(PAGE_BYTES);
        let mut at = self.at;
        while at < page.min(self.end) {
            if self.header(at).await?.iter().any(|byte| *byte != 0) {
                return Ok(Step::Damage(at));
            }
            at += RECORD_ALIGNMENT;
        }
        if page >= self.end {
            return Ok(Step::End);
        }
        match self.record_at(page).await? {
            Some(record) => Ok(self.took(page, record)),
            None => Ok(Step::Damage(page)),
        }
    }

    /// Returns true when no group begins behind `hole`. A group begins only when the one before it
    /// is durable, so if a later one has begun, the hole is damage and not the torn end of the log.
    /// Records without the page of their group prove nothing.
    async fn is_torn_end(&mut self, hole: u64) -> Result<bool, MediaError> {
        let mut page = (hole + 1).next_multiple_of(PAGE_BYTES);
        while page < self.end {
            let record = self.record_at(page).await?;
            if record.is_some_and(|record| u64::from(record.group_page) * PAGE_BYTES == page) {
                return Ok(false);
            }
            page += PAGE_BYTES;
        }
        Ok(true)
    }

    /// Skips damage: goes to the next page that begins with a record, if there is one.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn pass_over(&mut self) -> Result<(), MediaError> {
        loop {
            self.at = (self.at + 1).next_multiple_of(PAGE_BYTES);
            if self.at >= self.end || self.record_at(self.at).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads the value of a record; `None` when its checksum does not hold.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn value(&self, offset: u64, record: &Record) -> Result<Option<Buffer>, MediaError> {
        let length = record.value_bytes.unwrap_or(0) as usize;
        let at = value_offset(offset);
        let inside =
            at >= self.window_at && at + length as u64 <= self.window_at + self.window.len() as u64;
        let value = if inside {
            let start = usize::try_from(at - self.window_at).expect("inside the window");
            Buffer::from_slice(&self.window[start..start + length])
        } else {
            let buffer = Buffer::with_room(0, length, 0);
            let (result, buffer) = self.media.read(self.start + at, buffer).await;
            result?;
            buffer
        };
        Ok((crc32c::crc32c(&value) == record.value_checksum).then_some(value))
    }

    fn took(&mut self, at: u64, record: Record) -> Step {
        self.at = at + record.footprint();
        Step::Record(at, record)
    }

    async fn record_at(&mut self, at: u64) -> Result<Option<Record>, MediaError> {
        if value_offset(at) > self.end {
            return Ok(None);
        }
        let (sequence, room) = (self.sequence, self.end - at);
        Ok(Record::decode(self.header(at).await?, sequence, room))
    }

    async fn header(&mut self, at: u64) -> Result<&[u8], MediaError> {
        let inside = at >= self.window_at
            && at + RECORD_ALIGNMENT <= self.window_at + self.window.len() as u64;
        if !inside {
            let length = self.window_bytes.min(self.segment_bytes - at);
            let length = usize::try_from(length).expect("a window");
            let buffer = Buffer::with_room(0, length, 0);
            let (result, buffer) = self.media.read(self.start + at, buffer).await;
            result?;
            self.window = buffer;
            self.window_at = at;
        }
        let start = usize::try_from(at - self.window_at).expect("inside the window");
        Ok(&self.window[start..start + RecordHeader::SIZE])
    }
}
