//! [`Cache`]: compiled programs, kept for the next time that the same bytes are loaded.
//!
//! Counts them in the memory that they take, whether they are loaded at the moment or not.
//! Invariant: together they never count more than the bound that was given; those that were used
//! longest ago make room.

use std::collections::VecDeque;
use std::sync::Arc;

use csd_kernels::program::Compiled;

/// Compiled programs by the digest of their bytes, the last used first.
pub(crate) struct Cache<T> {
    all: VecDeque<([u8; 32], Arc<T>)>,
    bytes_max: u64,
}

impl<T: Compiled> Cache<T> {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { all: VecDeque::new(), bytes_max }
    }

    /// The program of these bytes, which counts as used.
    pub(crate) fn get(&mut self, digest: &[u8; 32]) -> Option<Arc<T>> {
        let at = self.all.iter().position(|(known, _)| known == digest)?;
        let found = self.all.remove(at)?;
        let program = Arc::clone(&found.1);
        self.all.push_front(found);
        Some(program)
    }

    /// Keeps a program; one that takes more than there may be is not kept.
    pub(crate) fn insert(&mut self, digest: [u8; 32], program: Arc<T>) {
        if program.bytes() > self.bytes_max {
            return;
        }
        self.all.push_front((digest, program));
        while self.bytes() > self.bytes_max {
            self.all.pop_back();
        }
    }

    /// What all of them take, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.iter().map(|(_, program)| program.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use csd_kernels::program::{Failure, Limits, Program};

    use super::*;

    struct Sized(u64);

    impl Compiled for Sized {
        fn start(&self, _: &[u8], _: &Limits) -> Result<Box<dyn Program>, Failure> {
            Err(Failure::parameters("only its size counts"))
        }

        fn bytes(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn what_was_used_longest_ago_makes_room_and_bytes_count() {
        let mut cache = Cache::new(100);
        for (name, bytes) in [(1, 40), (2, 40), (3, 101)] {
            cache.insert([name; 32], Arc::new(Sized(bytes)));
        }
        assert_eq!(cache.bytes(), 80, "what is larger than the bound is not kept");
        assert!(cache.get(&[1; 32]).is_some());
        cache.insert([4; 32], Arc::new(Sized(60)));
        let kept = [1, 2, 3, 4].map(|name| cache.get(&[name; 32]).is_some());
        assert_eq!(kept, [true, false, false, true]);
        assert_eq!(cache.bytes(), 100);
    }
}
