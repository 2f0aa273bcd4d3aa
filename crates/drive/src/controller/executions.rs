//! The last executions of the drive, for its log.
//!
//! Touched once per execution, by whatever core it ran on. Never: the counting, which is the
//! compute namespace's. Invariant: numbers rise by one in the order of the ends, and the log holds
//! the last [`EXECUTIONS_MAX`] of them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_nvme::executions::{EXECUTIONS_MAX, Entry};

/// The log of executions.
#[derive(Debug, Default)]
pub struct Executions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ended: u64,
    // Newest first.
    entries: VecDeque<Entry>,
}

impl Executions {
    /// Notes an execution that has ended; its number is set here.
    pub fn note(&self, mut entry: Entry) {
        let mut state = self.state();
        state.ended += 1;
        entry.set_number(state.ended);
        state.entries.truncate(EXECUTIONS_MAX - 1);
        state.entries.push_front(entry);
    }

    /// How many executions have ended, and the entries, newest first.
    pub fn recent(&self) -> (u64, Vec<Entry>) {
        let state = self.state();
        (state.ended, state.entries.iter().copied().collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_stay_newest_first() {
        let log = Executions::default();
        for work in 1..=70 {
            let mut entry = Entry::zeroed();
            entry.set_work(work);
            log.note(entry);
        }
        let (ended, entries) = log.recent();
        let seen: Vec<_> = entries.iter().map(|entry| (entry.number(), entry.work())).collect();
        let expected: Vec<_> = (7..=70).rev().map(|number| (number, number)).collect();
        assert_eq!((ended, seen), (70, expected));
    }
}
