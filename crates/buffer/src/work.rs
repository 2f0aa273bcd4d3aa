//! Work: a count of the bytes that a thread has touched, and of other steps of loops.
//!
//! Loops whose length the bytes of a peer or a medium decide call [`worked`]. The simulation reads
//! [`work`] before and after each poll of a task, so that a test can say how much work a poll may
//! do: a real clock could not. Invariant: equal inputs give equal counts.

use std::cell::Cell;

/// Units of one item of a list that is looked at.
pub const ITEM: u64 = 16;

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// Counts work of this thread: a unit for each byte that is copied, zeroed or summed, and [`ITEM`]
/// for each item of a list.
pub fn worked(units: u64) {
    WORK.set(WORK.get().wrapping_add(units));
}

/// Returns the units that this thread has counted; it wraps around.
#[must_use]
pub fn work() -> u64 {
    WORK.get()
}
