//! Waits that a signal can end: [`interruptible`].
//!
//! An interpreter runs handlers of signals between two steps of a thread, so a thread that waits
//! for an answer must ask it now and then. Invariant: an interrupted wait does not stop its
//! request.

use std::cell::Cell;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

use super::Unanswered;

/// Time between two questions.
const ASK_EVERY: Duration = Duration::from_millis(20);

thread_local! {
    static ASK: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Runs `body`. While it waits for an answer, or for room, it calls `is_interrupted` on this
/// thread every 20 ms, and gives the wait up with [`Unanswered::Interrupted`] once that returns
/// true. The request goes on: a command may still take effect.
pub fn interruptible<T>(is_interrupted: fn() -> bool, body: impl FnOnce() -> T) -> T {
    let _before = Before(ASK.replace(Some(is_interrupted)));
    body()
}

/// Sets what was asked before when dropped.
struct Before(Option<fn() -> bool>);

impl Drop for Before {
    fn drop(&mut self) {
        ASK.set(self.0);
    }
}

/// Waits until `found` returns a value from under the lock; `lock` takes the lock again after a
/// question.
pub(super) fn wait_until<'a, S: 'a, T>(
    lock: impl Fn() -> MutexGuard<'a, S>,
    changed: &Condvar,
    mut found: impl FnMut(&mut S) -> Option<T>,
) -> Result<T, Unanswered> {
    let mut state = lock();
    loop {
        if let Some(found) = found(&mut state) {
            return Ok(found);
        }
        let Some(is_interrupted) = ASK.get() else {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let waited = changed.wait_timeout(state, ASK_EVERY).unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
        if waited.1.timed_out() {
            drop(state);
            if is_interrupted() {
                return Err(Unanswered::Interrupted);
            }
            state = lock();
        }
    }
}
