//! [`PassBound`]: which page lists a pass of the scrub compares, so that it ends.
//!
//! A host may store any number of lists over the same blocks, and each would be read again. Lists
//! of pieces as hosts write them cover each block once, and are all compared. If all lists together
//! cover more than all blocks, each pass compares some of them, chosen at random, so that each is
//! compared in the long run whatever a host stores before it. Performs no I/O. Invariant: a pass
//! compares at most twice as many bytes as there are blocks.

use std::cell::Cell;

/// Lists that a pass has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Number of lists.
    pub(crate) lists: u64,
    /// Bytes that they cover.
    pub(crate) bytes: u64,
}

/// The bound of a core's passes; see the module's text.
#[derive(Debug, Default)]
pub(crate) struct PassBound {
    /// Bytes of the lists that this pass compares.
    taken: Cell<u64>,
    left: Cell<Left>,
    /// Bytes of all lists in the pass before.
    before: Cell<u64>,
}

impl PassBound {
    /// Returns true if this pass compares a list that covers `bytes` bytes; all blocks have
    /// `whole` bytes, at least as many. `draw` is any number, each as likely as another.
    pub(crate) fn takes(&self, bytes: u64, whole: u64, draw: u64) -> bool {
        let is_drawn = draw % self.before.get().max(1) < whole;
        if bytes == 0 || (is_drawn && self.taken.get() < whole) {
            self.taken.set(self.taken.get() + bytes);
            return true;
        }
        let Left { lists, bytes: left } = self.left.get();
        self.left.set(Left { lists: lists + 1, bytes: left.saturating_add(bytes) });
        false
    }

    /// Ends the pass; returns what it has left, if anything.
    pub(crate) fn end(&self) -> Option<Left> {
        let left = self.left.take();
        self.before.set(self.taken.take().saturating_add(left.bytes));
        (left.lists > 0).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const WHOLE: u64 = 1000;

    /// Returns the lists that each of some passes over lists of these lengths compares.
    fn passes(lists: &[u64], count: u64) -> Vec<Vec<usize>> {
        let bound = PassBound::default();
        let mut draws = (1..).map(|at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16);
        let pass = |_| {
            let mut takes = |bytes: u64| bound.takes(bytes, WHOLE, draws.next().unwrap());
            let taken: Vec<_> = (0..lists.len()).filter(|at| takes(lists[*at])).collect();
            let left = bound.end().unwrap_or_default();
            assert_eq!(taken.len() as u64 + left.lists, lists.len() as u64);
            taken
        };
        (0..count).map(pass).collect()
    }

    #[test]
    fn lists_that_cover_each_block_once_are_all_compared() {
        for taken in passes(&[400, 599, 1, 0], 5) {
            assert_eq!(taken, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn a_pass_is_bounded_and_every_list_is_met() {
        let lists = [WHOLE; 50];
        let (mut met, all) = (BTreeSet::new(), passes(&lists, 2_000));
        for taken in all {
            assert!(taken.iter().map(|at| lists[*at]).sum::<u64>() <= 2 * WHOLE, "{taken:?}");
            met.extend(taken);
        }
        assert_eq!(met.len(), lists.len());
    }
}
