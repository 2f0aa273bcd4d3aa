//! [`Pinned`]: a segment that is being read by a service.

use crate::shard::Shard;

/// A pinned segment: cleaning skips it while this exists.
pub(crate) struct Pinned<'a> {
    shard: &'a Shard,
    segment: u32,
}

impl<'a> Pinned<'a> {
    /// Pins a segment; `None` if the shard has no such segment of this sequence any more.
    pub(crate) fn of(shard: &'a Shard, segment: u32, sequence: u64) -> Option<Self> {
        let mut owned = shard.owned.borrow_mut();
        let found = owned.get_mut(&segment).filter(|found| found.sequence == sequence)?;
        found.readers += 1;
        Some(Self { shard, segment })
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.shard.unpin(self.segment);
    }
}
