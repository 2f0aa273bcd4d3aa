//! A version of a value that is being read.
//!
//! The owner of the key pins the segment; the core of the connection reads. Invariant: the pinned
//! segment is not reused before the pin is dropped, whatever becomes of the reader.

use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, core_id, core_local, post};

use super::record::{EntryKey, RecordHeader};
use super::segments::Segments;
use super::shard::{Location, Shard};
use super::{Kv, owner};
use crate::error::Access;
use crate::media::Media;

/// Finds a value on its owner's core and pins it there: an answer that is lost on its way gives the
/// pin back by itself.
///
/// # Errors
/// As [`Shard::find_certain`].
pub(super) async fn pin(
    shard: &Rc<Shard>,
    entry: &EntryKey,
) -> Result<Option<(Location, Pin)>, Status> {
    let Some(location) = shard.find_certain(entry).await? else { return Ok(None) };
    shard.pin(&location);
    Ok(Some((location, Pin { shard: shard.number as usize, segment: location.segment })))
}

/// Holds a segment until dropped, on whatever core.
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
            // A core that is gone has nothing left to free.
            let _ = post(owner(shard), Class::Foreground, unpin);
        }
    }
}

/// The value.
#[derive(Debug)]
pub struct Value {
    media: Media,
    at: u64,
    location: Location,
    read: u32,
    crc: u32,
    _pin: Pin,
}

/// How far the reading of a version has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    commit: u64,
    read: u32,
    crc: u32,
}

impl Value {
    /// How far its reading has come.
    pub fn progress(&self) -> Progress {
        Progress { commit: self.location.commit, read: self.read, crc: self.crc }
    }

    /// Goes on where another reading of the same version stopped; `None` when this is another
    /// version.
    #[must_use]
    pub fn resumed(self, from: Progress) -> Option<Self> {
        let is_same = self.location.commit == from.commit;
        is_same.then_some(Self { read: from.read, crc: from.crc, ..self })
    }

    /// The value at a pinned location.
    pub(super) fn new(media: Media, segments: &Segments, location: Location, pin: Pin) -> Self {
        let header = RecordHeader::SIZE as u64;
        let at = segments.at(location.segment, location.offset) + header;
        Self { media, at, location, read: 0, crc: 0, _pin: pin }
    }

    /// Length of the value in bytes.
    pub fn bytes(&self) -> u32 {
        self.location.value_bytes.unwrap_or(0)
    }

    /// CRC-32C of the whole value, for those who read it all and check elsewhere.
    pub fn checksum(&self) -> u32 {
        self.location.value_checksum
    }

    /// The next piece of at most `most` bytes, with `head` bytes of headroom and `tail` of
    /// tailroom; `None` behind the last. The last piece comes only if the checksum holds.
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
        let buffer = Buffer::with_room(head, left.min(most), tail);
        let (result, buffer) = self.media.read(self.at + u64::from(self.read), buffer).await;
        result.map_err(|error| error.status(Access::Value))?;
        self.read += u32::try_from(buffer.len()).expect("a value is at most 16 MiB");
        self.crc = crc32c::crc32c_append(self.crc, &buffer);
        if self.read == self.bytes() && self.crc != self.checksum() {
            return Err(Status::UNRECOVERED_ERROR);
        }
        Ok(Some(buffer))
    }

    /// `bytes` bytes from byte `at` on, unchecked: the caller compares [`Self::checksum`] with that
    /// of the whole.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the medium fails.
    pub async fn read_unchecked(&self, at: u32, bytes: u32) -> Result<Buffer, Status> {
        let buffer = Buffer::with_room(0, bytes as usize, 0);
        let (result, buffer) = self.media.read(self.at + u64::from(at), buffer).await;
        result.map_err(|error| error.status(Access::Value))?;
        Ok(buffer)
    }
}
