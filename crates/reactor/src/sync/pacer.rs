//! [`Pacer`]: limits the bytes per second that a task moves.
//!
//! It is the generic cell rate algorithm (GCRA) in its form of virtual scheduling, without a
//! tolerance for bursts: a token bucket that keeps one point in time instead of a number of tokens
//! (ITU-T I.371, annex A). Invariant: reservations do not overlap, and time that was not used is
//! not saved up.

use std::time::Duration;

use crate::instant::Instant;
use crate::time::now;

/// A limit of bytes per second, and the time that is reserved under it.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    bytes_per_s: u64,
    due: Instant,
}

impl Pacer {
    /// Returns a pacer with nothing reserved. A rate of 0 counts as 1.
    #[must_use]
    pub const fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, due: Instant::ZERO }
    }

    /// Returns the end of all reservations; it has passed if nothing is reserved.
    #[must_use]
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Reserves the time of `bytes` bytes, after earlier reservations. Returns its end, which the
    /// task waits for before it moves more; `None` if there is nothing to wait for. A task that
    /// waits before it moves these bytes waits for [`Self::due`] before this call instead.
    ///
    /// # Panics
    /// Outside a core.
    pub fn reserve(&mut self, bytes: u64) -> Option<Instant> {
        let now = now();
        self.due = self.due.max(now) + transfer_time(bytes, self.bytes_per_s);
        (self.due > now).then_some(self.due)
    }
}

/// Returns the time of `bytes` bytes at a rate, in whole ns, rounded down; `u64::MAX` ns if it is
/// longer. A rate of 0 counts as 1.
#[must_use]
pub fn transfer_time(bytes: u64, bytes_per_s: u64) -> Duration {
    let ns = u128::from(bytes) * Duration::from_secs(1).as_nanos() / u128::from(bytes_per_s.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
