//! [`Room`]: remaining capacity for objects on each placement.

/// Remaining capacity on each placement, bytes of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// As values (`--on kv`).
    pub kv_bytes: u64,
    /// On blocks (`--on block`).
    pub block_bytes: u64,
}

/// Part of a drive that is full, where no more is known.
pub(crate) const MEDIA: &str = "media";
