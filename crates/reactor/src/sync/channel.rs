//! Channels between tasks of one core: many senders, one receiver, values in order.
//!
//! Channels do not cross threads (see [`crate::call`] and [`crate::post`] for that). Invariants: a
//! bounded channel holds at most its capacity; values sent before the last sender was dropped are
//! received.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::WaitList;

/// Returns a channel that holds at most `capacity` values, at least one.
#[must_use]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel(capacity.max(1))
}

/// Returns a channel limited by memory alone, for uses that are bounded elsewhere.
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(RefCell::new(State {
        values: VecDeque::new(),
        capacity,
        senders: 1,
        receiver_gone: false,
        receiver: None,
        waiting: WaitList::default(),
    }));
    (Sender(Rc::clone(&state)), Receiver(state))
}

struct State<T> {
    values: VecDeque<T>,
    capacity: usize,
    senders: usize,
    receiver_gone: bool,
    receiver: Option<Waker>,
    waiting: WaitList,
}

/// Error: the receiver is gone. Returns the value.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver is gone")]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

/// Error of a send that would have to wait or cannot succeed. Returns the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

/// The sending end; clones send into the same channel.
pub struct Sender<T>(Rc<RefCell<State<T>>>);

impl<T> Sender<T> {
    /// Sends if there is room.
    ///
    /// # Errors
    /// [`TrySendError`], with the value.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = self.0.borrow_mut();
        if state.receiver_gone {
            return Err(TrySendError::Closed(value));
        }
        if state.values.len() >= state.capacity {
            return Err(TrySendError::Full(value));
        }
        state.values.push_back(value);
        let waker = state.receiver.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Sends; waits for room if the channel is full.
    ///
    /// # Errors
    /// [`SendError`] if the receiver is gone.
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut value = Some(value);
        let mut place = Place { state: &self.0, ticket: None };
        poll_fn(|cx| {
            let Some(unsent) = value.take() else { return Poll::Ready(Ok(())) };
            match self.try_send(unsent) {
                Ok(()) => Poll::Ready(Ok(())),
                Err(TrySendError::Closed(unsent)) => Poll::Ready(Err(SendError(unsent))),
                Err(TrySendError::Full(unsent)) => {
                    value = Some(unsent);
                    self.0.borrow_mut().waiting.wait(&mut place.ticket, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns true if the receiver is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.borrow().receiver_gone
    }
}

/// A sender's place in the queue for room.
struct Place<'a, T> {
    state: &'a RefCell<State<T>>,
    ticket: Option<u64>,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.state.borrow_mut();
        if state.waiting.leave(ticket) || state.values.len() >= state.capacity {
            return;
        }
        // It was woken, and there is room that it did not take: pass that on.
        let next = state.waiting.next();
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.borrow_mut().senders += 1;
        Self(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.senders -= 1;
        let waker = if state.senders == 0 { state.receiver.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The receiving end.
pub struct Receiver<T>(Rc<RefCell<State<T>>>);

impl<T> Receiver<T> {
    /// Returns the next value; `None` once all senders are gone and all values received.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls [`Receiver::recv`].
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(value) = self.try_recv() {
            return Poll::Ready(Some(value));
        }
        let mut state = self.0.borrow_mut();
        if state.senders == 0 {
            return Poll::Ready(None);
        }
        match &mut state.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.receiver = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Returns the next value if there is one.
    pub fn try_recv(&mut self) -> Option<T> {
        let mut state = self.0.borrow_mut();
        let value = state.values.pop_front()?;
        let waker = state.waiting.next();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(value)
    }

    /// Returns the number of values that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.borrow().values.len()
    }

    /// Returns true if no value waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.receiver_gone = true;
        let values = std::mem::take(&mut state.values);
        let waiting = std::mem::take(&mut state.waiting.waiting);
        drop(state);
        drop(values);
        for (_, waker) in waiting {
            waker.wake();
        }
    }
}
