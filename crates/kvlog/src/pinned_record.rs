//! [`PinnedRecord`]: a record that is being read.
//!
//! The owner of the key pins the segment; the core of the connection reads. The record's header
//! comes with the first piece, by the same read. Invariants: the pinned segment is not reused
//! before the pin is dropped, even if the reader vanishes; no byte is returned before the header
//! held and was that of this key.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, class, core_id, post, worked};

use crate::error::Access;
use crate::media::{Failure, Media, Operation};
use crate::parts::Parts;
use crate::record::{EntryKey, Record, RecordHeader, value_offset};
use crate::segments::Segments;
use crate::shard::{Location, Shard};
use crate::shards::{Shards, by_shard, owner};

const HEADER_BYTES: usize = RecordHeader::SIZE;

/// A pinned version of a value.
#[derive(Debug)]
pub(crate) struct Pinned {
    location: Location,
    // Sequence of the segment.
    sequence: u64,
    _pin: Pin,
}

/// Finds a value on its owner's core and pins it there. An answer that is lost on its way releases
/// the pin.
///
/// # Errors
/// As [`Shard::find_certain`].
pub(crate) async fn pin(shard: &Rc<Shard>, entry: &EntryKey) -> Result<Option<Pinned>, Status> {
    let Some(location) = shard.find_certain(entry).await? else { return Ok(None) };
    let sequence = shard.pin(&location).ok_or(Status::INTERNAL_ERROR)?;
    let pin = Pin { shard: shard.number as usize, segment: location.segment };
    Ok(Some(Pinned { location, sequence, _pin: pin }))
}

/// A key, and its value if it has one.
type PinnedKey = (Key, Result<Option<Pinned>, Status>);

/// Finds and pins the values of these few keys.
///
/// # Errors
/// The status to answer with, if a core does not answer.
pub(crate) async fn pin_each(
    shards: &Shards,
    nsid: u16,
    keys: Vec<Key>,
) -> Result<Vec<PinnedKey>, Status> {
    let mut all = Vec::with_capacity(keys.len());
    for (shard, keys) in by_shard(nsid, keys) {
        let pin = move |shard: Rc<Shard>| async move {
            let mut pinned = Vec::with_capacity(keys.len());
            for key in keys {
                pinned.push((key, pin(&shard, &(nsid, key)).await));
            }
            worked(pinned.len() as u64);
            Ok(pinned)
        };
        all.extend(shards.on_owner(shard, pin).await?);
    }
    Ok(all)
}

/// A pin: holds a segment until dropped, on any core.
#[derive(Debug)]
pub(crate) struct Pin {
    shard: usize,
    segment: u32,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let (shard, segment) = (self.shard, self.segment);
        let unpin = move || {
            if let Some(here) = Shards::here() {
                here.shard(shard).unpin(segment);
            }
        };
        if owner(shard) == core_id() {
            unpin();
        } else {
            // A core that is gone has no segment to release.
            let _ = post(owner(shard), class(), unpin);
        }
    }
}

/// A pinned record that this core reads.
#[derive(Debug)]
pub(crate) struct PinnedRecord {
    media: Media,
    entry: EntryKey,
    // Offset of the record on the medium.
    at: u64,
    // Bytes from there to the end of the segment.
    room: u64,
    pinned: Pinned,
    // What the record's header says, once it is read with the first piece.
    head: Cell<Option<Head>>,
}

/// Part of a record's header that is on the medium only.
#[derive(Clone, Copy, Debug)]
struct Head {
    commit: u64,
    checksum: u32,
}

impl PinnedRecord {
    /// Makes a reader of a pinned record.
    pub(crate) fn new(media: Media, segments: &Segments, entry: EntryKey, pinned: Pinned) -> Self {
        let location = pinned.location;
        let at = segments.at(location.segment, location.offset);
        let room = segments.segment_bytes - location.offset;
        Self { media, entry, at, room, pinned, head: Cell::new(None) }
    }

    /// Returns the record's commit number.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub(crate) async fn commit(&self) -> Result<u64, Status> {
        if self.head.get().is_none() {
            self.read_front(Buffer::with_room(0, HEADER_BYTES, 0)).await?;
        }
        self.head.get().map(|head| head.commit).ok_or(Status::INTERNAL_ERROR)
    }

    /// Returns the length in bytes of what is behind the header.
    pub(crate) fn bytes(&self) -> u32 {
        self.pinned.location.content.bytes()
    }

    /// Returns the CRC-32C of what is behind the header; `None` before its first byte is read.
    pub(crate) fn checksum(&self) -> Option<u32> {
        self.head.get().map(|head| head.checksum)
    }

    /// Reads bytes behind the header from byte `at` on, with headroom and tailroom. They are not
    /// checked.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the medium fails, or has another record there.
    pub(crate) async fn read_at(
        &self,
        at: u32,
        bytes: usize,
        (head, tail): (usize, usize),
    ) -> Result<Buffer, Status> {
        if at == 0 {
            return self.read_front(Buffer::with_room(head, HEADER_BYTES + bytes, tail)).await;
        }
        let offset = value_offset(self.at) + u64::from(at);
        self.read_media(offset, Buffer::with_room(head, bytes, tail)).await
    }

    /// Returns the place of the record.
    pub(crate) fn location(&self) -> Location {
        self.pinned.location
    }

    /// Returns the range on the medium of the record.
    pub(crate) fn range(&self) -> Range<u64> {
        self.at..value_offset(self.at) + u64::from(self.bytes())
    }

    /// Returns what is behind the record's header from the bytes of [`Self::range`].
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] if header or checksum do not hold.
    pub(crate) fn whole(&self, range: &[u8]) -> Result<Buffer, Status> {
        let head = self.accept_header(range)?;
        let value = &range[HEADER_BYTES..];
        worked(value.len() as u64);
        if crc32c::crc32c(value) != head.checksum {
            return Err(self.damaged(value.len() as u64, "the value's checksum does not hold"));
        }
        Ok(Buffer::from_slice(value))
    }

    /// Reads what is behind the record's header by a read of its own.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub(crate) async fn read_whole(&self) -> Result<Buffer, Status> {
        let length = HEADER_BYTES + self.bytes() as usize;
        let range = self.read_media(self.at, Buffer::zeroed(length)).await?;
        self.whole(&range)
    }

    /// Reads the list of an indirect value's parts.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub(crate) async fn read_list(&self) -> Result<(Buffer, Parts), Status> {
        let list = self.read_whole().await?;
        let no_list = || self.damaged(list.len() as u64, "the list of the value's parts is none");
        let parts = Parts::parse(&list).ok_or_else(no_list)?;
        Ok((list, parts))
    }

    /// Reads the record's header, and the first bytes of the value with it. Returns them with the
    /// header's room in front.
    async fn read_front(&self, buffer: Buffer) -> Result<Buffer, Status> {
        let mut buffer = self.read_media(self.at, buffer).await?;
        self.accept_header(&buffer)?;
        buffer.advance(HEADER_BYTES);
        Ok(buffer)
    }

    /// Notes what the record's header says, if it is that of this value.
    fn accept_header(&self, bytes: &[u8]) -> Result<Head, Status> {
        let record = Record::decode(bytes, self.pinned.sequence, self.room);
        let content = self.pinned.location.content;
        let is_it = |record: &Record| record.key == self.entry && record.content == content;
        let no_record = || self.damaged(0, "the header of the value's record does not hold");
        let record = record.filter(is_it).ok_or_else(no_record)?;
        let head = Head { commit: record.commit, checksum: record.value_checksum };
        self.head.set(Some(head));
        Ok(head)
    }

    /// Notes that the record, whose value has so many bytes, is damaged on the medium.
    pub(crate) fn damaged(&self, value_bytes: u64, reason: &str) -> Status {
        let (operation, reason) = (Operation::Read, reason.to_owned());
        let bytes = HEADER_BYTES as u64 + value_bytes;
        self.media.failures().note(Failure { operation, offset: self.at, bytes, reason });
        Status::UNRECOVERED_ERROR
    }

    async fn read_media(&self, offset: u64, buffer: Buffer) -> Result<Buffer, Status> {
        let (result, buffer) = self.media.read(offset, buffer).await;
        result.map_err(|error| error.status(Access::Value))?;
        Ok(buffer)
    }
}
