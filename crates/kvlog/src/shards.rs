//! [`Shards`]: the shards that this core owns, and questions to those of other cores.
//!
//! Invariant: a shard is used only on its owner's core.

use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{CoreId, Notify, call, class, core_count, core_id, core_local, set_core_local};

use crate::format::SHARDS;
use crate::record::EntryKey;
use crate::shard::Shard;

/// The shards of one core.
pub(crate) struct Shards {
    // By shard number; those of other cores are `None`.
    shards: Vec<Option<Rc<Shard>>>,
    /// Notified when a change finds few free segments, and when the drive stops.
    pub(crate) low: Notify,
}

/// Returns the core that owns a shard.
pub(crate) fn owner(shard: usize) -> CoreId {
    CoreId(shard % core_count())
}

/// Returns the shard of a key, which is fixed by the format.
pub fn shard_of(key: &EntryKey) -> usize {
    let seed = crc32c::crc32c(&key.0.to_le_bytes());
    crc32c::crc32c_append(seed, key.1.as_bytes()) as usize % SHARDS as usize
}

/// Divides keys of a namespace by their shards.
pub(crate) fn by_shard(nsid: u16, keys: Vec<Key>) -> Vec<(usize, Vec<Key>)> {
    let mut divided = vec![Vec::new(); SHARDS as usize];
    keys.into_iter().for_each(|key| divided[shard_of(&(nsid, key))].push(key));
    divided.into_iter().enumerate().filter(|(_, keys)| !keys.is_empty()).collect()
}

impl Shards {
    /// Takes this core's shards, and lets other cores call them.
    pub(crate) fn share(shards: Vec<Option<Rc<Shard>>>) -> Rc<Self> {
        let this = Rc::new(Self { shards, low: Notify::new() });
        set_core_local(Rc::clone(&this));
        this
    }

    /// Returns the shards of this core; `None` before they are recovered.
    pub(crate) fn here() -> Option<Rc<Self>> {
        core_local()
    }

    /// Returns the shards of this core.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Rc<Shard>> {
        self.shards.iter().flatten()
    }

    pub(crate) fn shard(&self, number: usize) -> &Rc<Shard> {
        self.shards[number].as_ref().expect("asked on the owner's core")
    }

    /// Runs `ask` with a shard on the core that owns it: at once on this core, by a message on
    /// another, where it has the class of the task that asks.
    pub(crate) async fn on_owner<T, E, F>(
        &self,
        number: usize,
        ask: impl FnOnce(Rc<Shard>) -> F + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Status> + Send + 'static,
        F: Future<Output = Result<T, E>> + 'static,
    {
        if owner(number) == core_id() {
            return ask(Rc::clone(self.shard(number))).await;
        }
        let there = move || async move {
            let here = Self::here().ok_or(Status::NAMESPACE_NOT_READY)?;
            ask(Rc::clone(here.shard(number))).await
        };
        call(owner(number), class(), there).await.unwrap_or(Err(Status::INTERNAL_ERROR.into()))
    }
}
