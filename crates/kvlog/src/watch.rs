//! Keys of one kind that changed since somebody last asked, for an index that another part derives
//! from the values: it reads the values of these keys, and no others.
//!
//! From the first question on, each shard notes the keys of the kind whose records become current.
//! The keys that it had before count as changed, too; they are looked up in steps, and a question
//! that is given up loses none of them. Costs nothing before the first question. Invariant: a key
//! whose value changes is noted before the change is answered.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::yield_now;

use crate::record::EntryKey;
use crate::shard::Shard;

/// Keys of the index that a shard looks at in a step.
const LOOKS_MAX: usize = 256;

/// Keys of one namespace and length that begin with one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyKind {
    /// Namespace.
    pub nsid: u16,
    /// First byte.
    pub first: u8,
    /// Length in bytes.
    pub length: usize,
}

impl KeyKind {
    fn has(&self, key: &Key) -> bool {
        let bytes = key.as_bytes();
        bytes.len() == self.length && bytes[0] == self.first
    }
}

/// The keys that changed in one shard.
#[derive(Debug)]
pub(crate) struct Watched {
    kind: KeyKind,
    changed: BTreeSet<Key>,
    /// Bound of the keys that were there before and are not noted; `None` when all are.
    from: Option<Bound<Key>>,
}

impl Watched {
    fn new(kind: KeyKind) -> Self {
        Self { kind, changed: BTreeSet::new(), from: Some(Bound::Unbounded) }
    }

    /// Notes the key of a record that has become current.
    pub(crate) fn note(&mut self, (nsid, key): &EntryKey) {
        if *nsid == self.kind.nsid && self.kind.has(key) {
            self.changed.insert(*key);
        }
    }
}

impl Shard {
    /// Takes up to `most` keys of a kind that changed.
    pub(crate) async fn changed(
        self: Rc<Self>,
        kind: KeyKind,
        most: usize,
    ) -> Result<Vec<Key>, Status> {
        loop {
            let from = {
                let mut watched = self.watched.borrow_mut();
                watched.get_or_insert_with(|| Watched::new(kind)).from
            };
            let Some(from) = from else { break };
            let page = self.list_certain(kind.nsid, from, LOOKS_MAX, LOOKS_MAX).await?;
            if let Some(watched) = &mut *self.watched.borrow_mut() {
                watched.from = page.last.map(Bound::Excluded);
                let keys = page.keys.into_iter().map(|(_, key)| key);
                watched.changed.extend(keys.filter(|key| kind.has(key)));
            }
            yield_now().await;
        }
        let mut watched = self.watched.borrow_mut();
        let changed = &mut watched.as_mut().expect("made above").changed;
        Ok(std::iter::from_fn(|| changed.pop_first()).take(most).collect())
    }
}
