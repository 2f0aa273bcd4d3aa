//! The timers of one core: an ordered map from deadline to waker.
//!
//! The caller supplies the time. Timers of one instant fire in the order in which they were made.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::instant::Instant;

/// Deadline of a timer, and a number that makes the key unique and orders equal deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerKey {
    at: Instant,
    number: u64,
}

#[derive(Default)]
pub(crate) struct Timers {
    pending: BTreeMap<TimerKey, Waker>,
    made: u64,
}

impl Timers {
    /// Returns a new key for a timer at `at`; the timer is armed by [`Timers::set`].
    pub(crate) fn key(&mut self, at: Instant) -> TimerKey {
        self.made += 1;
        TimerKey { at, number: self.made }
    }

    /// Arms the timer: wakes `waker` at the key's time; replaces an earlier waker.
    pub(crate) fn set(&mut self, key: TimerKey, waker: &Waker) {
        self.pending
            .entry(key)
            .and_modify(|old| old.clone_from(waker))
            .or_insert_with(|| waker.clone());
    }

    pub(crate) fn remove(&mut self, key: TimerKey) {
        self.pending.remove(&key);
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|(key, _)| key.at)
    }

    /// Takes out the earliest timer that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Waker> {
        let entry = self.pending.first_entry()?;
        (entry.key().at <= now).then(|| entry.remove())
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }
}
