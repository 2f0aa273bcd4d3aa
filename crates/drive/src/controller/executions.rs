//! [`ExecutionLog`]: the last executions of the drive, for its log page.
//!
//! Each execution adds one entry, on any core. Invariant: numbers rise by one in the order in which
//! executions end, and the log holds the last [`EXECUTIONS_MAX`] of them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_nvme::vendor::executions::{EXECUTIONS_MAX, Entry};
use csd_reactor::{Instant, now};

use crate::compute::Report;

/// Makes the entry of an execution that ends now, without its caller.
pub fn entry(report: &Report, index: u16, begun: Instant) -> Entry {
    let Report { result, meter, program, cores } = report;
    let mut entry = Entry::zeroed();
    entry.set_program(*program).set_index(index).set_cores(*cores);
    entry.set_bytes_read(meter.read_bytes).set_bytes_written(meter.written_bytes);
    entry.set_work(meter.work).set_reading_ns(meter.reading_ns);
    entry.set_computing_ns(meter.computing_ns).set_writing_ns(meter.writing_ns);
    let ended = now();
    entry.set_total_ns(ended.ns() - begun.ns()).set_ended_ns(ended.ns());
    if let Err(failure) = result {
        entry.set_status_code(failure.status.0).explain(&failure.reason);
    }
    entry
}

/// Log of executions.
#[derive(Debug, Default)]
pub struct ExecutionLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ended: u64,
    // Newest first.
    entries: VecDeque<Entry>,
}

impl ExecutionLog {
    /// Adds an execution that has ended, and sets its number.
    pub fn note(&self, mut entry: Entry) {
        let mut state = self.state();
        state.ended += 1;
        entry.set_number(state.ended);
        state.entries.truncate(EXECUTIONS_MAX - 1);
        state.entries.push_front(entry);
    }

    /// Returns the number of executions that have ended, and the entries, newest first.
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
        let log = ExecutionLog::default();
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
