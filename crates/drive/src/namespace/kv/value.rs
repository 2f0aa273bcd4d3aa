//! [`Value`]: a version of a value that is being read.
//!
//! The owner of the key pins the segment; the core of the connection reads. Invariant: the pinned
//! segment is not reused before the pin is dropped, even if the reader vanishes.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, core_id, core_local, post};

use super::record::{EntryKey, Record, RecordHeader, value_offset};
use super::segments::Segments;
use super::shard::{Location, Shard};
use super::{Kv, owner};
use crate::error::Access;
use crate::media::Media;

/// Finds a value on its owner's core and pins it there. An answer that is lost on its way releases
/// the pin.
///
/// # Errors
/// As [`Shard::find_certain`].
pub(super) async fn pin(
    shard: &Rc<Shard>,
    entry: &EntryKey,
) -> Result<Option<(Location, Pin)>, Status> {
    let Some(mut location) = shard.find_certain(entry).await? else { return Ok(None) };
    shard.pin(&location);
    let pin = Pin { shard: shard.number as usize, segment: location.segment };
    location.value_checksum = checksum(shard, entry, &location).await?;
    Ok(Some((location, pin)))
}

/// Reads the checksum of a value from its record, whose header must be the key's.
async fn checksum(shard: &Shard, entry: &EntryKey, location: &Location) -> Result<u32, Status> {
    let segments = &shard.segments;
    let sequence = shard.owned.borrow()[&location.segment].sequence;
    let at = segments.at(location.segment, location.offset);
    let (result, header) = shard.media.read(at, Buffer::with_room(0, RecordHeader::SIZE, 0)).await;
    result.map_err(|error| error.status(Access::Value))?;
    let room = segments.segment_bytes - location.offset;
    let record = Record::decode(&header, sequence, room);
    let own = |record: &Record| record.key == *entry && record.value_bytes == location.value_bytes;
    record.filter(own).map(|record| record.value_checksum).ok_or(Status::UNRECOVERED_ERROR)
}

/// A pin: holds a segment until dropped, on any core.
#[derive(Debug)]
pub(super) struct Pin {
    shard: usize,
    segment: u32,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let (shard, segment) = (self.shard, self.segment);
        let unpin = move || {
            if let Some(here) = core_local::<Kv>() {
                here.shard(shard).unpin(segment);
            }
        };
        if owner(shard) == core_id() {
            unpin();
        } else {
            // A core that is gone has no segment to release.
            let _ = post(owner(shard), Class::Foreground, unpin);
        }
    }
}

/// An open version of a value.
#[derive(Debug)]
pub struct Value {
    media: Media,
    at: u64,
    location: Location,
    read: u32,
    crc: u32,
    _pin: Pin,
}

/// Progress of reading a version.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    commit: u64,
    read: u32,
    crc: u32,
}

impl Value {
    /// Returns the progress of its reading.
    pub fn progress(&self) -> Progress {
        Progress { commit: self.location.commit, read: self.read, crc: self.crc }
    }

    /// Continues where another reading of the same version stopped; `None` when this is another
    /// version.
    #[must_use]
    pub fn resumed(self, from: Progress) -> Option<Self> {
        let is_same = self.location.commit == from.commit;
        is_same.then_some(Self { read: from.read, crc: from.crc, ..self })
    }

    /// Opens the value at a pinned location.
    pub(super) fn new(media: Media, segments: &Segments, location: Location, pin: Pin) -> Self {
        let at = segments.at(location.segment, value_offset(location.offset));
        Self { media, at, location, read: 0, crc: 0, _pin: pin }
    }

    /// Returns the length of the value in bytes.
    pub fn bytes(&self) -> u32 {
        self.location.value_bytes.unwrap_or(0)
    }

    /// Returns the CRC-32C of the whole value, for readers that check it themselves.
    pub fn checksum(&self) -> u32 {
        self.location.value_checksum
    }

    /// Reads the next piece of at most `most` bytes, with `head` bytes of headroom and `tail` of
    /// tailroom; `None` behind the last. The last piece is returned only if the checksum holds.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub async fn next(
        &mut self,
        most: usize,
        head: usize,
        tail: usize,
    ) -> Result<Option<Buffer>, Status> {
        let left = (self.bytes() - self.read) as usize;
        if left == 0 {
            return Ok(None);
        }
        let buffer = self.read_at(self.read, Buffer::with_room(head, left.min(most), tail)).await?;
        self.read += u32::try_from(buffer.len()).expect("a value is at most 16 MiB");
        self.crc = crc32c::crc32c_append(self.crc, &buffer);
        if self.read == self.bytes() && self.crc != self.checksum() {
            return Err(Status::UNRECOVERED_ERROR);
        }
        Ok(Some(buffer))
    }

    /// Reads `bytes` bytes from byte `at` on without a check. The caller compares
    /// [`Self::checksum`] with that of the whole value.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the medium fails.
    pub async fn read_unchecked(&self, at: u32, bytes: u32) -> Result<Buffer, Status> {
        self.read_at(at, Buffer::with_room(0, bytes as usize, 0)).await
    }

    async fn read_at(&self, at: u32, buffer: Buffer) -> Result<Buffer, Status> {
        let (result, buffer) = self.media.read(self.at + u64::from(at), buffer).await;
        result.map_err(|error| error.status(Access::Value))?;
        Ok(buffer)
    }
}
