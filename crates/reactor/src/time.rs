//! The one clock: [`Instant`], [`now`], [`sleep`] and [`timeout`].
//!
//! Never reads the machine's clock itself: the core's back end does, so that the same code runs
//! against a virtual clock in the simulation. An instant counts nanoseconds since the runtime (or
//! the simulated world) started; it is comparable between cores of one runtime and meaningless
//! outside it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Add, AddAssign, Sub};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::core::{Core, current};
use crate::timer::TimerKey;

/// A point on the runtime's clock, in nanoseconds since the runtime started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start of the runtime.
    pub const ZERO: Self = Self(0);
    /// The end of time; a timer set to it never fires.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start.
    #[must_use]
    pub const fn us(self) -> u64 {
        self.0 / 1000
    }

    /// Time from `earlier` to `self`; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time from `self` until now; zero if `self` lies ahead.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        now().since(self)
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

/// The time on this core's clock.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn now() -> Instant {
    current().backend.now()
}

/// Completes `after` from now.
pub fn sleep(after: Duration) -> Sleep {
    let core = current();
    let at = core.backend.now() + after;
    Sleep { core, at, key: None }
}

/// Completes at `at`, at once if it has passed.
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep { core: current(), at, key: None }
}

/// A future that completes at its deadline. Dropping it forgets the timer.
#[must_use = "a future does nothing until awaited"]
pub struct Sleep {
    core: Rc<Core>,
    at: Instant,
    key: Option<TimerKey>,
}

impl Sleep {
    /// When it completes.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.at
    }

    /// Moves the deadline, before or after it has passed.
    pub fn reset(&mut self, at: Instant) {
        self.forget();
        self.at = at;
    }

    fn forget(&mut self) {
        if let Some(key) = self.key.take() {
            self.core.timers.borrow_mut().remove(key);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.core.backend.now() >= this.at {
            this.forget();
            return Poll::Ready(());
        }
        let mut timers = this.core.timers.borrow_mut();
        let key = *this.key.get_or_insert_with(|| timers.key(this.at));
        timers.set(key, cx.waker());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The deadline of a [`timeout`] passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl std::error::Error for Elapsed {}

/// Runs `future` for at most `within`, then drops it.
///
/// # Errors
/// [`Elapsed`] when the time ran out first. The future is polled before the clock, so an answer
/// that is already there wins.
pub async fn timeout<F: Future>(within: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut deadline = pin!(sleep(within));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => deadline.as_mut().poll(cx).map(|()| Err(Elapsed)),
    })
    .await
}

/// Nanoseconds of a duration; `u64::MAX` (584 years) for longer ones.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
