//! The work of a run: for every member, the chunks that nobody has taken yet.
//!
//! A drive takes ranges of its own chunks from the front, the host single chunks from the back of
//! the longest pile, until all piles are empty. Never: I/O. Invariant: every chunk is taken
//! exactly once, by one side.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::layout::Spread;

/// Chunks of one member, by their place among that member's chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) member: usize,
    pub(super) locals: Range<u32>,
}

/// Work shared by the cores of a run.
pub(super) struct Queue {
    piles: Mutex<Vec<Range<u32>>>,
    stopped: AtomicBool,
}

impl Queue {
    /// All chunks of an object.
    pub(super) fn new(spread: &Spread) -> Self {
        let members = 0..usize::from(spread.members);
        let piles = members.map(|member| 0..spread.count(member)).collect();
        Self { piles: Mutex::new(piles), stopped: AtomicBool::new(false) }
    }

    /// The next chunks for `member` itself: a `part`-th of what is left, so that ranges get
    /// smaller towards the end, at least one chunk and at most `most`.
    pub(super) fn take_for_drive(&self, member: usize, part: u32, most: u32) -> Option<Taken> {
        let mut piles = self.lock()?;
        let pile = &mut piles[member];
        if pile.start == pile.end {
            return None;
        }
        let left = pile.end - pile.start;
        let end = pile.start + left.div_ceil(part).clamp(1, most);
        let locals = pile.start..end;
        pile.start = end;
        Some(Taken { member, locals })
    }

    /// One chunk for the host, from the member with most left.
    pub(super) fn take_for_host(&self) -> Option<Taken> {
        let mut piles = self.lock()?;
        let longest = piles.iter_mut().enumerate().max_by_key(|(_, pile)| pile.len());
        let (member, pile) = longest.filter(|(_, pile)| pile.start < pile.end)?;
        pile.end -= 1;
        Some(Taken { member, locals: pile.end..pile.end + 1 })
    }

    /// Makes every later take empty: somebody failed.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether somebody failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> Option<std::sync::MutexGuard<'_, Vec<Range<u32>>>> {
        // Ranges stay whole whatever happens to the other holder: nothing above panics midway.
        let piles = self.piles.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_stopped()).then_some(piles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(chunks: u64, members: u16) -> Spread {
        Spread { bytes: chunks * 4096, chunk_bytes: 4096, members, offset: 1 % members }
    }

    #[test]
    fn both_sides_together_take_every_chunk_once() {
        for (chunks, members) in [(0, 1), (1, 3), (17, 1), (100, 4), (1000, 3)] {
            let spread = spread(chunks, members);
            let queue = Queue::new(&spread);
            let mut seen = vec![0; usize::try_from(chunks).unwrap()];
            let mut turn = 0;
            loop {
                turn += 1;
                let member = turn % usize::from(members);
                let taken = match turn % 3 {
                    0 => queue.take_for_host(),
                    _ => queue.take_for_drive(member, 8, 5).or_else(|| queue.take_for_host()),
                };
                let Some(taken) = taken else { break };
                assert!(taken.locals.len() <= 5 && !taken.locals.is_empty());
                for local in taken.locals {
                    seen[spread.chunk(taken.member, local) as usize] += 1;
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{chunks} chunks: {seen:?}");
        }
    }

    #[test]
    fn ranges_shrink_towards_the_end() {
        let queue = Queue::new(&spread(64, 1));
        let sizes: Vec<_> = std::iter::from_fn(|| queue.take_for_drive(0, 8, 256))
            .map(|t| t.locals.len())
            .collect();
        assert_eq!(sizes[0], 8);
        assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{sizes:?}");
        assert_eq!((sizes.last(), sizes.iter().sum()), (Some(&1), 64));
    }

    #[test]
    fn a_stopped_queue_is_empty() {
        let queue = Queue::new(&spread(10, 2));
        queue.stop();
        assert_eq!(queue.take_for_host(), None);
        assert_eq!(queue.take_for_drive(0, 8, 256), None);
    }
}
