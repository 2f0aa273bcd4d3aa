//! The timers of one core: an ordered map from deadline to waker.
//!
//! Never reads a clock; the caller says what time it is. Timers of one instant fire in the order
//! in which they were made.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::instant::Instant;

/// A timer: its deadline, and a number that makes it unique and orders equals.
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
    /// A new key for a timer at `at`; nothing waits under it until [`Timers::set`].
    pub(crate) fn key(&mut self, at: Instant) -> TimerKey {
        self.made += 1;
        TimerKey { at, number: self.made }
    }

    /// Wakes `waker` at the key's time; replaces the waker that was there.
    pub(crate) fn set(&mut self, key: TimerKey, waker: &Waker) {
        self.pending
            .entry(key)
            .and_modify(|old| old.clone_from(waker))
            .or_insert_with(|| waker.clone());
    }

    pub(crate) fn remove(&mut self, key: TimerKey) {
        self.pending.remove(&key);
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|(key, _)| key.at)
    }

    /// Takes out one timer that is due at `now`, the earliest first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Waker> {
        let entry = self.pending.first_entry()?;
        (entry.key().at <= now).then(|| entry.remove())
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }
}
