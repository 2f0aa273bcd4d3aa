//! [`Headless`]: sealed segments without records whose header was never written.
//!
//! Earlier programs left them behind when the write of a header failed: the seal followed, and at a
//! clean stop the segment was counted among its shard's. Such a seal does not say whose it is.

use std::sync::{Mutex, PoisonError};

/// Sequences of these segments.
#[derive(Debug, Default)]
pub(crate) struct Headless(Mutex<Vec<u64>>);

impl Headless {
    /// Notes one that the survey has met.
    pub(crate) fn met(&self, sequence: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sequence);
    }

    /// Takes `count` of them that began before the segment of this sequence; false if there are
    /// fewer.
    pub(crate) fn take(&self, count: usize, before: u64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut older, newer): (Vec<u64>, Vec<u64>) =
            all.iter().partition(|sequence| **sequence < before);
        if older.len() < count {
            return false;
        }
        older.truncate(older.len() - count);
        *all = [older, newer].concat();
        true
    }
}
