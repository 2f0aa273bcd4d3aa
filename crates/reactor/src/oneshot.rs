//! A value that crosses threads once: answers of calls, of compute threads and of file threads.
//!
//! Private carrier of [`crate::call`], [`crate::compute`] and [`crate::File`]. It does not block.
//! Invariant: the receiver gets either the value or the news that the sender is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    sender_gone: bool,
    receiver_gone: bool,
}

struct Cell<T>(Mutex<State<T>>);

impl<T> Cell<T> {
    /// Locks the state. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending half. Dropping it unused reports to the receiver that no answer will come.
pub(crate) struct Sender<T>(Arc<Cell<T>>);

/// The receiving half; `None` means that the sender is gone.
pub(crate) struct Receiver<T>(Arc<Cell<T>>);

pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { value: None, waker: None, sender_gone: false, receiver_gone: false };
    let cell = Arc::new(Cell(Mutex::new(state)));
    (Sender(Arc::clone(&cell)), Receiver(cell))
}

impl<T> Sender<T> {
    /// Sends the value; drops it here if the receiver is gone.
    pub(crate) fn send(self, value: T) {
        let mut state = self.0.lock();
        let unwanted = if state.receiver_gone {
            Some(value)
        } else {
            state.value = Some(value);
            None
        };
        drop(state);
        drop(unwanted);
        // Our own drop wakes the receiver.
    }

    /// Returns true if the receiver was dropped, so that the work may stop.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.lock().receiver_gone
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.sender_gone = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Some(value));
        }
        if state.sender_gone {
            return Poll::Ready(None);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.receiver_gone = true;
        // The value's destructor and the waker's may take other locks: run them outside ours.
        let leftovers = (state.value.take(), state.waker.take());
        drop(state);
        drop(leftovers);
    }
}
