//! [`Gathered`]: the parts of an indirect value that is being read. All of its shared chunks are
//! pinned, so that it stays readable when another value takes its place and its chunks are deleted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, class, spawn};

use crate::media::Media;
use crate::parts::{Part, Parts, Place};
use crate::pinned_record::{PinnedRecord, pin_each};
use crate::segments::Segments;
use crate::shards::Shards;

/// A list of parts, with the chunks that it names.
#[derive(Debug)]
pub(crate) struct Gathered {
    // What is behind the header of the value's record.
    list: Buffer,
    parts: Parts,
    chunks: BTreeMap<Key, Rc<PinnedRecord>>,
}

impl Gathered {
    /// Pins the chunks of a list in the pool of a namespace; `None` if one is not there, or is not
    /// as long as the list says.
    ///
    /// # Errors
    /// The status to answer with.
    pub(crate) async fn open(
        shards: &Shards,
        (media, segments): (&Media, &Segments),
        pool: u16,
        (list, parts): (Buffer, Parts),
    ) -> Result<Option<Self>, Status> {
        let mut keys: Vec<Key> = parts.chunks().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut chunks = BTreeMap::new();
        for (key, pinned) in pin_each(shards, pool, keys).await? {
            let Some(pinned) = pinned? else { return Ok(None) };
            let chunk = PinnedRecord::new(media.clone(), segments, (pool, key), pinned);
            chunks.insert(key, Rc::new(chunk));
        }
        let is_as_long = |part: &Part| match &part.place {
            Place::Here(_) => true,
            Place::Chunk(key) => chunks[key].bytes() as usize == part.range.len(),
        };
        let is_right = parts.parts.iter().all(is_as_long);
        Ok(is_right.then_some(Self { list, parts, chunks }))
    }

    /// Returns the length of the value in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.parts.value_bytes
    }

    /// Returns the CRC-32C of the value.
    pub(crate) fn checksum(&self) -> u32 {
        self.parts.value_checksum
    }

    /// Reads a range of the value, with so much room before and behind it. The bytes are not
    /// checked.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`].
    pub(crate) async fn read(
        &self,
        range: Range<u32>,
        (head, tail): (usize, usize),
    ) -> Result<Buffer, Status> {
        let mut buffer = Buffer::with_room(head, range.len(), tail);
        let mut reads = Vec::new();
        for part in self.parts.within(&range) {
            let (start, end) = (part.range.start.max(range.start), part.range.end.min(range.end));
            let within = start - part.range.start..end - part.range.start;
            let to = (start - range.start) as usize..(end - range.start) as usize;
            match &part.place {
                Place::Here(place) => {
                    let from =
                        place.start + within.start as usize..place.start + within.end as usize;
                    buffer[to].copy_from_slice(&self.list[from]);
                }
                Place::Chunk(key) => {
                    let chunk = Rc::clone(&self.chunks[key]);
                    let bytes = (end - start) as usize;
                    let read = async move { chunk.read_at(within.start, bytes, (0, 0)).await };
                    reads.push((to, spawn(class(), read)));
                }
            }
        }
        let mut failed = None;
        for (to, read) in reads {
            match read.await {
                Ok(bytes) => buffer[to].copy_from_slice(&bytes),
                Err(status) => failed = Some(status),
            }
        }
        failed.map_or(Ok(buffer), Err)
    }
}
