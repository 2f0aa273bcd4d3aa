//! The core's clock: [`now`], [`sleep`] and [`timeout`].
//!
//! The core's back end reads the clock, so the same code runs against a virtual clock in the
//! simulation.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::core::Core;
use crate::current::current;
use crate::instant::Instant;
use crate::timer::TimerKey;

impl Instant {
    /// Returns the time from `self` until now; zero if `self` lies ahead.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        now().since(self)
    }
}

/// Returns the time on this core's clock.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn now() -> Instant {
    current().backend.now()
}

/// Returns a future that completes `after` from now.
pub fn sleep(after: Duration) -> Sleep {
    let core = current();
    let at = core.backend.now() + after;
    Sleep { core, at, key: None }
}

/// Returns a future that completes at `at`, at once if it has passed.
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
    /// Returns the time at which it completes.
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

/// Error: the deadline of a [`timeout`] passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct Elapsed;

/// Runs `future` for at most `within`, then drops it.
///
/// # Errors
/// [`Elapsed`] when the time ran out first. The future is polled before the clock is read, so an
/// available answer wins.
pub async fn timeout<F: Future>(within: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut deadline = pin!(sleep(within));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => deadline.as_mut().poll(cx).map(|()| Err(Elapsed)),
    })
    .await
}
