//! kv namespaces: Store, Retrieve, Exist, Delete and List over a log of 16 shards.
//!
//! A key's shard is fixed by a hash of namespace and key; shard s belongs to core s mod cores. The
//! core of a connection asks the owner for a location and reads the value itself; a payload moves
//! to the owner's core, which writes it. Never: a queue or a PDU.
//!
//! Invariants: a Store is answered when it is durable; a value read is the one that was current at
//! some moment of the read, whole, and its checksum held; List's order is that of keys, by length
//! and bytes, whatever the number of cores.

mod clean;
mod commit;
pub mod record;
pub mod recover;
pub mod segments;
pub mod shard;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::kv::{self, Key, KeyList};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, CoreId, call, core_count, core_id, keep, kept, post, sleep};

use crate::error::{Access, Error};
use crate::format::SHARDS;
use crate::media::{Media, Syncer};
use clean::Cleaned;
use record::EntryKey;
use recover::Found;
use segments::Segments;
use shard::{Location, Refused, Shard};

/// Bytes of a value that move at once between medium and wire.
pub const PIECE_BYTES: usize = 128 << 10;
/// Tries to find room before a Store fails for lack of it.
const RECLAIM_ROUNDS: usize = 10_000;
/// Wait for another shard's cleaning.
const RECLAIM_PAUSE: Duration = Duration::from_millis(1);

/// The kv namespaces as one core sees them.
pub struct Kv {
    media: Media,
    segments: Arc<Segments>,
    value_bytes_max: u32,
    // By shard number; those of other cores are `None`.
    shards: Vec<Option<Rc<Shard>>>,
}

fn owner(shard: usize) -> CoreId {
    CoreId(shard % core_count())
}

/// The shard of a key, fixed for the life of the format.
pub fn shard_of(key: &EntryKey) -> usize {
    let seed = crc32c::crc32c(&key.0.to_le_bytes());
    crc32c::crc32c_append(seed, key.1.as_bytes()) as usize % SHARDS as usize
}

impl Kv {
    /// Recovers this core's shards and keeps the result on the core, for the other cores to call.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn recover(
        media: Media,
        segments: Arc<Segments>,
        value_bytes_max: u32,
        syncer: Rc<Syncer>,
        found: &[Found],
    ) -> Result<Rc<Self>, Error> {
        let mut shards = Vec::with_capacity(SHARDS as usize);
        for id in 0..SHARDS {
            if owner(id as usize) != core_id() {
                shards.push(None);
                continue;
            }
            let (media, segments) = (media.clone(), Arc::clone(&segments));
            let shard = Rc::new(Shard::new(id, media, segments, Rc::clone(&syncer)));
            shard.recover(found).await?;
            shards.push(Some(shard));
        }
        let this = Rc::new(Self { media, segments, value_bytes_max, shards });
        keep(Rc::clone(&this));
        Ok(this)
    }

    /// Counters and numbers that all cores share.
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    fn shard(&self, number: usize) -> &Rc<Shard> {
        self.shards[number].as_ref().expect("asked on the owner's core")
    }

    /// Stores a value.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn store(
        &self,
        nsid: u16,
        key: Key,
        value: Vec<Buffer>,
        options: u8,
    ) -> Result<(), Status> {
        let bytes: usize = value.iter().map(|piece| piece.len()).sum();
        if bytes as u64 > u64::from(self.value_bytes_max) {
            return Err(Status::INVALID_VALUE_SIZE);
        }
        let entry = (nsid, key);
        let number = shard_of(&entry);
        let used: u64 = self.segments.namespaces.iter().map(KvUse::used).sum();
        if used + record::footprint(bytes as u64) > self.segments.capacity_bytes() {
            return Err(Status::CAPACITY_EXCEEDED);
        }
        if owner(number) == core_id() {
            return store_here(self.shard(number), entry, value, options).await;
        }
        let there = move || async move {
            let here = kept::<Self>().ok_or(Status::NAMESPACE_NOT_READY)?;
            store_here(here.shard(number), entry, value, options).await
        };
        call(owner(number), Class::Foreground, there).await.unwrap_or(Err(Status::INTERNAL_ERROR))
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// The status to answer with: [`Status::KEY_DOES_NOT_EXIST`] only when the namespace is
    /// configured so.
    pub async fn delete(&self, nsid: u16, key: Key) -> Result<(), Status> {
        let entry = (nsid, key);
        let number = shard_of(&entry);
        if owner(number) == core_id() {
            return delete_here(self.shard(number), entry).await;
        }
        let there = move || async move {
            let here = kept::<Self>().ok_or(Status::NAMESPACE_NOT_READY)?;
            delete_here(here.shard(number), entry).await
        };
        call(owner(number), Class::Foreground, there).await.unwrap_or(Err(Status::INTERNAL_ERROR))
    }

    /// True when the key exists.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn exist(&self, nsid: u16, key: Key) -> Result<bool, Status> {
        Ok(self.open(nsid, key).await?.is_some())
    }

    /// Finds a value and holds on to its version; `None` when the key does not exist.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn open(&self, nsid: u16, key: Key) -> Result<Option<Value>, Status> {
        let entry = (nsid, key);
        let number = shard_of(&entry);
        let found = if owner(number) == core_id() {
            pin_here(self.shard(number), &entry)
        } else {
            let there = move || async move {
                kept::<Self>().and_then(|here| pin_here(here.shard(number), &entry))
            };
            let found = call(owner(number), Class::Foreground, there).await;
            found.map_err(|_| Status::INTERNAL_ERROR)?
        };
        let Some((location, pin)) = found else { return Ok(None) };
        let at = self.segments.at(location.segment, location.offset) + 64;
        Ok(Some(Value { media: self.media.clone(), at, location, read: 0, crc: 0, _pin: pin }))
    }

    /// The data of a List answer.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn list(&self, nsid: u16, from: Option<Key>, size: u32) -> Result<Vec<u8>, Status> {
        let mut list = KeyList::new(size)?;
        // The shortest entry has four bytes: no shard need give more keys than fit.
        let most = size as usize / 4;
        let mut keys = Vec::new();
        for number in 0..SHARDS as usize {
            if owner(number) == core_id() {
                keys.extend(self.shard(number).list(nsid, from, most));
            } else {
                let there = move || async move {
                    kept::<Self>().map(|here| here.shard(number).list(nsid, from, most))
                };
                let found = call(owner(number), Class::Foreground, there).await;
                keys.extend(found.ok().flatten().ok_or(Status::INTERNAL_ERROR)?);
            }
        }
        keys.sort_unstable();
        for key in &keys {
            if !list.push(key) {
                break;
            }
        }
        Ok(list.finish())
    }
}

trait KvUse {
    fn used(&self) -> u64;
}

impl KvUse for segments::KvNamespace {
    fn used(&self) -> u64 {
        self.used_bytes.load(std::sync::atomic::Ordering::Relaxed)
    }
}

async fn clean_here() -> Result<Cleaned, Status> {
    let Some(here) = kept::<Kv>() else { return Ok(Cleaned::Nothing) };
    let mut cleaned = Cleaned::Nothing;
    for shard in here.shards.iter().flatten() {
        cleaned = cleaned.max(shard.clean().await?);
    }
    Ok(cleaned)
}

/// Has every core clean; false when there is nothing to gain anywhere.
async fn reclaim() -> Result<bool, Status> {
    let mut cleaned = Cleaned::Nothing;
    for core in 0..core_count() {
        let result = call(CoreId(core), Class::Background, clean_here).await;
        cleaned = cleaned.max(result.unwrap_or(Err(Status::INTERNAL_ERROR))?);
    }
    if cleaned == Cleaned::Busy {
        sleep(RECLAIM_PAUSE).await;
    }
    Ok(cleaned != Cleaned::Nothing)
}

async fn store_here(
    shard: &Rc<Shard>,
    entry: EntryKey,
    mut value: Vec<Buffer>,
    options: u8,
) -> Result<(), Status> {
    for _ in 0..RECLAIM_ROUNDS {
        let lock = shard.lock(entry).await;
        let exists = shard.find(&entry).is_some();
        if options & kv::STORE_IF_EXISTS != 0 && !exists {
            return Err(Status::KEY_DOES_NOT_EXIST);
        }
        if options & kv::STORE_IF_ABSENT != 0 && exists {
            return Err(Status::KEY_EXISTS);
        }
        // The lock is gone with the answer: cleaning may want to move this very key, and must not
        // wait for us while we wait for it.
        let result = shard.append(lock, Some(value), None).await;
        shard.clean_if_low();
        match result {
            Ok(()) => return Ok(()),
            Err(Refused { status: Status::CAPACITY_EXCEEDED, value: Some(again) }) => {
                if !reclaim().await? {
                    return Err(Status::CAPACITY_EXCEEDED);
                }
                value = again;
            }
            Err(refused) => return Err(refused.status),
        }
    }
    Err(Status::CAPACITY_EXCEEDED)
}

async fn delete_here(shard: &Rc<Shard>, entry: EntryKey) -> Result<(), Status> {
    let lock = shard.lock(entry).await;
    if shard.find(&entry).is_none() {
        let namespace = shard.segments.namespace(entry.0);
        let error = namespace.is_some_and(|namespace| {
            namespace.absent_delete_is_error.load(std::sync::atomic::Ordering::Relaxed)
        });
        return if error { Err(Status::KEY_DOES_NOT_EXIST) } else { Ok(()) };
    }
    let result = shard.append(lock, None, None).await;
    shard.clean_if_low();
    result.map_err(|refused| refused.status)
}

/// Pins on the owner's core: an answer that is lost on its way gives the pin back by itself.
fn pin_here(shard: &Rc<Shard>, entry: &EntryKey) -> Option<(Location, Pin)> {
    let location = shard.find(entry)?;
    shard.pin(&location);
    Some((location, Pin { shard: shard.number as usize, segment: location.segment }))
}

/// Holds a segment until dropped, on whatever core.
#[derive(Debug)]
struct Pin {
    shard: usize,
    segment: u32,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let (shard, segment) = (self.shard, self.segment);
        let unpin = move || {
            if let Some(here) = kept::<Kv>() {
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

/// A version of a value that is being read.
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
