//! [`Instant`]: a point on the runtime's clock.
//!
//! An instant counts nanoseconds since the runtime (or the simulated world) started. It is
//! comparable between cores of one runtime and meaningless outside it.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on the runtime's clock, in nanoseconds since the runtime started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Start of the runtime.
    pub const ZERO: Self = Self(0);
    /// End of time; a timer set to it never fires.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the instant `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns nanoseconds since the start.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Returns whole microseconds since the start.
    #[must_use]
    pub const fn us(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(nanos(after)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, before: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(before)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Returns the nanoseconds of a duration; `u64::MAX` (584 years) for longer ones.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
