//! [`Value`]: a version of a value that is being read: a record, or the parts of an indirect one.
//!
//! Invariant: a version has all of its records pinned from its opening on.

use csd_nvme::status::Status;
use csd_reactor::{Buffer, worked};

use crate::gathered::Gathered;
use crate::media::Media;
use crate::parts::pool_of;
use crate::pinned_record::{PinnedRecord, pin};
use crate::record::EntryKey;
use crate::segments::Segments;
use crate::shards::{Shards, shard_of};

/// Opens a value and pins its version; `None` when the key does not exist.
///
/// # Errors
/// The status to answer with.
pub(crate) async fn open(
    shards: &Shards,
    (media, segments): (&Media, &Segments),
    entry: EntryKey,
) -> Result<Option<Value>, Status> {
    let mut before = None;
    loop {
        let pin = move |shard| async move { pin(&shard, &entry).await };
        let Some(pinned) = shards.on_owner(shard_of(&entry), pin).await? else { return Ok(None) };
        let record = PinnedRecord::new(media.clone(), segments, entry, pinned);
        let location = record.location();
        if !location.content.is_list() {
            return Ok(Some(Value::of(record, None)));
        }
        let list = record.read_list().await?;
        let pool = pool_of(entry.0);
        if let Some(gathered) = Gathered::open(shards, (media, segments), pool, list).await? {
            return Ok(Some(Value::of(record, Some(Box::new(gathered)))));
        }
        // A chunk is deleted once no value has it, so the value was replaced meanwhile.
        if before.replace(location) == Some(location) {
            return Err(record.damaged(0, "a shared chunk of the value is missing"));
        }
    }
}

/// An open version of a value.
#[derive(Debug)]
pub struct Value {
    // The value, or the list of its parts.
    record: PinnedRecord,
    read: u32,
    crc: u32,
    // The parts of an indirect value.
    gathered: Option<Box<Gathered>>,
}

/// Progress of reading a version.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    commit: u64,
    read: u32,
    crc: u32,
}

impl Value {
    /// Returns the progress of its reading, by which its version can be found again.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub async fn progress(&self) -> Result<Progress, Status> {
        Ok(Progress { commit: self.record.commit().await?, read: self.read, crc: self.crc })
    }

    /// Continues where another reading of the same version stopped; `None` when this is another
    /// version.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub async fn resumed(self, from: Progress) -> Result<Option<Self>, Status> {
        let is_same = self.record.commit().await? == from.commit;
        Ok(is_same.then_some(Self { read: from.read, crc: from.crc, ..self }))
    }

    fn of(record: PinnedRecord, gathered: Option<Box<Gathered>>) -> Self {
        Self { record, read: 0, crc: 0, gathered }
    }

    /// Makes a reader of a record that is not indirect.
    pub(crate) fn of_record(record: PinnedRecord) -> Self {
        Self::of(record, None)
    }

    /// Returns the record of the value, or of the list of its parts.
    pub(crate) fn record(&self) -> &PinnedRecord {
        &self.record
    }

    /// Returns the length of the value in bytes.
    pub fn bytes(&self) -> u32 {
        self.gathered.as_ref().map_or_else(|| self.record.bytes(), |gathered| gathered.bytes())
    }

    /// Returns the CRC-32C of the whole value, for readers that check it themselves; `None` before
    /// the first piece is read.
    pub fn checksum(&self) -> Option<u32> {
        match &self.gathered {
            Some(gathered) => Some(gathered.checksum()),
            None => self.record.checksum(),
        }
    }

    /// Reads the next piece of at most `most` bytes, with `head` bytes of headroom and `tail` of
    /// tailroom; `None` after the last. The last piece is returned only if the checksum holds, and
    /// the `None` of a value without bytes only if the record's header does.
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
            if self.bytes() == 0 {
                // No piece brings the header of this record with it.
                self.record.commit().await?;
            }
            return Ok(None);
        }
        let buffer = self.read_at(self.read, left.min(most), (head, tail)).await?;
        self.read += u32::try_from(buffer.len()).expect("a value is at most 16 MiB");
        worked(buffer.len() as u64);
        self.crc = crc32c::crc32c_append(self.crc, &buffer);
        if self.read == self.bytes() && self.checksum() != Some(self.crc) {
            let bytes = self.bytes().into();
            return Err(self.record.damaged(bytes, "the value's checksum does not hold"));
        }
        Ok(Some(buffer))
    }

    /// Reads `bytes` bytes from byte `at` on without a check of the value. The caller compares
    /// [`Self::checksum`] with that of the whole value.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the medium fails, or has another record there.
    pub async fn read_unchecked(&self, at: u32, bytes: u32) -> Result<Buffer, Status> {
        self.read_at(at, bytes as usize, (0, 0)).await
    }

    async fn read_at(&self, at: u32, bytes: usize, room: (usize, usize)) -> Result<Buffer, Status> {
        if let Some(gathered) = &self.gathered {
            let length = u32::try_from(bytes).expect("a value is at most 16 MiB");
            return gathered.read(at..at + length, room).await;
        }
        self.record.read_at(at, bytes, room).await
    }
}
