//! Keys whose last change failed with the medium, while it is unknown which value a restart would
//! find: the group may be on the medium, and the seal before it could not be written.
//!
//! Invariant: a host does not read, or list, the old state now and the new one later. Until the
//! medium takes the seal, questions whose answer depends on the change end with
//! [`Status::UNRECOVERED_ERROR`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;

use crate::index::Page;
use crate::record::EntryKey;
use crate::shard::{Location, Shard};

impl Shard {
    /// Notes that a change of the key to this record failed, and may yet be found.
    pub(crate) fn doubt(&self, key: EntryKey, changed: &Location) {
        let existed = self.find(&key).is_some();
        let differs = existed != changed.content.is_value();
        *self.uncertain.borrow_mut().entry(key).or_default() |= differs;
    }

    /// Returns the newest value's location; `None` when the key does not exist.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when the last change of the key is uncertain.
    pub(crate) async fn find_certain(
        self: &Rc<Self>,
        key: &EntryKey,
    ) -> Result<Option<Location>, Status> {
        self.require(|uncertain| !uncertain.contains_key(key)).await?;
        Ok(self.find(key))
    }

    /// Returns what [`Self::list`] does.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_ERROR`] when it is uncertain whether one of the namespace's keys
    /// exists, wherever that is in the order of keys.
    pub(crate) async fn list_certain(
        self: &Rc<Self>,
        nsid: u16,
        from: Bound<Key>,
        keys_max: usize,
        looks_max: usize,
    ) -> Result<Page, Status> {
        let is_known = |uncertain: &BTreeMap<EntryKey, bool>| {
            !uncertain.iter().any(|((of, _), may_differ)| *of == nsid && *may_differ)
        };
        self.require(is_known).await?;
        Ok(self.list(nsid, from, keys_max, looks_max))
    }

    /// Fails if the uncertain keys leave the answer open, also after the medium had another chance
    /// to take the seal.
    async fn require(
        self: &Rc<Self>,
        is_known: impl Fn(&BTreeMap<EntryKey, bool>) -> bool,
    ) -> Result<(), Status> {
        if !is_known(&self.uncertain.borrow()) {
            self.seal_again().await;
        }
        match is_known(&self.uncertain.borrow()) {
            true => Ok(()),
            false => Err(Status::UNRECOVERED_ERROR),
        }
    }

    /// Tries again to seal the segment before the group that failed: the medium may take it by now.
    async fn seal_again(self: &Rc<Self>) {
        if let Some((number, filled)) = self.closing.get()
            && !self.committing.replace(true)
        {
            let _ = self.seal(number, filled).await;
            self.committing.set(false);
            self.start_committing();
        }
    }
}
