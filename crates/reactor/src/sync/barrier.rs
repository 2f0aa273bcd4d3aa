//! [`Barrier`]: a point that tasks of several cores pass together.
//!
//! Waiting tasks sleep until the last one arrives and wakes them. Invariants: no task passes before
//! all have arrived; once the barrier is broken, no task waits.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// A reusable barrier for a fixed number of tasks on any cores of one runtime.
#[derive(Debug)]
pub struct Barrier {
    parties: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of tasks that wait for the current passage.
    arrived: usize,
    /// Number of completed passages.
    passages: u64,
    broken: bool,
    waiters: Vec<Waker>,
}

/// Error: a task broke the barrier with [`Barrier::break_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another core gave up")]
pub struct Broken;

impl Barrier {
    /// Returns a barrier for `parties` tasks.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self { parties, state: Mutex::default() }
    }

    /// Waits until all `parties` tasks have called this, then lets all of them pass; the barrier
    /// can then be used again. A task that starts to wait counts even if its future is dropped.
    ///
    /// # Errors
    /// [`Broken`] if a task has broken the barrier: without waiting, or before the last arrived.
    pub async fn wait(&self) -> Result<(), Broken> {
        let mut passage = None;
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.broken {
                return Poll::Ready(Err(Broken));
            }
            match passage {
                Some(passage) if state.passages != passage => return Poll::Ready(Ok(())),
                Some(_) => {}
                None => {
                    passage = Some(state.passages);
                    state.arrived += 1;
                    if state.arrived >= self.parties {
                        state.arrived = 0;
                        state.passages += 1;
                        let waiters = std::mem::take(&mut state.waiters);
                        drop(state);
                        waiters.into_iter().for_each(Waker::wake);
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            if !state.waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiters.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Breaks the barrier for good: all waiting tasks and all later ones get [`Broken`].
    pub fn break_up(&self) {
        let mut state = self.lock();
        state.broken = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Returns true if a task has broken the barrier.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.lock().broken
    }

    /// Locks the state. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
