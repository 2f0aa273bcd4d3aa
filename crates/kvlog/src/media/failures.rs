//! [`Failures`]: the accesses of a medium that failed, counted, with the last one in full.
//!
//! Invariants: a failed access is noted once, also one of the background; what a
//! medium refuses because it is read-only already is none.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::MediaError;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Freeing a range, which then reads as zeros.
    Discard,
    /// Making writes durable.
    Sync,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Sync => "sync",
        })
    }
}

/// An access that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the access.
    pub operation: Operation,
    /// Offset on the medium in bytes; 0 for a sync.
    pub offset: u64,
    /// Length in bytes; 0 for a sync.
    pub bytes: u64,
    /// The reason, in the words of the operating system.
    pub reason: String,
}

/// Failures of one medium since it was opened.
pub struct Failures {
    count: AtomicU64,
    last: Mutex<Option<Failure>>,
    told: OnceLock<fn(&Failure)>,
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failures({})", self.count())
    }
}

impl Default for Failures {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), last: Mutex::default(), told: OnceLock::new() }
    }
}

impl Failures {
    /// Returns the number of failures.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Returns the last failure.
    pub fn last(&self) -> Option<Failure> {
        self.state().clone()
    }

    /// Sets the function that gets failures from now on, on the core that made the access.
    /// The first one stays.
    pub fn tell(&self, told: fn(&Failure)) {
        let _ = self.told.set(told);
    }

    /// Notes a failure.
    pub fn note(&self, failure: Failure) {
        *self.state() = Some(failure.clone());
        self.count.fetch_add(1, Relaxed);
        if let Some(told) = self.told.get() {
            told(&failure);
        }
    }

    /// Notes the error of an access, unless it is a refusal.
    pub(super) fn note_error(
        &self,
        operation: Operation,
        (offset, bytes): (u64, u64),
        error: &MediaError,
    ) {
        let is_refusal =
            matches!(error, MediaError::ReadOnly | MediaError::OutOfRange | MediaError::PowerCut);
        if !is_refusal {
            self.note(Failure { operation, offset, bytes, reason: error.to_string() });
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<Failure>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_and_refusals_are_not() {
        let failures = Failures::default();
        let io = MediaError::Io("no such device".to_owned());
        failures.note_error(Operation::Write, (4096, 512), &io);
        for refusal in [MediaError::ReadOnly, MediaError::OutOfRange, MediaError::PowerCut] {
            failures.note_error(Operation::Read, (0, 512), &refusal);
        }
        assert_eq!(failures.count(), 1);
        let last = failures.last().expect("noted");
        assert_eq!((last.operation, last.offset, last.bytes), (Operation::Write, 4096, 512));
        assert!(last.reason.contains("no such device"));
    }
}
