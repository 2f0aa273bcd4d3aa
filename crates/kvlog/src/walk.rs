//! [`Walk`]: reads the records of one segment, in the order of their offsets.
//!
//! Recovery, cleaning and the offline check read segments through it. It does not write. Invariant:
//! no length is used before the checksum of its header held.

use csd_reactor::Buffer;

use crate::checkpoint::{Checkpoint, Decoded};
use crate::error::MediaError;
use crate::hint::{Hint, SHORT_GROUP_BYTES};
use crate::media::Media;
use crate::record::{
    KIND_CHECKPOINT, RECORD_ALIGNMENT, RECORDS_OFFSET, Record, RecordHeader, SECTOR_BYTES,
    SegmentRange, value_offset,
};
use crate::segments::Segments;
use crate::sum::checksum;

/// One step of a walk.
#[derive(Debug)]
pub enum Step {
    /// A record, and its offset.
    Record(u64, Record),
    /// A checkpoint, its offset, and its list if that is whole.
    Checkpoint(u64, Checkpoint, Option<Buffer>),
    /// Nothing more was written to the segment.
    End,
    /// This offset has neither a record nor the end.
    Damage(u64),
    /// This offset has a record of this kind, which a later version has written.
    Unknown(u64, u8),
}

impl Step {
    /// Returns true if this is a record or a checkpoint directly behind a record.
    pub fn follows(&self, offset: u64, record: &Record) -> bool {
        match self {
            Self::Record(at, _) | Self::Checkpoint(at, ..) => *at == offset + record.footprint(),
            _ => false,
        }
    }
}

/// End of a walk.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// The offset that the seal says.
    Sealed(u64),
    /// The end of the log in an open segment, whose hint is this.
    Open(Option<Hint>),
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
    hint: Option<Hint>,
    unit: u64,
    has_checkpoints: bool,
    at: u64,
    // Start of the group of the last record, if that is known.
    group: Option<u64>,
    // True behind a checkpoint: its group has a record there.
    is_behind_checkpoint: bool,
    // Ranges that other checkpoints name as checkpoints.
    known: Vec<SegmentRange>,
    has_searched: bool,
    window: Buffer,
    window_at: u64,
    window_bytes: u64,
}

impl Walk {
    /// Makes a walk from the first record of a segment on, which reads `window_bytes` at once.
    pub fn new(
        media: &Media,
        segments: &Segments,
        (number, sequence): (u32, u64),
        until: Until,
        window_bytes: u64,
    ) -> Self {
        let (end, is_sealed, hint) = match until {
            Until::Sealed(end) => (end, true, None),
            Until::Open(hint) => (segments.segment_bytes, false, hint),
        };
        Self {
            media: media.clone(),
            start: segments.at(number, 0),
            segment_bytes: segments.segment_bytes,
            sequence,
            end,
            is_sealed,
            hint,
            unit: segments.group_unit(),
            has_checkpoints: segments.has_checkpoints(),
            at: RECORDS_OFFSET,
            group: Some(RECORDS_OFFSET),
            is_behind_checkpoint: false,
            known: Vec::new(),
            has_searched: false,
            window: Buffer::default(),
            window_at: 0,
            window_bytes,
        }
    }

    /// Lets the walk begin behind a checkpoint.
    #[must_use]
    pub fn behind(self, checkpoint: SegmentRange) -> Self {
        let group = Some(checkpoint.offset);
        Self { at: checkpoint.end(), group, is_behind_checkpoint: true, ..self }
    }

    /// Lets the walk begin at a record.
    #[must_use]
    pub fn starting_at(self, offset: u64) -> Self {
        Self { at: offset, group: None, ..self }
    }

    /// Lets the walk end at an offset before which everything is durable.
    #[must_use]
    pub fn until(self, offset: u64) -> Self {
        Self { end: offset.min(self.end), is_sealed: true, hint: None, ..self }
    }

    /// Finds the checkpoints that other checkpoints of the segment name, in all of its sectors.
    async fn find_named(&mut self) -> Result<(), MediaError> {
        let mut at = RECORDS_OFFSET;
        while at < self.end {
            if let Some(Decoded::Checkpoint(checkpoint)) = self.decoded_at(at).await? {
                let is_here = u64::from(checkpoint.sector) * SECTOR_BYTES == at;
                self.known.extend(checkpoint.previous.filter(|_| is_here));
            }
            at += SECTOR_BYTES;
        }
        Ok(())
    }

    /// Returns the offset behind the last whole record, or after damage the offset at which the
    /// walk continues.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next record, checkpoint, damage, or the end. Without a seal the last group may
    /// be torn: its rest is the end, not damage.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn next(&mut self) -> Result<Step, MediaError> {
        let step = self.step_or_end().await?;
        let is_damage = matches!(step, Step::Damage(_)) && self.has_checkpoints;
        if is_damage && !std::mem::replace(&mut self.has_searched, true) {
            // It may have been a checkpoint.
            self.find_named().await?;
            return self.step_or_end().await;
        }
        Ok(step)
    }

    async fn step_or_end(&mut self) -> Result<Step, MediaError> {
        let step = self.step().await?;
        if self.is_sealed {
            return Ok(step);
        }
        let durable = self.hint.map_or(0, |hint| hint.durable_bytes);
        let hole = match &step {
            Step::Record(offset, record) if *offset >= durable => {
                if self.value(*offset, record).await?.is_some() {
                    return Ok(step);
                }
                *offset
            }
            Step::Damage(offset) | Step::Checkpoint(offset, _, None) => *offset,
            _ => return Ok(step),
        };
        if hole >= durable && self.is_torn_end(hole).await? {
            self.at = hole;
            return Ok(Step::End);
        }
        Ok(step)
    }

    /// Takes one step. A group starts at a sector (in version 1 at a page) of its own: zeros fill
    /// the one behind the last record of the group before.
    async fn step(&mut self) -> Result<Step, MediaError> {
        if let Some(decoded) = self.decoded_at(self.at).await?.filter(|it| self.fits(it, true)) {
            return self.took(self.at, decoded).await;
        }
        // A power cut may have torn the group behind the checkpoint with which it began.
        if self.is_behind_checkpoint && self.at < self.end {
            return Ok(Step::Damage(self.at));
        }
        let unit = self.at.next_multiple_of(self.unit);
        let mut at = self.at;
        while at < unit.min(self.end) {
            if self.header(at).await?.iter().any(|byte| *byte != 0) {
                return Ok(Step::Damage(at));
            }
            at += RECORD_ALIGNMENT;
        }
        if unit >= self.end {
            return Ok(Step::End);
        }
        let is_next = unit == self.at;
        if let Some(decoded) = self.decoded_at(unit).await?.filter(|it| self.fits(it, is_next)) {
            return self.took(unit, decoded).await;
        }
        if let Some(range) = self.known.iter().find(|range| range.offset == unit) {
            (self.at, self.group, self.is_behind_checkpoint) = (range.end(), Some(unit), true);
            let list_bytes = range.bytes.saturating_sub(RecordHeader::SIZE as u64);
            let (sector, list_bytes) = (0, u32::try_from(list_bytes).unwrap_or(0));
            let lost = Checkpoint {
                previous: None,
                list_bytes,
                list_checksum: 0,
                sector,
                is_final: false,
            };
            return Ok(Step::Checkpoint(unit, lost, None));
        }
        Ok(Step::Damage(unit))
    }

    /// Returns true when no group begins behind `hole`. A group begins only when the one before it
    /// is durable, so if a later one has begun, the hole is damage and not the torn end of the log.
    /// Records without the start of their group prove nothing.
    async fn is_torn_end(&mut self, hole: u64) -> Result<bool, MediaError> {
        let mut unit = (hole + 1).next_multiple_of(self.unit);
        let mut end = self.end;
        if let Some(hint) = self.hint {
            // A group that was not announced is short.
            end = end.min(unit + SHORT_GROUP_BYTES);
            let begun = self.group.unwrap_or(hole);
            let is_here = |range: &SegmentRange| [hole, begun].contains(&range.offset);
            if let Some(long) = hint.long.filter(is_here)
                && self.begins_group(long.end()).await?
            {
                return Ok(false);
            }
        }
        while unit < end {
            if self.begins_group(unit).await? {
                return Ok(false);
            }
            unit += self.unit;
        }
        Ok(true)
    }

    async fn begins_group(&mut self, at: u64) -> Result<bool, MediaError> {
        let group = match self.decoded_at(at).await? {
            Some(Decoded::Record(record)) => u64::from(record.group),
            Some(Decoded::Checkpoint(checkpoint)) => u64::from(checkpoint.sector),
            _ => return Ok(false),
        };
        Ok(group * self.unit == at)
    }

    /// Skips damage: goes to the next page or sector that begins with a record, if there is one.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn pass_over(&mut self) -> Result<(), MediaError> {
        loop {
            self.at = (self.at + 1).next_multiple_of(self.unit);
            (self.group, self.is_behind_checkpoint) = (None, false);
            if self.at >= self.end || self.decoded_at(self.at).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads the value of a record; `None` when its checksum does not hold.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn value(&self, offset: u64, record: &Record) -> Result<Option<Buffer>, MediaError> {
        let length = record.content.bytes() as usize;
        let value = self.bytes(value_offset(offset), length).await?;
        let checksum = checksum(std::iter::once(&value[..])).await;
        Ok((checksum == record.value_checksum).then_some(value))
    }

    /// Reads bytes of the segment.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn bytes(&self, at: u64, length: usize) -> Result<Buffer, MediaError> {
        let inside =
            at >= self.window_at && at + length as u64 <= self.window_at + self.window.len() as u64;
        if inside {
            let start = usize::try_from(at - self.window_at).expect("inside the window");
            return Ok(Buffer::from_slice(&self.window[start..start + length]));
        }
        let buffer = Buffer::with_room(0, length, 0);
        let (result, buffer) = self.media.read(self.start + at, buffer).await;
        result.map(|()| buffer)
    }

    /// Returns true if this may be the next record: it begins a group at its own place, or belongs
    /// to that of the record before, if it `is_next` to that. Otherwise it is at a wrong place, or
    /// hides others before it.
    fn fits(&self, decoded: &Decoded, is_next: bool) -> bool {
        let (Decoded::Record(record), true) = (decoded, self.has_checkpoints) else { return true };
        let group = u64::from(record.group) * self.unit;
        let begins = group == self.at.next_multiple_of(self.unit);
        begins || (is_next && self.group.is_none_or(|known| known == group))
    }

    async fn took(&mut self, at: u64, decoded: Decoded) -> Result<Step, MediaError> {
        self.is_behind_checkpoint = false;
        Ok(match decoded {
            Decoded::Record(record) => {
                self.at = at + record.footprint();
                self.group = Some(u64::from(record.group) * self.unit);
                Step::Record(at, record)
            }
            Decoded::Checkpoint(checkpoint) => {
                self.at = at + checkpoint.footprint();
                (self.group, self.is_behind_checkpoint) = (Some(at), true);
                let list = self.bytes(value_offset(at), checkpoint.list_bytes as usize).await?;
                let is_whole = crc32c::crc32c(&list) == checkpoint.list_checksum;
                Step::Checkpoint(at, checkpoint, is_whole.then_some(list))
            }
            Decoded::Unknown { kind, bytes } => {
                self.at = at + bytes;
                Step::Unknown(at, kind)
            }
        })
    }

    async fn decoded_at(&mut self, at: u64) -> Result<Option<Decoded>, MediaError> {
        if value_offset(at) > self.end {
            return Ok(None);
        }
        let (sequence, room) = (self.sequence, self.end - at);
        let decoded = Decoded::decode(self.header(at).await?, sequence, room);
        Ok(match decoded {
            Some(Decoded::Checkpoint(checkpoint)) if !self.has_checkpoints => {
                let bytes = checkpoint.footprint();
                Some(Decoded::Unknown { kind: KIND_CHECKPOINT, bytes })
            }
            decoded => decoded,
        })
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
