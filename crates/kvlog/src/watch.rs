//! Keys of one kind that changed since somebody last asked, for an index that another part derives
//! from the values: it reads the values of these keys, and no others.
//!
//! From the first question on, each shard notes the keys of the kind whose records become current.
//! The keys that it had before count as changed, too; they are looked up in steps, and a question
//! that is given up loses none of them. Costs nothing before the first question. Invariant: a key
//! whose value changes is noted before the change is answered.

use std::collections::BTreeSet;
use std::ops::Bound;

use csd_nvme::kv::Key;

use crate::record::EntryKey;

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
    pub(crate) fn has(&self, key: &Key) -> bool {
        let bytes = key.as_bytes();
        bytes.len() == self.length && bytes[0] == self.first
    }
}

/// The keys that changed in one shard.
#[derive(Debug)]
pub(crate) struct Watched {
    kind: KeyKind,
    pub(crate) changed: BTreeSet<Key>,
    /// Bound of the keys that were there before and are not noted; `None` when all are.
    pub(crate) from: Option<Bound<Key>>,
}

impl Watched {
    pub(crate) fn new(kind: KeyKind) -> Self {
        Self { kind, changed: BTreeSet::new(), from: Some(Bound::Unbounded) }
    }

    /// Notes the key of a record that has become current.
    pub(crate) fn note(&mut self, (nsid, key): &EntryKey) {
        if *nsid == self.kind.nsid && self.kind.has(key) {
            self.changed.insert(*key);
        }
    }
}
