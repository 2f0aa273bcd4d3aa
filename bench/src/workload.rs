//! [`Workload`]: the operations of a run.

use crate::random;

/// Bytes of the smallest operation, a multiple of every common block size.
pub const BLOCK_BYTES: usize = BLOCK as usize;

/// The same, as commands name it.
pub(crate) const BLOCK: u32 = 4096;

/// A workload to measure.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name in the table.
    pub name: &'static str,
    /// True to read, false to write.
    pub read: bool,
    /// Bytes of one operation, a multiple of [`BLOCK_BYTES`].
    pub bytes: usize,
    /// Operations in flight.
    pub depth: u16,
    /// True for sequential offsets, false for random ones.
    pub in_order: bool,
    /// Number of blocks of [`BLOCK_BYTES`] that offsets are drawn from.
    pub blocks: u64,
}

impl Workload {
    /// Returns the endless sequence of the operations' offsets, bytes.
    pub fn offsets(&self) -> impl Iterator<Item = u64> + use<> {
        let unit = self.bytes as u64;
        let units = (self.blocks * BLOCK_BYTES as u64 / unit).max(1);
        let in_order = self.in_order;
        let numbered = (0..).zip(random::numbers(0));
        numbered.map(move |(index, random)| (if in_order { index } else { random }) % units * unit)
    }

    /// Returns the data of one operation in bytes, as commands name it.
    pub(crate) fn length(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }

    /// Returns the lengths of a command and of its answer on the wire, bytes.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        if self.read { (72, 24 + self.length()) } else { (72 + self.length(), 24) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_aligned_and_within_the_blocks() {
        for (bytes, in_order) in [(4096, false), (128 << 10, false), (4096, true)] {
            let workload =
                Workload { name: "x", read: true, bytes, depth: 1, in_order, blocks: 64 };
            let offsets: Vec<u64> = workload.offsets().take(200).collect();
            let fits = |at: &u64| at.is_multiple_of(bytes as u64) && at + bytes as u64 <= 64 * 4096;
            assert!(offsets.iter().all(fits), "{offsets:?}");
            assert_eq!(in_order, offsets[..3] == [0, 4096, 8192]);
        }
    }
}
