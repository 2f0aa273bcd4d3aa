//! [`Semaphore`]: counted permits.
//!
//! Requests are served strictly in order, so a large one is not starved by small ones. Invariant:
//! permits held, granted and free add up to the total.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Permits that tasks of this core share; clones are the same semaphore.
#[derive(Clone)]
pub struct Semaphore(Rc<Inner>);

struct Inner {
    free: Cell<usize>,
    line: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    wants: usize,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.0.line.borrow().len();
        write!(f, "Semaphore({} free, {waiting} waiting)", self.0.free.get())
    }
}

impl Semaphore {
    /// Returns a semaphore with this many permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self(Rc::new(Inner { free: Cell::new(permits), line: RefCell::default() }))
    }

    /// Returns the number of free permits.
    #[must_use]
    pub fn available(&self) -> usize {
        self.0.free.get()
    }

    /// Returns true while a request waits for permits.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        !self.0.line.borrow().is_empty()
    }

    /// Adds permits to the total.
    pub fn add(&self, permits: usize) {
        self.0.release(permits);
    }

    /// Waits for `permits` at once. A request for more than the total waits for ever.
    pub fn acquire(&self, permits: usize) -> Acquire {
        Acquire { inner: Rc::clone(&self.0), permits, waiter: None }
    }

    /// Takes `permits` if they are free and no request waits.
    #[must_use]
    pub fn try_acquire(&self, permits: usize) -> Option<SemaphorePermit> {
        let inner = &self.0;
        if !inner.line.borrow().is_empty() || inner.free.get() < permits {
            return None;
        }
        inner.free.set(inner.free.get() - permits);
        Some(SemaphorePermit { inner: Rc::clone(inner), permits })
    }
}

impl Inner {
    fn release(&self, permits: usize) {
        self.free.set(self.free.get() + permits);
        self.serve();
    }

    /// Grants as many requests as the queue's order and the free permits allow.
    fn serve(&self) {
        loop {
            let mut line = self.line.borrow_mut();
            let Some(first) = line.front() else { return };
            if first.wants > self.free.get() {
                return;
            }
            let Some(first) = line.pop_front() else { return };
            drop(line);
            self.free.set(self.free.get() - first.wants);
            first.granted.set(true);
            if let Some(waker) = first.waker.take() {
                waker.wake();
            }
        }
    }
}

/// The future of [`Semaphore::acquire`].
#[must_use = "a future does nothing until awaited"]
pub struct Acquire {
    inner: Rc<Inner>,
    permits: usize,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Acquire {
    type Output = SemaphorePermit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SemaphorePermit> {
        let this = &mut *self;
        if let Some(waiter) = &this.waiter {
            if !waiter.granted.get() {
                waiter.waker.replace(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            this.waiter = None;
            return Poll::Ready(SemaphorePermit {
                inner: Rc::clone(&this.inner),
                permits: this.permits,
            });
        }
        if let Some(permit) = Semaphore(Rc::clone(&this.inner)).try_acquire(this.permits) {
            return Poll::Ready(permit);
        }
        let waiter = Rc::new(Waiter {
            wants: this.permits,
            granted: Cell::new(false),
            waker: RefCell::new(Some(cx.waker().clone())),
        });
        this.inner.line.borrow_mut().push_back(Rc::clone(&waiter));
        this.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.granted.get() {
            return self.inner.release(self.permits);
        }
        self.inner.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter));
        // Requests behind a large one may be served now.
        self.inner.serve();
    }
}

/// Permits held; given back when dropped.
#[must_use = "dropping it gives the permits back"]
pub struct SemaphorePermit {
    inner: Rc<Inner>,
    permits: usize,
}

impl SemaphorePermit {
    /// Returns the number of permits.
    #[must_use]
    pub fn count(&self) -> usize {
        self.permits
    }

    /// Removes these permits from the total.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.inner.release(self.permits);
        }
    }
}
