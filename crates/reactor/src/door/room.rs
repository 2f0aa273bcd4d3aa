//! [`Room`]: the bound on requests under way through one door.
//!
//! Invariant: seats taken and free seats add up to the capacity; a seat is free again when dropped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Free seats, and the threads that wait for one.
pub(super) struct Room {
    seats: Mutex<Seats>,
    freed: Condvar,
}

struct Seats {
    free: usize,
    waiting: usize,
}

/// Right to have one request under way.
pub(super) struct Seat(Arc<Room>);

impl Room {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let seats = Mutex::new(Seats { free: capacity, waiting: 0 });
        Arc::new(Self { seats, freed: Condvar::new() })
    }

    /// Takes a seat, if one is free.
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Seat> {
        let mut seats = self.lock();
        seats.free = seats.free.checked_sub(1)?;
        Some(Seat(Arc::clone(self)))
    }

    /// Takes a seat, and waits for one if need be. Every request ends, so one becomes free.
    pub(super) fn take(self: &Arc<Self>) -> Seat {
        let mut seats = self.lock();
        while seats.free == 0 {
            seats.waiting += 1;
            seats = self.freed.wait(seats).unwrap_or_else(PoisonError::into_inner);
            seats.waiting -= 1;
        }
        seats.free -= 1;
        Seat(Arc::clone(self))
    }

    /// Locks the seats. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.0.lock();
        seats.free += 1;
        let wanted = seats.waiting > 0;
        drop(seats);
        if wanted {
            self.0.freed.notify_one();
        }
    }
}
