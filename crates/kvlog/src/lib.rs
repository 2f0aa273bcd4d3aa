//! kv namespaces: Store, Retrieve, Exist, Delete and List over a log of 16 shards.
//!
//! A log-structured store: changes are appended to a log on the medium, and an index in memory says
//! where the newest record of each key is, as in Bitcask (Sheehy and Smith 2010). So a Store is one
//! sequential write, and a Retrieve at most one read.
//!
//! A key's shard is fixed by a hash of namespace and key; shard s belongs to core s mod cores. A
//! read asks the owner for the location and reads the value on its own core; a write sends its
//! payload to the owner's core.
//!
//! Invariants: a Store is answered when it is durable, or with a volatile cache when it is written
//! and its turn has come; a value read is the one that was current at some moment of the read,
//! whole, and its checksum held; List's order is that of the namespace's index, whatever the number
//! of cores.

mod capacity;
mod change;
mod changed_keys;
pub mod check;
pub mod checkpoint;
mod clean;
mod close_epoch;
pub mod collect;
mod commit;
pub mod control;
mod current_records;
pub mod epochs;
pub mod error;
pub mod format;
mod gathered;
mod group;
mod headless;
pub mod hint;
pub mod index;
mod list_keys;
mod lists;
mod log_positions;
pub mod mark;
mod marks;
pub mod media;
pub mod near;
pub mod new_values;
mod news;
pub mod parts;
mod pinned;
mod pinned_record;
mod reclaim;
pub mod record;
pub mod recover;
pub mod scrub;
mod seal;
pub mod segment_head;
mod segment_tail;
pub mod segments;
pub mod service;
mod service_changes;
pub mod shard;
mod shards;
mod sharers;
pub mod sharing;
mod store_newer;
mod sum;
#[cfg(test)]
mod test_log;
mod uncertain_keys;
mod value;
pub mod walk;
pub mod watch;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, Semaphore, core_id, sleep, spawn};

use crate::error::{Access, MediaError};
use crate::format::SHARDS;
use crate::media::{Media, Syncer};
use epochs::Turn;
pub use error::Error;
pub use index::IndexKind;
use new_values::NewValues;
pub use reclaim::Cleaner;
use recover::Found;
use scrub::{Owner, Scrubber};
use segments::Segments;
use service_changes::ServiceChange;
use shard::Shard;
pub use shards::shard_of;
use shards::{Shards, owner};
pub use value::{Progress, Value};
use watch::KeyKind;

/// Pause between two looks at cleaning that has to end when the drive stops.
const STOP_PAUSE: Duration = Duration::from_millis(1);

/// Number of shards that a core recovers at a time. They read together, so one call of the system
/// starts several reads; each holds the lists of one segment.
const RECOVERED_TOGETHER: usize = 4;

/// The kv namespaces as one core sees them.
pub struct Kv {
    media: Media,
    segments: Arc<Segments>,
    value_bytes_max: u32,
    shards: Rc<Shards>,
}

impl Kv {
    /// Recovers this core's shards, and lets other cores call them.
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
        let found: Rc<[Found]> = found.into();
        let turns = Semaphore::new(RECOVERED_TOGETHER);
        let recover = |id: u32| {
            let (media, segments) = (media.clone(), Arc::clone(&segments));
            let shard = Rc::new(Shard::new(id, media, segments, Rc::clone(&syncer)));
            let (found, turns) = (Rc::clone(&found), turns.clone());
            let recover = async move {
                let _turn = turns.acquire(1).await;
                shard.recover(&found).await.map(|()| shard)
            };
            (owner(id as usize) == core_id()).then(|| spawn(Class::Foreground, recover))
        };
        let recovering: Vec<_> = (0..SHARDS).map(recover).collect();
        let mut recovered = Vec::with_capacity(SHARDS as usize);
        for shard in recovering {
            recovered.push(match shard {
                Some(shard) => Some(shard.await),
                None => None,
            });
        }
        // All have ended, so none writes to the medium behind a failure.
        let shards = recovered.into_iter().map(Option::transpose).collect::<Result<Vec<_>, _>>()?;
        let shards = Shards::share(shards);
        Ok(Rc::new(Self { media, segments, value_bytes_max, shards }))
    }

    /// Returns the state that all shards share.
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// Returns this core's service that cleans.
    pub fn cleaner(&self) -> Cleaner {
        Cleaner::new(&self.segments, &self.shards)
    }

    /// Returns a service that reads the current values of this core's shards, pass after pass.
    pub fn scrubber<O: Owner>(&self, owner: O) -> Scrubber<O> {
        Scrubber::new(&self.segments, &self.shards, owner)
    }

    /// Returns a reader of each value of this core's shards, those that are stored later too, of
    /// which it keeps up to `bytes_max` bytes of memory.
    pub fn new_values(&self, bytes_max: u64) -> NewValues {
        NewValues::new(&self.segments, &self.shards, bytes_max)
    }

    /// Seals the segments of this core's shards when the drive stops, so that the next start knows
    /// where the log ends. The caller makes sure that no command runs.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn stop(&self) -> Result<(), MediaError> {
        self.segments.close();
        // So that the task of the service ends.
        self.shards.low.notify_one();
        while self.segments.is_cleaning() || ServiceChange::is_any(&self.segments) {
            sleep(STOP_PAUSE).await;
        }
        // A shard whose segments cannot be sealed keeps no other from it.
        let mut stopped = Ok(());
        for shard in self.shards.own() {
            stopped = stopped.and(shard.stop().await);
        }
        stopped
    }

    /// Makes every change durable that was answered before.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn flush(&self) -> Result<(), Status> {
        let Some(epochs) = &self.segments.epochs else { return Ok(()) };
        epochs.close(epochs.current()).await.map_err(|error| error.status(Access::Write))
    }

    /// Makes every change of a namespace durable that has ended. Without a volatile cache of the
    /// namespace it is.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn flush_namespace(&self, nsid: u16) -> Result<(), Status> {
        if self.segments.is_uncached(nsid) { Ok(()) } else { self.flush().await }
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
        self.store_in_turn(nsid, key, value, options).await.map(drop)
    }

    /// Stores a value. The caller holds the turn until it has answered the command, which keeps the
    /// order of answers.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn store_in_turn(
        &self,
        nsid: u16,
        key: Key,
        value: Vec<Buffer>,
        options: u8,
    ) -> Result<Turn, Status> {
        let bytes: usize = value.iter().map(|piece| piece.len()).sum();
        if bytes as u64 > u64::from(self.value_bytes_max) {
            return Err(Status::INVALID_VALUE_SIZE);
        }
        let entry = (nsid, key);
        let store = move |shard| async move { change::store(&shard, entry, value, options).await };
        let turn = self.shards.on_owner(shard_of(&entry), store).await?;
        turn.comes().await;
        Ok(turn)
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// The status to answer with: [`Status::KEY_DOES_NOT_EXIST`] only when the namespace is
    /// configured so.
    pub async fn delete(&self, nsid: u16, key: Key) -> Result<(), Status> {
        self.delete_in_turn(nsid, key).await.map(drop)
    }

    /// Deletes a key; otherwise as [`Self::store_in_turn`].
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub async fn delete_in_turn(&self, nsid: u16, key: Key) -> Result<Turn, Status> {
        let entry = (nsid, key);
        let delete = move |shard| async move { change::delete(&shard, entry).await };
        let turn = self.shards.on_owner(shard_of(&entry), delete).await?;
        turn.comes().await;
        Ok(turn)
    }

    /// Returns true when the key exists.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn exist(&self, nsid: u16, key: Key) -> Result<bool, Status> {
        let entry = (nsid, key);
        let find = move |shard: Rc<Shard>| async move { shard.find_certain(&entry).await };
        Ok(self.shards.on_owner(shard_of(&entry), find).await?.is_some())
    }

    /// Opens a value and pins its version; `None` when the key does not exist.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn open(&self, nsid: u16, key: Key) -> Result<Option<Value>, Status> {
        value::open(&self.shards, (&self.media, &self.segments), (nsid, key)).await
    }

    /// Returns the data of a List.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn list(&self, nsid: u16, from: Option<Key>, size: u32) -> Result<Vec<u8>, Status> {
        list_keys::list(&self.shards, nsid, from, size).await
    }

    /// Takes up to `most` keys of this kind that one shard has, or had, and that changed since they
    /// were taken last. All questions are about one kind.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn changed(
        &self,
        shard: usize,
        kind: KeyKind,
        most: usize,
    ) -> Result<Vec<Key>, Status> {
        assert!(shard < SHARDS as usize, "a shard's number");
        self.shards.on_owner(shard, move |shard| changed_keys::changed(shard, kind, most)).await
    }
}
