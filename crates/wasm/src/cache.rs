//! [`Cache`]: compiled programs, kept for the next load of the same bytes.
//!
//! Counts the memory of all kept programs, loaded or not. Invariant: their sum never exceeds the
//! bound; the least recently used ones make room.

use std::collections::VecDeque;
use std::sync::Arc;

use csd_kernels::program::Compiled;

/// Compiled programs by the digest of their bytes, most recently used first.
pub(crate) struct Cache<T> {
    all: VecDeque<([u8; 32], Arc<T>)>,
    bytes_max: u64,
}

impl<T: Compiled> Cache<T> {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { all: VecDeque::new(), bytes_max }
    }

    /// Returns the program of these bytes and marks it as used.
    pub(crate) fn get(&mut self, digest: &[u8; 32]) -> Option<Arc<T>> {
        let at = self.all.iter().position(|(known, _)| known == digest)?;
        let found = self.all.remove(at)?;
        let program = Arc::clone(&found.1);
        self.all.push_front(found);
        Some(program)
    }

    /// Keeps a program, unless it alone exceeds the bound.
    pub(crate) fn insert(&mut self, digest: [u8; 32], program: Arc<T>) {
        if program.bytes() > self.bytes_max {
            return;
        }
        self.all.push_front((digest, program));
        while self.bytes() > self.bytes_max {
            self.all.pop_back();
        }
    }

    /// Returns the memory of all kept programs, bytes.
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
