//! [`Room`]: the bound on requests under way through one door.
//!
//! Invariant: permits taken and free permits add up to the capacity; a permit is free again when
//! dropped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Unanswered;
use super::interrupt::wait_until;

/// Free permits, and the threads that wait for one.
pub(super) struct Room {
    permits: Mutex<Permits>,
    freed: Condvar,
}

struct Permits {
    free: usize,
    waiting: usize,
}

/// Permission to have one request under way.
pub(super) struct Permit(Arc<Room>);

impl Room {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let permits = Mutex::new(Permits { free: capacity, waiting: 0 });
        Arc::new(Self { permits, freed: Condvar::new() })
    }

    /// Takes a permit, if one is free.
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Permit> {
        let mut permits = self.lock();
        permits.free = permits.free.checked_sub(1)?;
        Some(Permit(Arc::clone(self)))
    }

    /// Takes a permit, and waits for one if need be. Every request ends, so one becomes free.
    ///
    /// # Errors
    /// [`Unanswered::Interrupted`].
    pub(super) fn take(self: &Arc<Self>) -> Result<Permit, Unanswered> {
        let mut waits = false;
        let taken = wait_until(
            || self.lock(),
            &self.freed,
            |permits| {
                let free = permits.free.checked_sub(1);
                let is_waiting = std::mem::replace(&mut waits, free.is_none());
                permits.waiting = permits.waiting + usize::from(waits) - usize::from(is_waiting);
                permits.free = free?;
                Some(Permit(Arc::clone(self)))
            },
        );
        if taken.is_err() {
            self.lock().waiting -= 1;
        }
        taken
    }

    /// Locks the permits. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Permits> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut permits = self.0.lock();
        permits.free += 1;
        let wanted = permits.waiting > 0;
        drop(permits);
        if wanted {
            self.0.freed.notify_one();
        }
    }
}
