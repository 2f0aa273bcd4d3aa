//! Kinds of accesses of a drive's medium: phase of its life, operation, structure.

use std::fmt;

use csd_kvlog::format::{HEAD_BYTES, SETTINGS_OFFSETS, Superblock};
use csd_kvlog::mark::MARK_OFFSETS;
use csd_kvlog::media::{Access, Operation};

/// Phase of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Start,
    Work,
    Stop,
}

/// Kind of an access: accesses of one kind differ by their number only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) phase: Phase,
    pub(super) operation: Operation,
    pub(super) structure: &'static str,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} of {}", self.phase, self.operation, self.structure)
    }
}

/// Returns the structure that an access is for.
pub(super) fn structure(superblock: &Superblock, access: &Access) -> &'static str {
    let (at, kv) = (access.offset, superblock.kv_offset());
    if access.operation == Operation::Sync {
        return "everything";
    }
    if at < HEAD_BYTES {
        return match at {
            at if SETTINGS_OFFSETS.contains(&at) => "settings",
            at if MARK_OFFSETS.contains(&at) => "the mark",
            _ => "the superblock",
        };
    }
    if at < kv || at >= kv + superblock.kv_length() {
        return "blocks";
    }
    match ((at - kv) % superblock.segment_bytes(), access.bytes) {
        (0, 4096) => "a header to free",
        (0, _) => "a header",
        (4096, _) => "a seal or hint",
        _ => "records",
    }
}
