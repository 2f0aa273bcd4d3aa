//! [`Pending`]: the answer of one request, for a thread that waits for it.
//!
//! Dropping it does not stop the request. Invariant: it yields the answer once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::interrupt::wait_until;
use super::{Process, Unanswered};
use crate::current::try_current;

type Slot<T> = Option<Result<T, Unanswered>>;

struct Cell<T> {
    answer: Mutex<Slot<T>>,
    given: Condvar,
}

impl<T> Cell<T> {
    /// Locks the slot. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answer of a request that was submitted; see the module's text.
#[must_use = "the answer of a request is lost when this is dropped"]
pub struct Pending<T> {
    cell: Arc<Cell<T>>,
    process: Process,
}

impl<T> Pending<T> {
    /// Returns the waiter, and the function that gives it the answer.
    pub(super) fn new(
        process: Process,
    ) -> (Self, impl FnOnce(Result<T, Unanswered>) + Send + use<T>)
    where
        T: Send + 'static,
    {
        let cell = Arc::new(Cell { answer: Mutex::new(None), given: Condvar::new() });
        let given = Arc::clone(&cell);
        let deliver = move |answer| {
            *given.lock() = Some(answer);
            given.given.notify_all();
        };
        (Self { cell, process }, deliver)
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn wait(self) -> Result<T, Unanswered> {
        self.may_wait()?;
        wait_until(|| self.cell.lock(), &self.cell.given, Option::take)?
    }

    /// Waits for the answer at most for `limit`.
    ///
    /// # Errors
    /// This waiter, if the time has passed.
    pub fn wait_for(self, limit: Duration) -> Result<Result<T, Unanswered>, Self> {
        if let Err(refused) = self.may_wait() {
            return Ok(Err(refused));
        }
        let slot = self.cell.lock();
        let waited = self.cell.given.wait_timeout_while(slot, limit, |slot| slot.is_none());
        let answer = waited.unwrap_or_else(PoisonError::into_inner).0.take();
        answer.ok_or(self)
    }

    /// Takes the answer, if it is there.
    ///
    /// # Errors
    /// This waiter, if it is not.
    pub fn try_take(self) -> Result<Result<T, Unanswered>, Self> {
        if let Err(refused) = self.process.check() {
            return Ok(Err(refused));
        }
        let answer = self.cell.lock().take();
        answer.ok_or(self)
    }

    fn may_wait(&self) -> Result<(), Unanswered> {
        self.process.check()?;
        if try_current().is_some() { Err(Unanswered::OnCore) } else { Ok(()) }
    }
}
