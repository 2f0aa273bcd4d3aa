//! [`Notify`]: a notification without a value.
//!
//! Invariants: `notify_one` is not lost: without a waiter, one notification is stored for the next
//! one; `notify_all` reaches every [`Notified`] made before it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::WaitList;

/// Wakes tasks of the same core; see the module's text.
#[derive(Default)]
pub struct Notify {
    waiters: RefCell<WaitList>,
    /// A stored `notify_one`.
    stored: Cell<bool>,
    /// Number of calls of `notify_all`.
    epoch: Cell<u64>,
}

impl Notify {
    /// Returns a notification without waiters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the first waiter, or lets the next one pass.
    pub fn notify_one(&self) {
        let first = self.waiters.borrow_mut().next();
        match first {
            Some(waker) => waker.wake(),
            None => self.stored.set(true),
        }
    }

    /// Wakes all current waiters.
    pub fn notify_all(&self) {
        self.epoch.set(self.epoch.get() + 1);
        let waiting = std::mem::take(&mut self.waiters.borrow_mut().waiting);
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// Waits for a notification.
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, epoch: self.epoch.get(), ticket: None, done: false }
    }
}

/// The future of [`Notify::notified`].
#[must_use = "a future does nothing until awaited"]
pub struct Notified<'a> {
    notify: &'a Notify,
    epoch: u64,
    ticket: Option<u64>,
    done: bool,
}

impl Notified<'_> {
    /// Returns true if it was queued and served, by one or by all.
    fn served(&self) -> bool {
        let in_line = |ticket: u64| {
            self.notify.waiters.borrow().waiting.iter().any(|(other, _)| *other == ticket)
        };
        self.notify.epoch.get() != self.epoch || self.ticket.is_some_and(|t| !in_line(t))
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let pass = this.done
            || this.served()
            || (this.ticket.is_none() && this.notify.stored.replace(false));
        if pass {
            this.done = true;
            return Poll::Ready(());
        }
        this.notify.waiters.borrow_mut().wait(&mut this.ticket, cx.waker());
        Poll::Pending
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        if self.done || self.notify.waiters.borrow_mut().leave(ticket) {
            return;
        }
        // Served by `notify_one` but never polled again: the notification goes to the next.
        if self.notify.epoch.get() == self.epoch {
            self.notify.notify_one();
        }
    }
}
