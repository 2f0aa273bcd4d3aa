//! The timers of one core: an ordered map from deadline to waker.
//!
//! The caller supplies the time. Timers of one instant fire in the order in which they were made.
//! Invariant: `next` is the earliest deadline, kept because loops ask for it all the time.

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
    next: Option<Instant>,
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
        self.next = Some(self.next.map_or(key.at, |next| next.min(key.at)));
        self.pending
            .entry(key)
            .and_modify(|old| old.clone_from(waker))
            .or_insert_with(|| waker.clone());
    }

    pub(crate) fn remove(&mut self, key: TimerKey) {
        if self.pending.remove(&key).is_some() && Some(key.at) == self.next {
            self.look();
        }
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Takes out the earliest timer that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Waker> {
        self.next.filter(|next| *next <= now)?;
        let due = self.pending.pop_first().map(|(_, waker)| waker);
        self.look();
        due
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.next = None;
    }

    /// Looks for the earliest deadline.
    fn look(&mut self) {
        self.next = self.pending.first_key_value().map(|(key, _)| key.at);
    }
}
